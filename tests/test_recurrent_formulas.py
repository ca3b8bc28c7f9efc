"""The outputs of each recurrent layer are its formula, computed in NumPy."""

from functools import partial

import keras
import numpy as np
import pytest
from cases import first_of
from references import ACTIVATIONS
from references import MASKS
from references import assert_same
from references import built
from references import numpy_states
from references import outputs_of_steps
from references import residual_step
from references import rin_step
from references import to_numpy
from references import weights64
from step_files import ON_TENSORFLOW
from step_files import write_and_run

from keras_rin import layers
from keras_rin.diagnostics import state_jacobians
from keras_rin.diagnostics import state_trajectories
from keras_rin.export import streaming_step

sigmoid = ACTIVATIONS["sigmoid"]


def deep_transition_step(weights, x, h):
    kernel, *first, second, bias = weights
    h = rin_step("relu")([kernel, *first], x, h)
    return np.maximum(h @ second + h + bias, 0)


def min_gru_step(weights, x, h):
    kernel, bias = weights
    gate, candidate = np.split(x @ kernel + bias, 2, axis=-1)
    gate = sigmoid(gate)
    return (1 - gate) * h + gate * candidate


def rate_step(activation):
    """With dt / tau = 0.1, of a matrix or of the two factors of one."""

    def step(weights, x, h):
        kernel, *factors, bias = weights
        matrix = factors[0]
        if len(factors) > 1:
            matrix = factors[0] @ factors[1].T / h.shape[-1]
        drive = ACTIVATIONS[activation](h) @ matrix + x @ kernel + bias
        return 0.9 * h + 0.1 * drive

    return step


def rnn(cell, layer=keras.layers.RNN, *arguments):
    return lambda units, **options: layer(cell(units), *arguments, **options)


SILENT = partial(layers.NoisyRNN, stddev=1.0, inference_noise=False)
RATE = partial(layers.RateRNN, tau=5.0, dt=0.5, noise=3.0)
# What makes a layer of units and options, and its step in NumPy.
LAYERS = {
    "RIN": (partial(layers.RIN, activation="tanh"), rin_step("tanh")),
    "RINCell": (rnn(layers.RINCell), rin_step("relu")),
    "NoisyRNN": (rnn(layers.RINCell, SILENT), rin_step("relu")),
    "two transitions": (
        rnn(layers.DeepTransitionRINCell),
        deep_transition_step,
    ),
    "MinGRU": (layers.MinGRU, min_gru_step),
    "MinGRU, parallel": (
        partial(layers.MinGRU, parallel=True),
        min_gru_step,
    ),
    "ResidualRNN": (
        partial(layers.ResidualRNN, inner_units=7, activation="tanh"),
        residual_step("tanh"),
    ),
    "ResidualRNNCell": (
        rnn(partial(layers.ResidualRNNCell, inner_units=3)),
        residual_step("relu"),
    ),
    "RateRNN": (RATE, rate_step("tanh")),
    "RateRNNCell": (
        rnn(partial(layers.RateRNNCell, tau=5.0, dt=0.5)),
        rate_step("tanh"),
    ),
    "rank 2": (
        partial(RATE, rank=2, activation="sigmoid"),
        rate_step("sigmoid"),
    ),
    "rank 1": (partial(RATE, rank=1, activation=None), rate_step("linear")),
}


def drawn(rng, make, **options):
    """A layer of 4 units with random weights, and these in float64."""
    layer = built(make(4, **options))
    layer.set_weights(
        [rng.normal(0, 0.5, w.shape) for w in layer.get_weights()]
    )
    return layer, weights64(layer)


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("mask, order", [("none", 1), ("alternating", -1)])
def test_outputs_are_the_formula_step_by_step(rng, name, mask, order):
    """Forwards and backwards; a masked step leaves the state as it is."""
    make, step = LAYERS[name]
    options = {"return_sequences": True, "go_backwards": order < 0}
    layer, weights = drawn(rng, make, **options)
    x, h = rng.normal(size=(3, 7, 2)), rng.normal(size=(3, 4))
    mask = MASKS[mask](7, 3)
    mask = np.ones((3, 7), bool) if mask is None else mask.T
    outputs = layer(
        x.astype("float32"), mask=mask, initial_state=h.astype("float32")
    )
    x, mask = x[:, ::order], mask[:, ::order]
    expected = numpy_states(step, weights, x, h, mask)
    assert_same(to_numpy(outputs)[mask], expected[mask])


