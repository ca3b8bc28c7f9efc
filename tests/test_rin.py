import inspect

import keras
import numpy as np
import pytest
import references
from cases import first_of
from cases import keras_before
from cases import table
from references import assert_same
from references import to_numpy

from keras_rin.initializers import Offset
from keras_rin.layers import RIN
from keras_rin.layers import DeepTransitionRINCell
from keras_rin.layers import RINCell

MASKS = {
    "leading": [0, 0, 1, 1, 1, 1],
    "trailing": [1, 1, 1, 1, 0, 0],
    "alternating": [1, 0, 1, 0, 1, 0],
    "whole row": [0, 0, 0, 0, 0, 0],
    "one step": [0, 0, 0, 1, 0, 0],
}


def built_rin(units, shape, **kwargs):
    rin = RIN(
        units,
        recurrent_initializer=keras.initializers.RandomNormal(
            stddev=0.3 / units**0.5
        ),
        bias_initializer=keras.initializers.RandomNormal(stddev=0.1),
        **kwargs,
    )
    rin.build(shape)
    return rin


def mask_of(pattern, batch):
    mask = np.ones((batch, len(MASKS[pattern])), bool)
    mask[::2] = MASKS[pattern]
    return mask


@pytest.mark.one_backend
@pytest.mark.parametrize("activation", references.ACTIVATIONS)
def test_states_follow_the_formula_in_float64(rng, activation):
    x = rng.normal(size=(4, 20, 3)).astype("float32")
    rin = built_rin(5, x.shape, activation=activation, return_sequences=True)
    expected = references.numpy_rin(x, rin.get_weights(), activation)
    assert_same(rin(x), expected)


@pytest.mark.parametrize(
    "units, activation",
    table([64, 1, 2, 17], [*references.ACTIVATIONS, "softplus"]),
)
def test_rin_is_simple_rnn_with_the_effective_kernel(rng, units, activation):
    x = rng.normal(size=(3, 6, 2)).astype("float32")
    rin = built_rin(units, x.shape, activation=activation)
    assert_same(rin(x), references.simple_rnn_of(rin)(x))


@pytest.mark.parametrize(
    "activation",
    first_of([("softplus",), *((name,) for name in references.ACTIVATIONS)], 2),
)
def test_gradients_are_those_of_simple_rnn(rng, activation):
    x = rng.normal(size=(3, 6, 2)).astype("float32")
    y = rng.normal(size=(3, 8)).astype("float32")
    rin = built_rin(8, x.shape, activation=activation)
    simple_rnn = references.simple_rnn_of(rin)
    mine = references.gradients(rin, x, y)
    theirs = references.gradients(simple_rnn, x, y)
    for one, other in zip(mine, theirs, strict=True):
        assert_same(one, other)


@pytest.mark.parametrize("pattern, go_backwards", table(MASKS, [False, True]))
def test_masks_act_as_on_simple_rnn(rng, pattern, go_backwards):
    mask = mask_of(pattern, batch=4)
    x = rng.normal(size=(*mask.shape, 2)).astype("float32")
    options = {"go_backwards": go_backwards, "return_sequences": True}
    rin = built_rin(5, x.shape, **options)
    assert_same(rin(x, mask=mask), references.simple_rnn_of(rin)(x, mask=mask))


@pytest.mark.parametrize("pattern", first_of((name,) for name in MASKS))
def test_gradients_under_a_mask_are_those_of_simple_rnn(rng, pattern):
    mask = mask_of(pattern, batch=4)
    x = rng.normal(size=(*mask.shape, 2)).astype("float32")
    y = rng.normal(size=(4, 5)).astype("float32")
    rin = built_rin(5, x.shape)
    simple_rnn = references.simple_rnn_of(rin)
    mine = references.gradients(rin, x, y, mask=mask)
    theirs = references.gradients(simple_rnn, x, y, mask=mask)
    for one, other in zip(mine, theirs, strict=True):
        assert_same(one, other)


