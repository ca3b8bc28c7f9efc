import numpy as np
import pytest

from keras_rin.diagnostics import first_signal_accuracy


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
        found = first_signal_accuracy(
            matrix, vector, noise, steps=steps, samples=20_000
        )
        expected = in_theory(matrix, vector, noise, steps)
        np.testing.assert_allclose(found, expected, atol=0.02)


def test_without_noise_a_chain_keeps_the_first_signal():
    np.testing.assert_allclose(first_signal_accuracy(np.eye(30, k=1)), 1)


def test_beyond_its_end_a_chain_has_lost_it():
    accuracy = first_signal_accuracy(np.eye(30, k=1), steps=31)
    assert -0.1 < accuracy < 0


def test_the_identity_keeps_a_sum_alone():
    accuracy = first_signal_accuracy(np.eye(10), samples=50_000)
    np.testing.assert_allclose(accuracy, 1 / 10, atol=0.01)


def test_the_activation_acts_at_every_step():
    accuracy = first_signal_accuracy(
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
        first_signal_accuracy(**{"recurrent_matrix": np.eye(3), **arguments})


def test_the_generator_must_be_one():
    with pytest.raises(TypeError, match="`rng` must be"):
        first_signal_accuracy(np.eye(3), rng=0)
