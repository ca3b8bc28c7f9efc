import keras
import numpy as np
import pytest
from keras import ops
from references import built

import keras_rin
from keras_rin.diagnostics import lyapunov_spectrum
from keras_rin.diagnostics import state_jacobians


def linear(matrix):
    layer = built(keras.layers.SimpleRNN(len(matrix), None), features=1)
    layer.cell.recurrent_kernel.assign(matrix)
    return layer


@pytest.mark.one_backend
def test_of_a_linear_network_they_are_the_logarithms_of_its_eigenvalues(rng):
    basis = rng.normal(size=(5, 5))
    rotation = 0.8 * np.array([[0.6, 0.8], [-0.8, 0.6]])
    blocks = np.diag([1.1, 0.0, 0.0, 0.5, 0.2])
    blocks[1:3, 1:3] = rotation
    matrix = basis @ blocks @ np.linalg.inv(basis)
    spectrum = lyapunov_spectrum(linear(matrix), rng.normal(size=(2, 400, 1)))
    expected = np.log([1.1, 0.8, 0.8, 0.5, 0.2])
    np.testing.assert_allclose(spectrum.exponents, expected, rtol=0.01)
    assert np.isnan(
        lyapunov_spectrum(linear(matrix), np.ones((1, 2, 1))).standard_error
    ).all()
    assert spectrum.convergence.shape == (360, 5)
    np.testing.assert_allclose(spectrum.convergence[-1], spectrum.exponents)


@pytest.mark.parametrize("kind", ["LSTM", "SimpleRNN"])
def test_their_sum_is_the_mean_logarithm_of_the_determinant(rng, kind):
    layer = built(getattr(keras.layers, kind)(3))
    x = rng.normal(size=(4, 20, 2))
    spectrum = lyapunov_spectrum(layer, x, warmup=5)
    jacobians = state_jacobians(layer, x, dtype="float64")[:, 5:]
    _, volumes = np.linalg.slogdet(jacobians)
    np.testing.assert_allclose(spectrum.exponents.sum(), volumes.mean())
    assert (np.diff(spectrum.exponents) <= 0).all()
    first = lyapunov_spectrum(layer, x, exponents=2, warmup=5)
    np.testing.assert_allclose(first.exponents, spectrum.exponents[:2])


class MapCell(keras.layers.Layer):
    """A map of the plane as a cell without weights; inputs move its state."""

    state_size = output_size = 2

    def __init__(self, function):
        super().__init__()
        self.function = function

    def call(self, inputs, states, training=False):
        x, y = ops.split(states[0] + inputs, 2, axis=-1)
        new = ops.concatenate(self.function(x, y), axis=-1)
        return new, [new]


def map_cell(function):
    cell = MapCell(function)
    cell.build((None, 1))
    return cell


@pytest.mark.one_backend
def test_the_henon_map_has_its_known_exponents():
    """Sprott, 2003, Chaos and Time-Series Analysis: 0.41922, -1.62319."""
    cell = map_cell(lambda x, y: (1 - 1.4 * x**2 + y, 0.3 * x))
    x = np.zeros((50, 250, 1))
    x[:, 0, 0] = np.linspace(-0.1, 0.1, 50)
    spectrum = lyapunov_spectrum(cell, x, warmup=50)
    error = 4 * spectrum.standard_error[0]
    assert error < 0.03
    np.testing.assert_allclose(spectrum.exponents, [0.419, -1.623], atol=error)
    np.testing.assert_allclose(spectrum.exponents.sum(), np.log(0.3))


@pytest.mark.one_backend
def test_the_standard_error_is_that_over_sequences(rng):
    layer = built(keras.layers.SimpleRNN(1), features=1)
    x = rng.normal(size=(5, 30, 1))
    slopes = np.log(np.abs(state_jacobians(layer, x, dtype="float64")))[:, 3:]
    means = slopes.mean(axis=(1, 2, 3))
    spectrum = lyapunov_spectrum(layer, x)
    np.testing.assert_allclose(spectrum.exponents, means.mean())
    error = means.std(ddof=1) / np.sqrt(5)
    np.testing.assert_allclose(spectrum.standard_error, error)
    steps = np.arange(1, 28)
    expected = np.cumsum(slopes.mean(axis=(0, 2, 3))) / steps
    np.testing.assert_allclose(spectrum.convergence[:, 0], expected)


@pytest.mark.one_backend
@pytest.mark.parametrize("backwards", [False, True])
def test_masked_time_steps_are_left_out(rng, backwards):
    layer = built(keras.layers.SimpleRNN(1, go_backwards=backwards), features=1)
    mask = rng.random((5, 30)) < [[0.9], [0.5], [0.0], [1.0], [0.7]]
    mask[1, np.flatnonzero(mask[1])[4:]] = False  # ends within the warmup
    x = rng.normal(size=(5, 30, 1))
    spectrum = lyapunov_spectrum(layer, x, warmup=5, mask=mask)
    slopes = []
    for sequence in (0, 3, 4):
        unmasked = x[sequence, mask[sequence]]
        jacobians = state_jacobians(layer, unmasked[None], dtype="float64")
        slopes.append(np.log(np.abs(jacobians[0, 5:, 0, 0])))
    means = [
        np.concatenate([slope[:steps] for slope in slopes]).mean()
        for steps in range(1, 26)
    ]
    np.testing.assert_allclose(spectrum.convergence[:, 0], means)
    np.testing.assert_allclose(spectrum.exponents, means[-1])
    residuals = [(slope - means[-1]).sum() for slope in slopes]
    error = np.std(residuals, ddof=1) * np.sqrt(3) / sum(map(len, slopes))
    np.testing.assert_allclose(spectrum.standard_error, error)


@pytest.mark.one_backend
def test_a_direction_that_is_lost_has_no_finite_exponent():
    layer = linear(np.diag([0.5, 0.0]))
    spectrum = lyapunov_spectrum(layer, np.zeros((2, 9, 1)), warmup=1)
    assert spectrum.exponents[0] == pytest.approx(np.log(0.5))
    assert spectrum.exponents[1] < -30


@pytest.mark.one_backend
@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"exponents": 3}, "`exponents` must be"),
        ({"exponents": 0}, "`exponents` must be"),
        ({"warmup": 8}, "`warmup` must be"),
        ({"warmup": -1}, "`warmup` must be"),
        ({"warmup": 3, "mask": np.arange(8)[None] < 3}, "at most 2 .*warmup=3"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        lyapunov_spectrum(linear(np.eye(2)), np.ones((1, 8, 1)), **arguments)


@pytest.mark.one_backend
def test_states_that_overflow_are_refused():
    with pytest.raises(ValueError, match="must stay finite.*at step"):
        lyapunov_spectrum(linear(1e30 * np.eye(2)), np.ones((1, 20, 1)))


def test_noise_layers_are_analysed_without_their_noise():
    cell = keras_rin.layers.RINCell(3, recurrent_initializer="zeros")
    layer = built(keras_rin.layers.NoisyRNN(cell, stddev=1.0), features=1)
    cell.bias.assign(np.ones(3))
    spectrum = lyapunov_spectrum(layer, np.zeros((1, 5, 1)))
    np.testing.assert_allclose(spectrum.exponents, np.zeros(3), atol=1e-14)