@pytest.mark.one_backend
@pytest.mark.parametrize("pattern", MASKS)
def test_masked_steps_leave_the_state_as_it_is(rng, pattern):
    mask = mask_of(pattern, batch=4)
    x = rng.normal(size=(*mask.shape, 2)).astype("float32")
    rin = built_rin(5, x.shape)
    states = references.numpy_rin(x, rin.get_weights(), "relu", mask=mask)
    assert_same(rin(x, mask=mask), states[:, -1])


def test_masked_steps_can_give_zeros(rng):
    mask = mask_of("alternating", batch=2)
    x = rng.normal(size=(*mask.shape, 2)).astype("float32")
    rin = built_rin(
        5, x.shape, return_sequences=True, zero_output_for_mask=True
    )
    output = to_numpy(rin(x, mask=mask))
    np.testing.assert_array_equal(output[~mask], 0)
    assert np.abs(output[mask]).max() > 0


@pytest.mark.one_backend
def test_a_masking_layer_before_acts_like_the_mask(rng):
    x = rng.normal(size=(2, 6, 3)).astype("float32")
    x[0, 4:] = 0
    rin = built_rin(5, x.shape)
    model = keras.Sequential([keras.Input((6, 3)), keras.layers.Masking(), rin])
    mask = np.any(x != 0, axis=-1)
    assert_same(model(x), rin(x, mask=mask))


@pytest.mark.one_backend
def test_going_backwards_reads_the_sequence_from_its_end(rng):
    x = rng.normal(size=(2, 6, 3)).astype("float32")
    rin = built_rin(5, x.shape, go_backwards=True, return_sequences=True)
    expected = references.numpy_rin(x[:, ::-1], rin.get_weights(), "relu")
    assert_same(rin(x), expected)


def test_unrolled_is_the_same(rng):
    x = rng.normal(size=(2, 6, 3)).astype("float32")
    rin = built_rin(5, x.shape, unroll=True)
    expected = references.numpy_rin(x, rin.get_weights(), "relu")
    assert_same(rin(x), expected[:, -1])


def test_the_initial_state_is_where_it_starts(rng):
    x = rng.normal(size=(2, 6, 3)).astype("float32")
    h = rng.normal(size=(2, 5)).astype("float32")
    rin = built_rin(5, x.shape)
    expected = references.numpy_rin(x, rin.get_weights(), "relu", h)
    assert_same(rin(x, initial_state=h), expected[:, -1])
    assert_same(rin(x, initial_state=[h]), expected[:, -1])


def test_the_returned_state_is_the_last_output(rng):
    x = rng.normal(size=(2, 6, 3)).astype("float32")
    rin = built_rin(5, x.shape, return_sequences=True, return_state=True)
    outputs, state = rin(x)
    assert_same(outputs[:, -1], state, rtol=0, atol=0)


@pytest.mark.skipif(
    keras.backend.backend() == "jax" and keras_before("3.12"),
    reason="this Keras cannot reset states on JAX",
)
def test_stateful_halves_make_the_whole(rng):
    x = rng.normal(size=(2, 6, 3)).astype("float32")
    rin = built_rin(5, x.shape, stateful=True)
    rin(x[:, :4])
    expected = references.numpy_rin(x, rin.get_weights(), "relu")
    assert_same(rin(x[:, 4:]), expected[:, -1])
    rin.reset_state()
    assert_same(rin(x), expected[:, -1])


def test_stateful_is_as_on_simple_rnn(rng):
    x = rng.normal(size=(2, 6, 3)).astype("float32")
    rin = built_rin(5, x.shape, stateful=True, return_sequences=True)
    simple_rnn = references.simple_rnn_of(rin)
    for _ in range(3):
        assert_same(rin(x), simple_rnn(x))


