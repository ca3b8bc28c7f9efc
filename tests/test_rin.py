"""RIN over sequences: a SimpleRNN of U + I, with all options of Keras."""

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


def mask_of(name):
    mask = references.MASKS[name](6, 4)
    return None if mask is None else mask.T


def assert_is_simple_rnn(rin, **arguments):
    outputs, expected = (
        keras.tree.flatten(layer(X, **arguments))
        for layer in (rin, references.simple_rnn_of(rin))
    )
    assert_same(outputs, expected)


@pytest.mark.parametrize(
    "units, activation",
    first_of(
        diagonal([64, 1, 2, 17], [*references.ACTIVATIONS, "softplus"]),
        *(2, pytest.mark.one_backend),
    ),
)
def test_rin_is_simple_rnn_with_the_effective_kernel(units, activation):
    assert_is_simple_rnn(built_rin(units, activation=activation))


@pytest.mark.parametrize(
    "options",
    [
        {"unroll": True},
        {"return_sequences": True, "return_state": True},
        {"go_backwards": True, "return_sequences": True},
        {"use_bias": False},
    ],
)
def test_options_and_initial_states_act_as_on_simple_rnn(rng, options):
    h = rng.normal(size=(4, 5)).astype("float32")
    assert_is_simple_rnn(built_rin(**options), initial_state=h)
    assert_is_simple_rnn(built_rin(**options), initial_state=[h])


@pytest.mark.parametrize(
    "name, go_backwards", table(references.MASKS, [False, True])
)
def test_masks_act_as_on_simple_rnn(name, go_backwards):
    rin = built_rin(go_backwards=go_backwards, return_sequences=True)
    assert_is_simple_rnn(rin, mask=mask_of(name))


@pytest.mark.parametrize(
    "activation, mask", [("softplus", "none"), ("relu", "alternating")]
)
def test_gradients_are_those_of_simple_rnn(rng, activation, mask):
    y = rng.normal(size=(4, 8)).astype("float32")
    rin = built_rin(8, activation=activation)
    actual, expected = (
        references.gradients(layer, X, y, mask=mask_of(mask))
        for layer in (rin, references.simple_rnn_of(rin))
    )
    assert_same(actual, expected)


def test_masked_steps_can_give_zeros():
    rin = built_rin(return_sequences=True, zero_output_for_mask=True)
    mask = mask_of("alternating")
    expected = references.numpy_rin(X, rin.get_weights(), "relu", mask=mask)
    assert_same(rin(X, mask=mask), expected * mask[..., None])


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


def test_a_frozen_layer_trains_nothing():
    assert built_rin(trainable=False).trainable_weights == []


@pytest.mark.parametrize(
    "wrap",
    one_backend_after(
        [
            lambda: keras.layers.Bidirectional(RIN(4, return_sequences=True)),
            lambda: keras.layers.TimeDistributed(RIN(4)),
            lambda: keras.layers.RNN([RIN(4).cell, RIN(3).cell]),
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


def test_arguments_read_as_on_simple_rnn():
    ours, theirs = RIN(4), keras.layers.SimpleRNN(4)
    missing = [name for name in theirs.get_config() if not hasattr(ours, name)]
    assert missing == []


def state(*shape):
    return {"initial_state": np.ones(shape, "float32")}


def two_states(training):
    two = [np.ones((2, 3), "float32")] * 2
    return {"initial_state": two, "training": training}


def ones(*shape):
    return {"mask": np.ones(shape, bool)}


UNROLLED = {"unroll": True, "zero_output_for_mask": True, "name": "mine"}


@pytest.mark.one_backend
@pytest.mark.parametrize(
    "options, shape, arguments, message",
    [
        ({}, (4, 6), {}, "expected ndim=3, found ndim=2"),
        ({}, (4, 6, 4), {}, "axis -1 of input shape to have value 3"),
        *[
            ({}, (2, 5, 3), ones(*shape), r"`mask` must have .* \(2, 5\)")
            for shape in [(2,), (2, 4), (3, 5), (2, 5, 1)]
        ],
        *[
            ({}, (2, 5, 3), state(*shape), "`initial_state` must have the")
            for shape in [(3,), (2, 4), (1, 3)]
        ],
        ({}, (2, 5, 3), two_states(False), "one tensor.*: 2 tensors"),
        ({}, (2, 5, 3), two_states(True), "one tensor.*: 2 tensors"),
        (UNROLLED, (2, 5, 3), ones(2, 5), "mine.*only with `unroll=False`"),
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
    names, expected = (
        [
            parameter.name
            for parameter in inspect.signature(kind).parameters.values()
            if parameter.kind is parameter.POSITIONAL_OR_KEYWORD
        ]
        for kind in (ours, of_keras)
    )
    assert names == expected
    layer = ours(
        3, "tanh", True, "glorot_uniform", Offset("orthogonal"), "ones"
    )
    assert layer.activation is keras.activations.tanh
    assert isinstance(layer.bias_initializer, keras.initializers.Ones)