@pytest.mark.one_backend
@pytest.mark.parametrize(
    "name, format",
    [
        *((name, "c") for name in ("RateRNN", "rank 2", "ResidualRNN")),
        *(
            pytest.param(
                *("ResidualRNN", format),
                marks=[pytest.mark.runtime, ON_TENSORFLOW],
            )
            for format in ("tf_saved_model", "litert", "onnx")
        ),
    ],
)
def test_steps_are_computed_in_streams_and_in_files(
    rng, name, format, tmp_path
):
    """The chains of `test_every_format.py` have the other layers."""
    make, step = LAYERS[name]
    layer, weights = drawn(rng, make, return_sequences=True)
    model = keras.Sequential([keras.Input((None, 2)), layer])
    x = rng.normal(size=(3, 6, 2)).astype("float32")
    expected = numpy_states(step, weights, x, np.zeros((3, 4)))
    assert_same(outputs_of_steps(streaming_step(model), x), expected)
    assert_same(write_and_run(model, format, tmp_path, x), expected)


def numpy_lstm(weights, x, state):
    kernel, recurrent, bias = weights
    h, c = np.split(state, 2)
    i, f, g, o = np.split(x @ kernel + h @ recurrent + bias, 4)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    return np.concatenate([sigmoid(o) * np.tanh(c), c])


def numpy_gru(weights, x, h):
    kernel, recurrent, (bias, recurrent_bias) = weights
    x_z, x_r, x_h = np.split(x @ kernel + bias, 3)
    h_z, h_r, h_h = np.split(h @ recurrent + recurrent_bias, 3)
    z = sigmoid(x_z + h_z)
    return z * h + (1 - z) * np.tanh(x_h + sigmoid(x_r + h_r) * h_h)


def differences(step, state, size=1e-6):
    """d F / d s by central differences, an output each row."""
    nudges = size * np.eye(len(state))
    return np.transpose(
        [(step(state + n) - step(state - n)) / (2 * size) for n in nudges]
    )


@pytest.mark.parametrize(
    "make, step",
    first_of(
        [
            (keras.layers.LSTM, numpy_lstm),
            (keras.layers.GRU, numpy_gru),
            *LAYERS.values(),
            (keras.layers.SimpleRNN, rin_step("tanh", stored=0.0)),
        ],
        *(3, pytest.mark.one_backend),
    ),
)
def test_states_and_jacobians_are_those_of_numpy(rng, make, step):
    layer, weights = drawn(rng, make)
    x = rng.normal(size=(2, 4, 2))
    for dtype, state_error, jacobian_error in [
        ("float32", 1e-4, 1e-4),
        ("float64", 1e-12, 1e-7),
    ]:
        states = state_trajectories(layer, x, dtype=dtype)
        jacobians = state_jacobians(layer, x, dtype=dtype)
        size = states.shape[-1]
        assert states.dtype == jacobians.dtype == dtype
        assert states.shape == (2, 5, size) and not states[:, 0].any()
        assert jacobians.shape == (2, 4, size, size)
        for row, t in np.ndindex(2, 4):

            def numpy_step(state, x_t=x[row, t]):
                return step(weights, x_t, state)

            state = states[row, t].astype("float64")
            new = numpy_step(state)
            np.testing.assert_allclose(
                states[row, t + 1], new, state_error, state_error
            )
            expected = differences(numpy_step, state)
            np.testing.assert_allclose(
                jacobians[row, t], expected, jacobian_error, jacobian_error
            )


