import numpy as np
import pytest

from keras_rin.diagnostics import first_signal_r2

pytestmark = pytest.mark.one_backend


def in_theory(matrix, vector, noise, steps):
    """c S^-1 c^T, summed up step by step."""
    covariance = np.zeros_like(matrix)
    trace = vector
    for _ in range(steps):
        covariance = matrix.T @ covariance @ matrix
        covariance += np.outer(vector, vector) + noise * np.eye(len(matrix))
    for _ in range(steps - 1):
        trace = trace @ matrix
    return trace @ np.linalg.solve(covariance, trace)


@pytest.mark.parametrize("noise", [0.01, 0.5])
@pytest.mark.parametrize("steps", [3, 8])
def test_a_linear_read_out_reaches_what_theory_says(rng, noise, steps):
    chain = 1.05 * np.eye(8, k=1)
    isometry = 0.95 * np.linalg.qr(rng.normal(size=(8, 8)))[0]
    vector = rng.normal(size=8)
    for matrix in (chain, isometry):
        found = first_signal_r2(
            matrix,
            input_vector=vector,
            noise=noise,
            steps=steps,
            samples=20_000,
        )
        expected = in_theory(matrix, vector, noise, steps)
        np.testing.assert_allclose(found, expected, atol=0.02)


def test_without_noise_a_chain_keeps_the_first_signal():
    np.testing.assert_allclose(first_signal_r2(np.eye(30, k=1)), 1)


def test_beyond_its_end_a_chain_has_lost_it():
    accuracy = first_signal_r2(np.eye(30, k=1), steps=31)
    assert -0.1 < accuracy < 0


def test_the_identity_keeps_a_sum_alone():
    accuracy = first_signal_r2(np.eye(10), samples=50_000)
    np.testing.assert_allclose(accuracy, 1 / 10, atol=0.01)


def test_the_activation_acts_at_every_step():
    accuracy = first_signal_r2(
        np.eye(5, k=1), activation=lambda h: np.abs(h), samples=20_000
    )
    np.testing.assert_allclose(accuracy, 0, atol=0.01)


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"recurrent_matrix": np.ones((2, 3))}, "`recurrent_matrix` must be"),
        ({"input_vector": [1.0]}, "`input_vector` must have the shape"),
        ({"noise": -1}, "`noise` must be"),
        ({"steps": 0}, "`steps` must be"),
        ({"samples": 1.5}, "`samples` must be"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        first_signal_r2(**{"recurrent_matrix": np.eye(3), **arguments})


def test_the_generator_must_be_one():
    with pytest.raises(TypeError, match="`rng` must be"):
        first_signal_r2(np.eye(3), rng=0)


@pytest.mark.parametrize("size", [1e-200, 1e200])
def test_the_size_of_the_input_does_not_matter_without_noise(size):
    vector = [size, 0, 0, 0]
    np.testing.assert_allclose(
        first_signal_r2(np.eye(4, k=1), input_vector=vector), 1
    )


@pytest.mark.parametrize("gain", [1e-30, 1e-2, 0.3])
def test_a_chain_that_shrinks_the_signal_keeps_it_without_noise(gain):
    matrix = gain * np.eye(8, k=1)
    np.testing.assert_allclose(first_signal_r2(matrix), 1)


@pytest.mark.parametrize("samples", [1, 5])
def test_a_fit_needs_more_samples_than_units(samples):
    with pytest.raises(ValueError, match="`samples` must be .* at least 6"):
        first_signal_r2(np.eye(4, k=1), samples=samples)


@pytest.mark.parametrize(
    "matrix, activation",
    [
        (1e200 * np.eye(4, k=1), None),
        (np.eye(4, k=1), lambda h: h * np.nan),
        (np.eye(4, k=1), lambda h: h[:, :2]),
    ],
)
def test_states_that_cannot_be_read_are_refused(matrix, activation):
    with pytest.raises(ValueError, match="states must stay finite"):
        first_signal_r2(matrix, activation=activation)


def test_the_decoder_has_an_intercept():
    chain = np.eye(5, k=1)
    found = first_signal_r2(chain, activation=lambda h: h + 5.0)
    np.testing.assert_allclose(found, 1)
