"""What the inputs alone do to the state, against simulations in NumPy."""

import keras
import numpy as np
import pytest
from cases import first_of
from references import assert_same
from references import built
from references import simple_rnn
from references import to_numpy

from keras_rin.diagnostics import input_drift
from keras_rin.diagnostics import state_norms
from keras_rin.initializers import Chain
from keras_rin.initializers import Offset
from keras_rin.layers import RIN
from keras_rin.layers import DeepTransitionRINCell

STATES = {
    "identity": "zeros",
    "noise": keras.initializers.RandomNormal(stddev=0.05, seed=1),
    "orthogonal": Offset(keras.initializers.Orthogonal(seed=1)),
    "chain": Offset(Chain(0.9)),
}


def deep_transition(units, activation, **options):
    cell = DeepTransitionRINCell(units, activation, **options)
    return keras.layers.RNN(cell)


@pytest.mark.parametrize(
    "kind, initializer",
    [*[(RIN, name) for name in STATES], (deep_transition, "orthogonal")],
)
def test_it_is_the_mean_and_spread_of_many_linear_networks(
    kind, initializer, rng
):
    layer = built(kind(4, None, recurrent_initializer=STATES[initializer]))
    for weight in layer.weights:
        if weight.ndim == 1:
            weight.assign(rng.normal(size=4))
    x = rng.normal(0.5, [1.0, 0.3], size=(20_000, 12, 2)).astype("float32")
    last = to_numpy(layer(x)).astype("float64")
    drift, spread = input_drift(layer, x)
    error = 5 * spread.max() / np.sqrt(len(x))
    np.testing.assert_allclose(drift, last.mean(axis=0), atol=error)
    np.testing.assert_allclose(spread, last.std(axis=0), atol=error)


def test_masked_time_steps_are_left_out_in_the_order_of_the_data(rng):
    initializer = STATES["noise"]
    layer = RIN(3, recurrent_initializer=initializer, go_backwards=True)
    built(layer)
    x = rng.random((6, 10, 2))
    padded = np.concatenate([x, np.full((6, 5, 2), 100.0)], axis=1)
    mask = np.repeat([[True, False]], [10, 5], axis=1).repeat(6, axis=0)
    padded_drift = input_drift(layer, padded, mask=mask)
    assert_same(
        list(padded_drift), list(input_drift(layer, x)), rtol=1e-7, atol=1e-12
    )
    mask[:3, :8] = False  # three sequences of two steps, three of ten
    mean = np.concatenate([x[:3, 8:].reshape(-1, 2), x[3:].reshape(-1, 2)])
    same_mean = np.tile(mean.mean(axis=0), (1, 10, 1))
    drift, _ = input_drift(layer, padded, mask=mask)
    np.testing.assert_allclose(drift, input_drift(layer, same_mean)[0])


def test_beyond_float64_drift_and_spread_are_infinite(rng):
    """Also where infinite terms have both signs."""
    layer = built(RIN(3, kernel_initializer="ones"), features=1)
    layer.cell.recurrent_kernel.assign(10 * rng.normal(size=(3, 3)))
    drift, spread = input_drift(layer, rng.normal(1, 1, size=(4, 1000, 1)))
    assert np.isinf([drift, spread]).all()


@pytest.mark.parametrize("size", [1e-30, 1e25])
def test_norms_whose_squares_leave_float32_are_found(size):
    layer = RIN(4, kernel_initializer="ones", recurrent_initializer="zeros")
    norms = state_norms(built(layer, 1), np.full((3, 2, 1), size))
    np.testing.assert_allclose(norms, size * np.array([0, 2, 4]), rtol=1e-5)


@pytest.mark.skipif(
    keras.backend.backend() == "torch",
    reason="Keras 3.15 multiplies matrices in float32 on Torch",
)
def test_norms_of_a_float64_layer_are_in_float64(float64):
    layer = simple_rnn(np.array([[1e20]]), None)
    layer.cell.kernel.assign([[1.0]])
    norms = state_norms(layer, np.array([[[1.0], [0.0], [0.0]]]))
    np.testing.assert_allclose(norms, [0, 1, 1e20, 1e40], rtol=1e-6)


@pytest.mark.one_backend
def test_drift_of_another_cell_is_refused():
    class Own(keras.layers.SimpleRNNCell):
        """A cell that may do anything with its matrices."""

    for cell in (built(keras.layers.GRUCell(3)), built(Own(3))):
        with pytest.raises(ValueError, match="for SimpleRNN, RIN and their"):
            input_drift(cell, np.ones((4, 5, 2)))


def test_states_beyond_float32_are_infinite_or_refused():
    layer = simple_rnn(1e30 * np.eye(2), "linear")
    layer.cell.kernel.assign(np.ones((1, 2)))
    norms = state_norms(layer, np.ones((2, 3, 1)))
    np.testing.assert_allclose(norms[:3], [0, 2**0.5, 2**0.5 * 1e30], rtol=1e-5)
    assert norms[3] == np.inf or norms[3] > 1e38
    layer.cell.recurrent_kernel.assign([[1e30, 1e30], [1e30, -1e30]])
    with pytest.raises(ValueError, match="become NaN along `x`.*from step"):
        state_norms(layer, np.ones((1, 6, 1)))


@pytest.mark.parametrize(
    "kind, go_backwards",
    first_of(
        [("LSTM", True), ("GRU", False), ("SimpleRNN", True)],
        mark=pytest.mark.one_backend,
    ),
)
def test_norms_of_a_layer_of_keras_hold_at_masked_time_steps(
    kind, go_backwards, rng
):
    layer = getattr(keras.layers, kind)(
        3, return_sequences=True, go_backwards=go_backwards, dropout=0.5
    )
    x = rng.normal(size=(40, 6, 2)).astype("float32")
    mask = rng.random((40, 6)) < 0.6
    mask[:8] = False
    states = to_numpy(layer(x, mask=mask)).astype("float64")
    expected = np.sqrt((states**2).sum(axis=2).mean(axis=0))
    norms = state_norms(layer, x, mask=mask)
    np.testing.assert_allclose(norms[1:], expected, rtol=1e-4)