@pytest.mark.one_backend
def test_the_gate_of_a_min_gru_begins_at_its_bias():
    layer = built(layers.MinGRU(3, bias_initializer="ones"))
    np.testing.assert_array_equal(layer.get_weights()[1], [-3] * 3 + [1] * 3)


@pytest.mark.parametrize("parallel", [False, True])
def test_dropout_of_a_min_gru_has_one_mask_for_all_steps(parallel):
    layer = layers.MinGRU(
        64,
        kernel_initializer="ones",
        gate_bias=50,
        dropout=0.5,
        seed=1,
        parallel=parallel,
    )
    layer.return_sequences = True
    outputs = to_numpy(layer(np.ones((4, 5, 1)), training=True))
    assert {*np.unique(outputs.round(4))} == {0.0, 2.0}
    np.testing.assert_array_equal(outputs, np.repeat(outputs[:, :1], 5, axis=1))


@pytest.mark.one_backend
@pytest.mark.parametrize("make", [layers.MinGRU, layers.MinGRUCell])
@pytest.mark.parametrize(
    "options",
    [{"recurrent_dropout": 0.1}, {"reset_after": True}, {"implementation": 1}],
)
def test_what_has_no_meaning_in_a_min_gru_is_refused(make, options):
    with pytest.raises(TypeError, match=f"Received: {next(iter(options))}"):
        make(3, **options)


def test_a_scan_of_a_thousand_steps_is_the_loop(rng):
    """Outputs and gradients, with gates that are nearly shut and open."""
    options = {"return_sequences": True, "stateful": True}
    x = keras.Input(batch_shape=(2, 1_000, 2))
    scan, loop = (
        keras.Model(x, layers.MinGRU(4, **options, parallel=parallel)(x))
        for parallel in (True, False)
    )
    weights = [rng.normal(0, 4, w.shape) for w in loop.get_weights()]
    data = rng.normal(size=(2, 1_000, 2)).astype("float32")
    for model in (scan, loop):
        model.set_weights(weights)
        optimizer = keras.optimizers.SGD(0.1)
        model.compile(optimizer, "mse", jit_compile=model is scan)
        model.predict(data, verbose=0)  # the state of the second batch
    expected = numpy_states(min_gru_step, weights, data, np.zeros((2, 4)))
    expected = numpy_states(min_gru_step, weights, data, expected[:, -1])
    outputs = scan.predict(data, verbose=0)
    assert_same(outputs, expected)
    assert_same(outputs, loop.predict(data, verbose=0))
    for model in (scan, loop):
        model.train_on_batch(data, np.ones((2, 1_000, 4)))
    assert_same(scan.get_weights(), loop.get_weights())


def test_a_scan_in_half_precision_does_not_round_its_gates():
    """1 - 0.001 is 1 in bfloat16, and 1,000 steps would forget nothing."""
    layer = built(layers.MinGRU(1, dtype="mixed_bfloat16", parallel=True))
    gate = np.log(0.001 / 0.999)
    layer.set_weights([np.zeros((2, 2)), np.array([gate, 0.0])])
    zeros, ones = np.zeros((1, 1_000, 2)), np.ones((1, 1))
    state = keras.ops.cast(layer(zeros, initial_state=ones), "float32")
    assert_same(state, [[0.999**1_000]], rtol=0.02)


@pytest.mark.one_backend
def test_a_scan_that_is_not_possible_is_refused():
    with pytest.raises(ValueError, match="without `unroll=True`"):
        layers.MinGRU(3, unroll=True, parallel=True)
    with pytest.raises(ValueError, match='"auto", True or False. Received'):
        layers.MinGRU(3, parallel="yes")
    layer = built(layers.MinGRU(3, parallel=True))
    with pytest.raises(ValueError, match="a known number of time steps"):
        layer.inner_loop(keras.Input((None, 2)), None, None)
