"""RIN over sequences: its formula in NumPy's float64, and Keras's options."""

import inspect

import keras
import numpy as np
import pytest
import references
from cases import diagonal
from cases import first_of
from cases import one_backend_after
from cases import table
from references import assert_same
from references import to_numpy

from keras_rin.initializers import Offset
from keras_rin.layers import RIN
from keras_rin.layers import DeepTransitionRINCell
from keras_rin.layers import RINCell

X = np.random.default_rng(0).normal(size=(4, 6, 3)).astype("float32")
MASKS = {
    name: np.stack([np.array(pattern, bool), np.ones(6, bool)] * 2)
    for name, pattern in {
        "leading": [0, 0, 1, 1, 1, 1],
        "trailing": [1, 1, 1, 1, 0, 0],
        "alternating": [1, 0, 1, 0, 1, 0],
        "whole row": [0, 0, 0, 0, 0, 0],
        "one step": [0, 0, 0, 1, 0, 0],
    }.items()
}


def built_rin(units=5, shape=X.shape, **kwargs):
    normal = keras.initializers.RandomNormal
    rin = RIN(
        units,
        recurrent_initializer=normal(stddev=0.3 / units**0.5),
        bias_initializer=normal(stddev=0.1),
        **kwargs,
    )
    rin.build(shape)
    return rin


def states_of(rin, x=X, activation="relu", **kwargs):
    return references.numpy_rin(x, rin.get_weights(), activation, **kwargs)


@pytest.mark.parametrize(
    "units, activation",
    first_of(
        diagonal([64, 1, 2, 17], [*references.ACTIVATIONS, "softplus"]),
        *(2, pytest.mark.one_backend),
    ),
)
def test_rin_is_simple_rnn_with_the_effective_kernel(units, activation):
    rin = built_rin(units, activation=activation)
    assert_same(rin(X), references.simple_rnn_of(rin)(X))


@pytest.mark.parametrize(
    "activation, mask", [("softplus", None), ("relu", "alternating")]
)
def test_gradients_are_those_of_simple_rnn(rng, activation, mask):
    y = rng.normal(size=(4, 8)).astype("float32")
    rin = built_rin(8, activation=activation)
    kwargs = {"mask": MASKS[mask]} if mask else {}
    actual, expected = (
        references.gradients(layer, X, y, **kwargs)
        for layer in (rin, references.simple_rnn_of(rin))
    )
    assert_same(actual, expected)


@pytest.mark.parametrize("name, go_backwards", table(MASKS, [False, True]))
def test_masks_act_as_on_simple_rnn(name, go_backwards):
    rin = built_rin(go_backwards=go_backwards, return_sequences=True)
    expected = references.simple_rnn_of(rin)(X, mask=MASKS[name])
    assert_same(rin(X, mask=MASKS[name]), expected)


@pytest.mark.one_backend
@pytest.mark.parametrize("name", MASKS)
def test_masked_steps_leave_the_state_as_it_is(name):
    rin, mask = built_rin(), MASKS[name]
    assert_same(rin(X, mask=mask), states_of(rin, mask=mask)[:, -1])


def test_masked_steps_can_give_zeros():
    rin = built_rin(return_sequences=True, zero_output_for_mask=True)
    mask = MASKS["alternating"]
    output = to_numpy(rin(X, mask=mask))
    np.testing.assert_array_equal(output[~mask], 0)
    assert np.abs(output[mask]).max() > 0


@pytest.mark.one_backend
def test_a_masking_layer_before_acts_like_the_mask():
    x, rin = X.copy(), built_rin()
    x[0, 4:] = 0
    model = keras.Sequential([keras.Input((6, 3)), keras.layers.Masking(), rin])
    assert_same(model(x), rin(x, mask=(x != 0).any(axis=-1)))


@pytest.mark.one_backend
def test_going_backwards_reads_the_sequence_from_its_end():
    rin = built_rin(go_backwards=True, return_sequences=True)
    assert_same(rin(X), states_of(rin, X[:, ::-1]))


def test_unrolled_is_the_same():
    rin = built_rin(unroll=True)
    assert_same(rin(X), states_of(rin)[:, -1])


def test_the_initial_state_is_the_state_before_the_first_step(rng):
    h = rng.normal(size=(4, 5)).astype("float32")
    rin = built_rin()
    for initial_state in (h, [h]):
        outputs = rin(X, initial_state=initial_state)
        assert_same(outputs, states_of(rin, h=h)[:, -1])


def test_the_returned_state_is_the_last_output():
    outputs, state = built_rin(return_sequences=True, return_state=True)(X)
    assert_same(outputs[:, -1], state, 0, 0)


@pytest.mark.parametrize("recurrent_dropout", [0.0, 0.5])
def test_a_zero_offset_holds_the_state(recurrent_dropout):
    rin = RIN(
        5, recurrent_initializer="zeros", recurrent_dropout=recurrent_dropout
    )
    h = np.arange(10, dtype="float32").reshape(2, 5)
    last = rin(np.zeros((2, 300, 1)), initial_state=h, training=True)
    assert_same(last, h, 0, 0)


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
    assert_same(rin(np.zeros((1, 1, 1)), initial_state=h), h + 25.5)
    # Each of the k units that are left counts twice, and every h adds 1 to it.
    added = np.unique(to_numpy(dropped) - h)
    assert added.size == 1 and added % 1 == 0 and 0 < added < 51


def test_dropout_repeats_with_its_seed():
    outputs = []
    for seed in (7, 7, 8):
        keras.utils.set_random_seed(0)
        rin = built_rin(dropout=0.5, seed=seed)
        outputs.append(to_numpy(rin(X, training=True)))
    np.testing.assert_array_equal(outputs[0], outputs[1])
    assert not np.array_equal(outputs[0], outputs[2])


