"""The decoder of the study of memory curves."""

import numpy as np
import pytest
from recurrent_matrices.memory_curves import NETWORKS
from recurrent_matrices.memory_curves import first_signal_r2


@pytest.mark.parametrize("network", ["chain", "orthogonal"])
def test_a_linear_decoder_reaches_what_theory_says(network):
    """c S^-1 c^T, with c the trace of the first signal, S the covariance."""
    rng, units, noise = np.random.default_rng(0), 8, 0.5
    matrix = NETWORKS[network](rng, units)
    covariance, trace = np.zeros((units, units)), np.eye(units)[0]
    for _ in range(units):
        covariance = matrix.T @ covariance @ matrix + noise * np.eye(units)
        covariance[0, 0] += 1
    for _ in range(units - 1):
        trace = trace @ matrix
    expected = trace @ np.linalg.solve(covariance, trace)
    actual = first_signal_r2(matrix, 20_000, rng, noise)
    np.testing.assert_allclose(actual, expected, atol=0.02)
