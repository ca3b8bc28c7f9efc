"""Certificates for every drive, against all principal minors and all points."""

import itertools

import keras
import numpy as np
import pytest
from references import built
from relu_networks import RATE
from relu_networks import network

from keras_rin import diagnostics
from keras_rin.layers import RIN

pytestmark = pytest.mark.one_backend
KINDS = [keras.layers.SimpleRNN, RIN, RATE]


def principal_minors(matrix):
    minus, units = np.eye(len(matrix)) - matrix, range(len(matrix))
    return [
        np.linalg.det(minus[np.ix_(index, index)])
        for size in units
        for index in itertools.combinations(units, size + 1)
    ]


@pytest.mark.parametrize("seed", range(12))
def test_it_is_unique_where_all_principal_minors_are_positive(seed):
    rng = np.random.default_rng(seed)
    units = 2 + seed % 4
    matrix = (0.4 + 0.08 * seed) * rng.normal(size=(units, units))
    result = diagnostics.certificate(network(matrix, 0.0, KINDS[seed % 3]))
    assert result.unique == (min(principal_minors(matrix)) > 0)
    if result.unique:
        for drive in rng.normal(size=(5, units)):
            layer = network(matrix, drive)
            found = diagnostics.fixed_points(layer, complete=True)
            assert len(found.states) == 1


@pytest.mark.parametrize(
    "matrix, unique, attracting, reason",
    [
        (0.5 * np.eye(20), True, True, "spectral norm is 0.5"),
        # A chain is not normal: its norm is far above 1.
        (3 * np.eye(20, k=1), True, True, r"radius of \|V\| is 0"),
        (np.eye(20), False, False, r"A = \{0\}"),
        (1.3 * np.eye(20) - 1, False, False, r"A = \{0, 1\}"),
        (np.diag([-2.0] * 20), True, False, r"modulus 2 for A = \{0\}"),
        # Circulant, of eigenvalues above and below 1 in modulus.
        (np.roll(np.eye(20), 1, 1) * 0.99, True, True, "norm is 0.99"),
        (-np.roll(np.eye(20), 1, 1) * 1.02, False, False, "and 15 more"),
        (np.full((16, 16), 0.07), False, False, "0, 1, 2, 3, 4 and 11 more"),
    ],
)
@pytest.mark.parametrize("kind", [keras.layers.SimpleRNN, RIN])
def test_it_says_what_holds_and_why(matrix, unique, attracting, reason, kind):
    result = diagnostics.certificate(network(matrix, 0.0, kind))
    assert (result.unique, result.attracting) == (unique, attracting)
    with pytest.raises(AssertionError, match=reason):
        raise AssertionError(result.reasons["attracting"])
    words = {True: "holds", False: "does not hold"}
    for line, holds in zip(str(result).splitlines(), result[:2], strict=True):
        assert f": {words[holds]}, " in line


def test_what_is_not_decided_is_said():
    rng = np.random.default_rng(0)
    matrix = 0.2 * rng.normal(size=(16, 16))
    result = diagnostics.certificate(network(matrix, 0.0))
    assert result.unique is result.attracting is None
    assert str(result).count("not decided") == 2
    half = (matrix + matrix.T) / 2
    smallest = np.linalg.eigvalsh(np.eye(16) - half)[0]
    np.testing.assert_allclose(result.smallest_eigenvalue, smallest)
    np.testing.assert_allclose(result.spectral_norm, np.linalg.norm(matrix, 2))


def test_every_state_converges_where_that_is_certified():
    rng = np.random.default_rng(0)
    matrix = 0.9 * np.linalg.qr(rng.normal(size=(16, 16))).Q
    assert diagnostics.certificate(network(matrix, 0.0)).attracting
    h, drive = 100 * rng.normal(size=(20, 16)), rng.normal(size=16)
    for _ in range(500):
        h = np.maximum(h @ matrix + drive, 0)
    np.testing.assert_allclose(h, np.tile(h[0], (20, 1)), atol=1e-9)


@pytest.mark.parametrize("layer", [RIN(3, "tanh"), keras.layers.GRU(3, "relu")])
def test_other_layers_are_refused(layer):
    with pytest.raises(ValueError, match="`certificate` takes a SimpleRNN"):
        diagnostics.certificate(built(layer))