def test_the_activity_regularizer_is_counted():
    rin = built_rin(activity_regularizer="l2")
    # Which is not divided by the batch size in older versions.
    reference = keras.layers.ActivityRegularization(l2=0.01)
    reference(rin(X))
    assert_same(rin.losses[0], reference.losses[0])


@pytest.mark.one_backend
def test_regularizers_and_constraints_act_on_the_offset():
    rin = built_rin(
        recurrent_regularizer="l2", recurrent_constraint="non_neg", units=3
    )
    rin.cell.recurrent_kernel.assign(-np.ones((3, 3)))
    assert_same(rin.losses[0], 0.01 * 9)
    constrained = rin.cell.recurrent_kernel.constraint(-np.ones((3, 3)))
    assert_same(constrained, np.zeros((3, 3)))


def test_a_frozen_layer_trains_nothing():
    assert built_rin(trainable=False).trainable_weights == []


@pytest.mark.parametrize(
    "wrap",
    one_backend_after(
        [
            lambda: keras.layers.Bidirectional(RIN(4, return_sequences=True)),
            lambda: keras.layers.TimeDistributed(RIN(4)),
            lambda: keras.layers.RNN(
                keras.layers.StackedRNNCells([RIN(4).cell, RIN(3).cell])
            ),
        ]
    ),
    ids=["Bidirectional", "TimeDistributed", "StackedRNNCells"],
)
def test_keras_wrappers_take_it(rng, wrap):
    layer = wrap()
    nested = isinstance(layer, keras.layers.TimeDistributed)
    x = rng.normal(size=(2, 3, 6, 2) if nested else (2, 6, 2))
    model = keras.Sequential([keras.Input(x.shape[1:]), layer])
    model.compile("sgd", "mse")
    shape = model.output_shape[1:]
    model.fit(x, np.zeros((2, *shape)), verbose=0)
    assert model.predict(x, verbose=0).shape == (2, *shape)


@pytest.mark.one_backend
def test_bidirectional_is_one_rin_each_way():
    layer = keras.layers.Bidirectional(RIN(4))
    output = to_numpy(layer(X))
    forward = states_of(layer.forward_layer)[:, -1]
    backward = states_of(layer.backward_layer, X[:, ::-1])[:, -1]
    assert_same(output, np.concatenate([forward, backward], axis=1))


def test_arguments_read_as_on_simple_rnn():
    ours, theirs = RIN(4), keras.layers.SimpleRNN(4)
    missing = [name for name in theirs.get_config() if not hasattr(ours, name)]
    assert missing == []


def state(*shape):
    return {"initial_state": np.ones(shape, "float32")}


def two_states(training):
    two = [np.ones((2, 3), "float32")] * 2
    return {"initial_state": two, "training": training}


def mask(*shape):
    return {"mask": np.ones(shape, bool)}


UNROLLED = {"unroll": True, "zero_output_for_mask": True, "name": "mine"}


@pytest.mark.one_backend
@pytest.mark.parametrize(
    "options, shape, arguments, message",
    [
        ({}, (4, 6), {}, "expected ndim=3, found ndim=2"),
        ({}, (4, 6, 4), {}, "axis -1 of input shape to have value 3"),
        *[
            ({}, (2, 5, 3), mask(*shape), r"`mask` must have .* \(2, 5\)")
            for shape in [(2,), (2, 4), (3, 5), (2, 5, 1)]
        ],
        *[
            ({}, (2, 5, 3), state(*shape), "`initial_state` must have the")
            for shape in [(3,), (2, 4), (1, 3)]
        ],
        ({}, (2, 5, 3), two_states(False), "one tensor.*: 2 tensors"),
        ({}, (2, 5, 3), two_states(True), "one tensor.*: 2 tensors"),
        (UNROLLED, (2, 5, 3), mask(2, 5), "mine.*only with `unroll=False`"),
    ],
)
def test_inputs_that_do_not_fit_are_refused(options, shape, arguments, message):
    rin = built_rin(3, (None, None, 3), **options)
    with pytest.raises(ValueError, match=message):
        rin(np.ones(shape), **arguments)


def test_a_batch_may_be_empty():
    assert RIN(3)(np.ones((0, 5, 1)), training=True).shape == (0, 3)


@pytest.mark.parametrize("fused", [False, "auto"])
def test_the_policy_may_change_later(fused):
    rin = built_rin(fused=fused)
    exact = to_numpy(rin(X, training=True))
    rin.dtype_policy = "mixed_bfloat16"
    rounded = keras.ops.cast(rin(X, training=True), "float32")
    assert_same(rounded, exact, rtol=0.05, atol=0.05)
    assert not np.array_equal(to_numpy(rounded), exact)


def test_without_autocast_it_runs_in_mixed_precision():
    rin = RIN(4, autocast=False, dtype="mixed_bfloat16")
    assert rin(X, training=True).shape == (4, 4)
    assert not rin.autocast


@pytest.mark.parametrize(
    "ours, of_keras",
    [
        (RIN, keras.layers.SimpleRNN),
        (RINCell, keras.layers.SimpleRNNCell),
        (DeepTransitionRINCell, keras.layers.SimpleRNNCell),
    ],
)
def test_the_positional_arguments_are_those_of_keras(ours, of_keras):
    names = [
        [
            parameter.name
            for parameter in inspect.signature(kind).parameters.values()
            if parameter.kind is parameter.POSITIONAL_OR_KEYWORD
        ]
        for kind in (ours, of_keras)
    ]
    assert names[0] == names[1]
    layer = ours(
        3, "tanh", True, "glorot_uniform", Offset("orthogonal"), "ones"
    )
    assert layer.activation is keras.activations.tanh
    assert isinstance(layer.bias_initializer, keras.initializers.Ones)