@pytest.mark.one_backend
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("training", [False, True])
def test_stateful_over_batches_of_changing_lengths(rng, training, masked):
    """Batches of one to six steps are one sequence."""
    lengths = [4, 1, 6, 1, 4, 6]
    x = rng.normal(size=(2, sum(lengths), 3)).astype("float32")
    mask = rng.random(size=x.shape[:2]) < 0.7 if masked else None
    rin = built_rin(5, (2, None, 3), stateful=True, activation="tanh")
    expected = references.numpy_rin(x, rin.get_weights(), "tanh", mask=mask)
    for end, length in zip(np.cumsum(lengths), lengths, strict=True):
        now = slice(end - length, end)
        part = None if mask is None else mask[:, now]
        rin(x[:, now], mask=part, training=training)
        assert_same(rin.states[0], expected[:, end - 1], atol=1e-4)


def test_stateful_refuses_another_batch_size(rng):
    rin = built_rin(5, (2, None, 3), stateful=True)
    rin(np.ones((2, 4, 3), "float32"))
    before = keras.ops.convert_to_numpy(rin.states[0]).copy()
    for batch in (1, 3):
        with pytest.raises(ValueError, match="batch size"):
            rin(np.ones((batch, 4, 3), "float32"))
    assert_same(rin.states[0], before, rtol=0, atol=0)


@pytest.mark.parametrize("recurrent_dropout", [0.0, 0.5])
def test_a_zero_offset_holds_the_state(recurrent_dropout):
    rin = RIN(
        5, recurrent_initializer="zeros", recurrent_dropout=recurrent_dropout
    )
    h = np.arange(10, dtype="float32").reshape(2, 5)
    held = rin(np.zeros((2, 300, 1)), initial_state=h, training=True)
    assert_same(held, h, rtol=0, atol=0)


def test_recurrent_dropout_acts_on_the_offset():
    rin = RIN(
        51,
        activation=None,
        kernel_initializer="zeros",
        recurrent_initializer=keras.initializers.Constant(0.5),
        recurrent_dropout=0.5,
        seed=1,
    )
    h = np.ones((1, 51), "float32")
    dropped = rin(np.zeros((1, 1, 1)), initial_state=h, training=True)
    kept = rin(np.zeros((1, 1, 1)), initial_state=h)
    assert_same(kept, h + 25.5)
    # Each of the k units that are left counts twice, and every h adds 1 to it.
    added = np.unique(to_numpy(dropped) - h)
    assert added.size == 1 and added % 1 == 0 and 0 < added < 51


def test_dropout_repeats_with_its_seed(rng):
    x = rng.normal(size=(2, 6, 3)).astype("float32")
    outputs = []
    for seed in (7, 7, 8):
        keras.utils.set_random_seed(0)
        rin = built_rin(5, x.shape, dropout=0.5, seed=seed)
        outputs.append(to_numpy(rin(x, training=True)))
    np.testing.assert_array_equal(outputs[0], outputs[1])
    assert not np.array_equal(outputs[0], outputs[2])


def test_the_seed_stays_in_the_config():
    assert RIN(3, seed=7).get_config()["seed"] == 7


def test_the_activity_regularizer_is_kept_and_counted(rng):
    x = rng.normal(size=(2, 6, 3)).astype("float32")
    rin = built_rin(5, x.shape, activity_regularizer="l2")
    output = rin(x)
    # Which is not divided by the batch size in older versions.
    keras_s = keras.layers.ActivityRegularization(l2=0.01)
    keras_s(output)
    assert_same(rin.losses[0], keras_s.losses[0])
    assert rin.get_config()["activity_regularizer"]["class_name"] == "L2"


@pytest.mark.one_backend
def test_weight_regularizers_see_the_offset():
    rin = RIN(5, recurrent_initializer="ones", recurrent_regularizer="l2")
    rin.build((None, None, 2))
    assert_same(rin.losses[0], 0.01 * 25)


