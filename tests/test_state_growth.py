"""What the inputs alone do to the state, against simulations in NumPy."""

import keras
import numpy as np
import pytest
from cases import first_of
from references import assert_same
from references import built
from references import numpy_rin
from references import to_numpy
from references import weights64

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


@pytest.mark.parametrize("initializer", STATES)
def test_it_is_the_mean_and_spread_of_many_linear_networks(initializer, rng):
    layer = built(RIN(4, None, recurrent_initializer=STATES[initializer]))
    layer.cell.bias.assign(rng.normal(size=4))
    x = rng.normal(0.5, [1.0, 0.3], size=(20_000, 12, 2))
    last = numpy_rin(x, weights64(layer), "linear")[:, -1]
    drift, spread = input_drift(layer, x)
    error = 5 * spread.max() / np.sqrt(len(x))
    np.testing.assert_allclose(drift, last.mean(axis=0), atol=error)
    np.testing.assert_allclose(spread, last.std(axis=0), atol=error)


def test_masked_time_steps_are_left_out(rng):
    layer = built(RIN(3, None, recurrent_initializer=STATES["noise"]))
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


@pytest.mark.one_backend
def test_a_mask_is_in_the_order_of_the_data(rng):
    forward, backward = (
        built(RIN(3, go_backwards=go_backwards), features=1)
        for go_backwards in (False, True)
    )
    backward.set_weights(forward.get_weights())
    x, mask = rng.random((2, 6, 1)), np.array([[1, 0, 1, 1, 1, 0]] * 2, bool)
    assert_same(
        list(input_drift(backward, x, mask=mask)),
        list(input_drift(forward, x, mask=mask)),
        rtol=1e-7,
        atol=1e-12,
    )


def test_a_deep_transition_is_followed_through_both(rng):
    layer = keras.layers.RNN(
        DeepTransitionRINCell(
            3,
            None,
            recurrent_initializer=Offset("orthogonal"),
            bias_initializer="ones",
        )
    )
    layer.build((None, None, 2))
    kernel, first, bias, second, shift = weights64(layer)
    x = rng.normal(0.5, 1, size=(20_000, 5, 2))
    h, eye = np.zeros((len(x), 3)), np.eye(3)
    for t in range(5):
        h = x[:, t] @ kernel + h @ (first + eye) + bias
        h = h @ (second + eye) + shift
    drift, spread = input_drift(layer, x)
    error = 5 * spread.max() / np.sqrt(len(x))
    np.testing.assert_allclose(drift, h.mean(axis=0), atol=error)
    np.testing.assert_allclose(spread, h.std(axis=0), atol=error)


def test_beyond_float64_drift_and_spread_are_infinite(rng):
    """Also where infinite terms have both signs."""
    layer = built(RIN(3, kernel_initializer="ones"), features=1)
    layer.cell.recurrent_kernel.assign(10 * rng.normal(size=(3, 3)))
    drift, spread = input_drift(layer, rng.normal(1, 1, size=(4, 1000, 1)))
    assert np.isinf([drift, spread]).all()


@pytest.mark.parametrize("size", [1e-30, 1e25])
def test_norms_whose_squares_leave_float32_are_found(size):
    layer = RIN(4, kernel_initializer="ones", recurrent_initializer="zeros")
    built(layer, features=1)
    norms = state_norms(layer, np.full((3, 2, 1), size))
    np.testing.assert_allclose(norms, size * np.array([0, 2, 4]), rtol=1e-5)


@pytest.mark.skipif(
    keras.backend.backend() == "torch",
    reason="Keras 3.15 multiplies matrices in float32 on Torch",
)
def test_norms_of_a_float64_layer_are_in_float64():
    initializer = keras.initializers.Constant(1e20)
    layer = keras.layers.SimpleRNN(
        1, None, False, "ones", initializer, dtype="float64"
    )
    layer.build((None, None, 1))
    norms = state_norms(layer, np.array([[[1.0], [0.0], [0.0]]]))
    np.testing.assert_allclose(norms, [0, 1, 1e20, 1e40], rtol=1e-6)


@pytest.mark.one_backend
def test_a_cell_need_not_know_the_word_bias(rng):
    layer = built(keras.layers.SimpleRNN(3, use_bias=False))
    x = rng.normal(size=(4, 5, 2))
    expected = input_drift(layer, x)
    cell = keras.layers.Layer()
    cell.kernel, cell.recurrent_kernel = layer.weights
    cell.state_size, cell.built = 3, True
    np.testing.assert_array_equal(input_drift(cell, x), expected)
    del cell.kernel
    with pytest.raises(ValueError, match="with an input kernel"):
        input_drift(cell, x)


def test_states_beyond_float32_are_infinite_or_refused():
    layer = keras.layers.SimpleRNN(2, "relu", kernel_initializer="ones")
    built(layer, features=1)
    layer.cell.recurrent_kernel.assign(1e30 * np.eye(2))
    x = np.ones((2, 4, 1))
    norms = state_norms(layer, x[:, :3])
    np.testing.assert_allclose(norms[:3], [0, 2**0.5, 2**0.5 * 1e30], rtol=1e-5)
    assert norms[3] == np.inf or norms[3] > 1e38
    layer.cell.recurrent_kernel.assign([[1e30, 1e30], [1e30, -1e30]])
    layer.cell.activation = keras.activations.linear
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


def test_gates_have_no_drift(rng):
    layer = built(keras.layers.GRU(3))
    with pytest.raises(ValueError, match="gates"):
        input_drift(layer, rng.normal(size=(4, 5, 2)))
