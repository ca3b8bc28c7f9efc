import numpy as np
import pytest
from references import orthogonal

from keras_rin.diagnostics import first_signal_r2

pytestmark = pytest.mark.one_backend


def r2_in_theory(matrix, vector, noise, steps):
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
    isometry = 0.95 * orthogonal(rng, 8)
    vector = rng.normal(size=8)
    for matrix in (chain, isometry):
        r2 = first_signal_r2(
            matrix,
            input_vector=vector,
            noise=noise,
            steps=steps,
            samples=20_000,
        )
        expected = r2_in_theory(matrix, vector, noise, steps)
        np.testing.assert_allclose(r2, expected, atol=0.02)


@pytest.mark.parametrize(
    "gain, size", [(1e-30, 1), (1e-2, 1), (0.3, 1), (1, 1e-200), (1, 1e200)]
)
def test_without_noise_a_chain_keeps_a_first_signal_of_any_size(gain, size):
    vector = size * np.eye(8)[0]
    np.testing.assert_allclose(
        first_signal_r2(gain * np.eye(8, k=1), input_vector=vector), 1
    )


def test_beyond_its_end_a_chain_has_lost_the_first_signal():
    assert -0.1 < first_signal_r2(np.eye(30, k=1), steps=31) < 0


@pytest.mark.parametrize(
    "activation, expected",
    [(np.abs, 0), (lambda h: h + 5.0, 1)],
    ids=["at every step", "intercept of the decoder"],
)
def test_the_activation_acts_at_every_step(activation, expected):
    r2 = first_signal_r2(np.eye(5, k=1), activation=activation, samples=20_000)
    np.testing.assert_allclose(r2, expected, atol=0.01)


@pytest.mark.parametrize(
    "arguments, error, message",
    [
        ({"recurrent_matrix": np.ones((2, 3))}, ValueError, "`recurrent_m"),
        ({"input_vector": [1.0]}, ValueError, "`input_vector` must have the"),
        ({"noise": -1}, ValueError, "`noise` must be"),
        ({"steps": 0}, ValueError, "`steps` must be"),
        ({"samples": 1.5}, ValueError, "`samples` must be"),
        ({"samples": 1}, ValueError, "`samples` must be .* at least 5"),
        ({"samples": 4}, ValueError, "`samples` must be .* at least 5"),
        ({"rng": 0}, TypeError, "`rng` must be"),
    ],
)
def test_bad_arguments_are_named(arguments, error, message):
    with pytest.raises(error, match=message):
        first_signal_r2(**{"recurrent_matrix": np.eye(3), **arguments})


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