def test_constraints_act_on_the_offset():
    rin = RIN(3, recurrent_constraint="non_neg")
    rin.build((None, None, 2))
    constrained = rin.cell.recurrent_kernel.constraint(-np.ones((3, 3)))
    assert_same(constrained, np.zeros((3, 3)))


@pytest.mark.parametrize(
    "policy", ["mixed_float16", "mixed_bfloat16", "float64"]
)
def test_the_dtype_policy_reaches_the_cell(policy):
    rin = RIN(3, dtype=policy)
    output = rin(np.ones((2, 4, 2)))
    assert rin.cell.dtype_policy.name == policy
    assert keras.backend.standardize_dtype(output.dtype) == rin.compute_dtype
    assert rin.cell.recurrent_kernel.dtype == rin.variable_dtype


def test_a_frozen_layer_trains_nothing():
    rin = RIN(3, trainable=False)
    rin.build((None, None, 2))
    assert rin.trainable_weights == []


@pytest.mark.parametrize(
    "wrap",
    [
        lambda: keras.layers.Bidirectional(RIN(4, return_sequences=True)),
        lambda: keras.layers.TimeDistributed(RIN(4)),
        lambda: keras.layers.RNN(
            keras.layers.StackedRNNCells([RIN(4).cell, RIN(3).cell])
        ),
    ],
    ids=["Bidirectional", "TimeDistributed", "StackedRNNCells"],
)
def test_keras_wrappers_take_it(rng, wrap):
    layer = wrap()
    nested = isinstance(layer, keras.layers.TimeDistributed)
    x = rng.normal(size=(2, 3, 6, 2) if nested else (2, 6, 2))
    inputs = keras.Input(x.shape[1:])
    model = keras.Model(inputs, layer(inputs))
    model.compile("sgd", "mse")
    shape = model.output_shape[1:]
    model.fit(x, np.zeros((2, *shape)), verbose=0)
    assert model.predict(x, verbose=0).shape == (2, *shape)


@pytest.mark.one_backend
def test_bidirectional_is_one_rin_each_way(rng):
    x = rng.normal(size=(2, 6, 2)).astype("float32")
    layer = keras.layers.Bidirectional(RIN(4))
    output = to_numpy(layer(x))
    for half, direction in zip(
        (layer.forward_layer, layer.backward_layer), (1, -1), strict=True
    ):
        states = references.numpy_rin(
            x[:, ::direction], half.get_weights(), "relu"
        )
        part = output[:, :4] if direction == 1 else output[:, 4:]
        assert_same(part, states[:, -1])


def test_arguments_read_as_on_simple_rnn():
    ours, theirs = RIN(4), keras.layers.SimpleRNN(4)
    missing = [name for name in theirs.get_config() if not hasattr(ours, name)]
    assert missing == []


@pytest.mark.one_backend
@pytest.mark.parametrize(
    "shape, message",
    [
        ((2, 5), "expected ndim=3, found ndim=2"),
        ((2, 5, 1, 1), "expected ndim=3, found ndim=4"),
        ((2, 5, 4), "expected axis -1 of input shape to have value 3"),
    ],
)
def test_inputs_must_fit(shape, message):
    rin = built_rin(4, (None, None, 3))
    with pytest.raises(ValueError, match=message):
        rin(np.ones(shape))


def test_a_sequence_has_at_least_one_step():
    with pytest.raises(ValueError, match="at least one time step"):
        RIN(3)(np.ones((2, 0, 1)))


def test_float64_input_is_cast_to_the_policy(rng):
    x = rng.normal(size=(2, 5, 1))
    rin = built_rin(3, x.shape)
    assert_same(rin(x), rin(x.astype("float32")), rtol=0, atol=0)


def test_the_number_of_features_must_be_known():
    with pytest.raises(ValueError, match="number of features"):
        RIN(3)(keras.Input((5, None)))


