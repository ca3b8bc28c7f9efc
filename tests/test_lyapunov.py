import keras
import numpy as np
import pytest
from references import built
from references import plane_map
from references import simple_rnn

from keras_rin.diagnostics import LyapunovSpectrum
from keras_rin.diagnostics import lyapunov_spectrum
from keras_rin.diagnostics import state_jacobians


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


@pytest.mark.one_backend
def test_a_sequence_beside_another_is_as_by_itself(rng):
    """Jacobians of so many units are computed in blocks of time steps."""
    layer, x = built(keras.layers.SimpleRNN(128)), rng.normal(size=(1, 300, 2))
    alone, beside = (
        lyapunov_spectrum(layer, sequences, exponents=2, warmup=0)
        for sequences in (x, np.repeat(x, 2, axis=0))
    )
    np.testing.assert_allclose(beside.convergence, alone.convergence, 1e-6)
    assert np.isnan(alone.standard_error).all()


@pytest.mark.one_backend
def test_the_henon_map_has_its_known_exponents():
    """Sprott, 2003, Chaos and Time-Series Analysis: 0.41922, -1.62319."""
    cell = plane_map(lambda x, y: (1 - 1.4 * x**2 + y, 0.3 * x))
    x = np.zeros((50, 250, 1))
    x[:, 0, 0] = np.linspace(-0.1, 0.1, 50)
    spectrum = lyapunov_spectrum(cell, x, warmup=50)
    error = 4 * spectrum.standard_error[0]
    assert error < 0.03
    np.testing.assert_allclose(spectrum.exponents, [0.419, -1.623], atol=error)
    np.testing.assert_allclose(spectrum.exponents.sum(), np.log(0.3))


@pytest.mark.one_backend
@pytest.mark.parametrize(
    "warmup, lengths, backwards",
    [
        (None, None, False),
        (5, [0.9, 0.5, 0.0, 1.0, 0.7], False),
        (5, [0.9, 0.5, 0.0, 1.0, 0.7], True),
    ],
)
def test_they_are_means_over_unmasked_steps(rng, warmup, lengths, backwards):
    layer = built(keras.layers.SimpleRNN(1, go_backwards=backwards), features=1)
    x, mask = rng.normal(size=(5, 30, 1)), np.ones((5, 30), bool)
    if lengths:
        mask = rng.random((5, 30)) < np.array(lengths)[:, None]
        mask[1, np.flatnonzero(mask[1])[4:]] = False  # ends within the warmup
    spectrum = lyapunov_spectrum(
        layer, x, warmup=warmup, mask=mask if lengths else None
    )
    begin = 3 if warmup is None else warmup  # a tenth
    slopes = []
    for sequence in np.flatnonzero(mask.sum(axis=1) > begin):
        unmasked = x[sequence, mask[sequence]]
        jacobians = state_jacobians(layer, unmasked[None], dtype="float64")
        slopes.append(np.log(np.abs(jacobians[0, begin:, 0, 0])))
    means = [
        np.concatenate([slope[:steps] for slope in slopes]).mean()
        for steps in range(1, 31 - begin)
    ]
    np.testing.assert_allclose(spectrum.convergence[:, 0], means)
    np.testing.assert_allclose(spectrum.exponents, means[-1])
    residuals = [(slope - means[-1]).sum() for slope in slopes]
    error = np.std(residuals, ddof=1) * np.sqrt(len(slopes))
    error /= sum(map(len, slopes))
    np.testing.assert_allclose(spectrum.standard_error, error)


@pytest.mark.one_backend
@pytest.mark.parametrize(
    "gain, arguments, message",
    [
        (
            1,
            {"warmup": 3, "mask": np.arange(20)[None] < 3},
            "most 2. .*warmup=3",
        ),
        (1e30, {}, "must stay finite.*at step"),
    ],
)
def test_what_has_no_exponents_is_refused(gain, arguments, message):
    layer = simple_rnn(gain * np.eye(2), activation=None)
    with pytest.raises(ValueError, match=message):
        lyapunov_spectrum(layer, np.ones((1, 20, 1)), **arguments)


@pytest.mark.one_backend
def test_a_sign_is_undetermined_within_three_standard_errors():
    exponents, errors = np.array([0.2, 0.02, -0.5]), np.array([0.04, 0.01, 0.1])
    spectrum = LyapunovSpectrum(exponents, errors, exponents[None])
    assert (
        str(spectrum)
        == repr(spectrum)
        == (
            "largest exponent 0.2 (standard error 0.04); "
            "1 positive, 1 negative, 1 undetermined"
        )
    )
