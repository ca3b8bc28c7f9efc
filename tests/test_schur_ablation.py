"""Ablation says which couplings of a constructed network its task needs."""

import keras
import numpy as np
import pytest
import scipy
from references import assert_same
from references import built
from references import orthogonal

from keras_rin.diagnostics import recurrent_matrices
from keras_rin.diagnostics import schur_ablation
from keras_rin.layers import RIN
from keras_rin.layers import NoisyRNN
from keras_rin.layers import RINCell

pytestmark = pytest.mark.one_backend
UNITS = 5


def linear(kind, matrix, kernel):
    """A layer with this effective matrix."""
    layer = built(kind(len(matrix), None), features=1)
    stored = matrix - np.eye(len(matrix)) * (kind is RIN)
    layer.set_weights([kernel, stored, np.zeros(len(matrix))])
    return layer


@pytest.mark.parametrize("kind", [keras.layers.SimpleRNN, RIN])
@pytest.mark.parametrize("delay", range(1, UNITS))
def test_a_hidden_chain_needs_the_delay_of_the_task(kind, delay, rng):
    """One step takes a pulse from the first unit to the last of a skip.

    In a drawn basis, which the Schur form has to find. Weights of float32 give
    eigenvalues of a chain of 5 units, all 0, to about (1e-7)^(1/5) = 0.04.
    """
    skips = np.eye(UNITS, k=1) + (delay > 1) * 0.5 * np.eye(UNITS, k=delay)
    basis = orthogonal(rng, UNITS)
    enters, leaves = basis[0], basis[delay]
    layer = linear(kind, basis.T @ skips @ basis, enters[None])
    pulse = np.array([[[1.0], [0.0]]])
    weights = layer.get_weights()

    def score():
        return float(np.asarray(layer(pulse))[0] @ leaves)

    ablation = schur_ablation(layer, score, couplings=UNITS)
    whole = 1 if delay == 1 else 0.5
    needed = np.arange(1, UNITS) == delay
    assert_same(ablation.score, whole, 1e-5, 1e-5)
    assert_same(ablation.band_scores, whole * ~needed, 0, 0.1)
    assert_same(ablation.normal_score, 0, 0, 0.1)
    i, j = ablation.couplings.T
    first = (i == 0) & (j == delay)
    assert_same(ablation.coupling_scores, whole * ~first, 0, 0.1)
    assert_same(weights, layer.get_weights(), 0, 0)


def test_without_all_bands_a_matrix_is_normal(rng):
    """A drawn matrix has complex eigenvalues, whose blocks are not normal."""
    matrix = rng.normal(size=(9, 9)) / 3
    layer = linear(keras.layers.SimpleRNN, matrix, np.ones((1, 9)))
    matrices = []

    def score():
        matrices.append(recurrent_matrices(layer)["recurrent"])
        return np.array([len(matrices)])

    ablation = schur_ablation(layer, score, couplings=0)
    assert ablation.couplings.shape == (0, 2)
    whole, *without, normal = matrices
    assert len(without) == 8 and ablation.normal_score == 10
    bands = [whole - matrix for matrix in without]
    assert_same(np.linalg.norm(bands, axis=(1, 2)), ablation.band_norms)
    assert_same(whole - sum(bands), normal)
    assert_same(normal @ normal.T, normal.T @ normal)
    values = (np.sort_complex(scipy.linalg.eigvals(v)) for v in (whole, normal))
    assert_same(*values, 1e-4, 1e-4)


def test_the_weights_are_back_after_an_error():
    layer = built(RIN(4), features=1)
    weights, calls = layer.get_weights(), []

    def score():
        calls.append(1)
        return 1 / (3 - len(calls))

    with pytest.raises(ZeroDivisionError):
        schur_ablation(layer, score)
    assert_same(layer.get_weights(), weights, 0, 0)


def test_what_cannot_be_ablated_is_refused():
    layer = built(NoisyRNN(RINCell(3)), features=1)
    with pytest.raises(ValueError, match="one number.*metrics.*Received"):
        schur_ablation(layer, lambda: [0.5, 0.9])
    lstm = built(keras.layers.LSTM(3), features=1)
    with pytest.raises(ValueError, match="one recurrent matrix.*input, forget"):
        schur_ablation(lstm, lambda: 0.0)