@pytest.mark.one_backend
@pytest.mark.parametrize("shape", [(2,), (2, 4), (3, 5), (2, 5, 1)])
def test_a_mask_must_fit(shape):
    with pytest.raises(
        ValueError, match=r"`mask` must have the shape \(2, 5\)"
    ):
        RIN(3)(np.ones((2, 5, 1)), mask=np.ones(shape, bool))


@pytest.mark.one_backend
@pytest.mark.parametrize("shape", [(3,), (2, 4), (1, 3)])
def test_an_initial_state_must_fit(shape):
    with pytest.raises(ValueError, match="`initial_state` must have the shape"):
        RIN(3)(np.ones((2, 5, 1)), initial_state=np.ones(shape))


@pytest.mark.one_backend
@pytest.mark.parametrize("count", [0, 2])
@pytest.mark.parametrize("training", [False, True])
def test_an_initial_state_is_one_tensor(count, training):
    states = [np.ones((2, 3), "float32")] * count
    with pytest.raises(ValueError, match=f"one tensor.*: {count} tensors"):
        RIN(3)(np.ones((2, 5, 1)), initial_state=states, training=training)


def test_unrolled_steps_under_a_mask_are_not_set_to_zero():
    rin = RIN(3, unroll=True, zero_output_for_mask=True, name="mine")
    rin(np.ones((2, 5, 1)))
    with pytest.raises(ValueError, match="mine.*only with `unroll=False`"):
        rin(np.ones((2, 5, 1)), mask=np.ones((2, 5), bool))


def test_a_batch_may_be_empty():
    assert RIN(3)(np.ones((0, 5, 1)), training=True).shape == (0, 3)


def test_an_input_shape_builds_a_model():
    with pytest.warns(UserWarning, match="Do not pass an `input_shape`"):
        model = keras.Sequential([RIN(4, input_shape=(8, 3))])
    assert model.output_shape == (None, 4)


@pytest.mark.parametrize("fused", [False, "auto"])
def test_the_policy_may_change_later(rng, fused):
    x = rng.normal(size=(2, 6, 3)).astype("float32")
    rin = built_rin(4, x.shape, fused=fused)
    exact = to_numpy(rin(x, training=True))
    rin.dtype_policy = "mixed_bfloat16"
    rounded = keras.ops.cast(rin(x, training=True), "float32")
    assert_same(rounded, exact, rtol=0.05, atol=0.05)
    assert not np.array_equal(to_numpy(rounded), exact)


def test_without_autocast_it_runs_in_mixed_precision(rng):
    x = rng.normal(size=(2, 6, 3)).astype("float32")
    rin = RIN(4, autocast=False, dtype="mixed_bfloat16")
    assert rin(x, training=True).shape == (2, 4)
    assert not rin.autocast


def test_stateful_needs_a_batch_size():
    with pytest.raises(ValueError, match="batch size must be static"):
        RIN(3, stateful=True)(keras.Input((5, 1)))


def test_unknown_arguments_are_refused():
    with pytest.raises(ValueError, match="Unrecognized keyword.*'unit'"):
        RIN(3, unit=4)


@pytest.mark.parametrize(
    "ours, of_keras",
    [
        (RIN, keras.layers.SimpleRNN),
        (RINCell, keras.layers.SimpleRNNCell),
        (DeepTransitionRINCell, keras.layers.SimpleRNNCell),
    ],
)
def test_the_positional_arguments_are_those_of_keras(ours, of_keras):
    assert positional_arguments(ours) == positional_arguments(of_keras)
    layer = ours(
        3, "tanh", True, "glorot_uniform", Offset("orthogonal"), "ones"
    )
    assert layer.activation is keras.activations.tanh
    assert isinstance(layer.bias_initializer, keras.initializers.Ones)


def positional_arguments(layer):
    return [
        parameter.name
        for parameter in inspect.signature(layer).parameters.values()
        if parameter.kind is parameter.POSITIONAL_OR_KEYWORD
    ]
