"""Which of the couplings that make a matrix non-normal a score needs."""

import typing
from collections.abc import Callable

import keras
import numpy as np
import scipy

from keras_rin import _arguments
from keras_rin.diagnostics._built_cell import built_cell
from keras_rin.diagnostics._matrices.recurrent_matrices import (
    recurrent_matrices,
)


class SchurAblation(typing.NamedTuple):
    """What `schur_ablation` returns, of n units.

    Attributes:
        score: Float, of the layer as it is.
        band_scores: Array `(n - 1,)`, without the band j - i = 1, 2, ...
        band_norms: Array `(n - 1,)`, the Frobenius norm of each band.
        coupling_scores: Array `(couplings,)`, without each coupling.
        couplings: Integer array `(couplings, 2)`, i and j of each, the largest
            first.
        normal_score: Float, without N: of a normal matrix with the same
            eigenvalues.
    """

    score: float
    band_scores: np.ndarray
    band_norms: np.ndarray
    coupling_scores: np.ndarray
    couplings: np.ndarray
    normal_score: float


def schur_ablation(
    layer: keras.Layer, score: Callable[[], float], *, couplings: int = 10
) -> SchurAblation:
    """Scores a layer without parts of what makes its matrix non-normal.

    V = Q (D + N) Q^T, the real Schur form of the effective matrix

    Q is orthogonal. D is normal and has the eigenvalues of V: numbers on the
    diagonal, and for each complex pair a block [[a, w], [-w, a]]. N, the rest,
    is 0 for a normal V alone, and one band for a chain in another basis. The
    score is computed without each band of N, the couplings from direction i of
    Q to i + k, and without each of its largest couplings. Then the layer has
    its weights back, also after an error.

    The Schur form depends on the order of the eigenvalues, which is LAPACK's.
    Rounded to float32, a chain of n units in another basis has eigenvalues of
    about (1e-7)^(1/n) in place of 0, and bands that are mixed as much.

    Args:
        layer: A built recurrent layer or cell of Keras with one recurrent
            matrix, such as SimpleRNN or `keras_rin.layers.RIN`.
        score: A function without arguments that returns a number, such as
            `lambda: model.evaluate(x, y, verbose=0)`, called for each part.
        couplings: Integer, at least 0, how many single couplings to remove.
            Defaults to 10; fewer if N has fewer.

    Returns:
        A `SchurAblation`, a named tuple.

    Raises:
        ValueError: As in `recurrent_matrices`; if the layer does not have one
            finite matrix that is a weight, or `score` returns no number.

    Example:

    >>> chain = keras_rin.initializers.Chain()
    >>> layer = keras.layers.SimpleRNN(
    ...     3, None, kernel_initializer="identity", recurrent_initializer=chain
    ... )
    >>> pulse = np.eye(1, 3)[:, :, None]
    >>> layer.build(pulse.shape)
    >>> def third_unit():
    ...     return float(layer(pulse)[0, 2])
    >>> keras_rin.diagnostics.schur_ablation(layer, third_unit).band_scores
    array([0., 1.])

    Reference:
        Dräger, 2026, Task-restricted symmetries in recurrent weight space
        (arXiv 2606.18457), which removes Schur couplings from tanh networks.
    """
    couplings = _arguments.integer("couplings", couplings, at_least=0)
    matrices = recurrent_matrices(layer)
    kernel = built_cell(layer).recurrent_kernel
    if list(matrices) != ["recurrent"] or not hasattr(kernel, "assign"):
        raise ValueError(
            f"{layer.name} must have one recurrent matrix that is a weight, as "
            "SimpleRNN and RIN have. Received: a layer with the matrices "
            f"{', '.join(matrices)}"
        )
    matrix = _arguments.finite_array("layer", matrices["recurrent"])
    nonnormal, basis = _nonnormal_part(matrix)
    place = np.arange(len(matrix))
    difference = np.abs(place - place[:, None])
    stored = keras.ops.convert_to_numpy(kernel)

    def score_without(removed):
        if not np.any(nonnormal[removed]):
            return whole
        part = basis @ np.where(removed, nonnormal, 0) @ basis.T
        kernel.assign(stored - part.astype(stored.dtype))
        return _number(score())

    whole = _number(score())
    first, second = _largest(nonnormal, couplings)
    try:
        bands = [score_without(difference == k) for k in place[1:]]
        single = []
        for i, j in zip(first, second, strict=True):
            removed = np.zeros(matrix.shape, bool)
            removed[i, j] = removed[j, i] = True  # both, if within a block
            single.append(score_without(removed))
        normal = score_without(np.ones(matrix.shape, bool))
    finally:
        kernel.assign(stored)
    norms = [np.linalg.norm(nonnormal[difference == k]) for k in place[1:]]
    return SchurAblation(
        score=whole,
        band_scores=np.array(bands),
        band_norms=np.array(norms),
        coupling_scores=np.array(single),
        couplings=np.stack([first, second], axis=1),
        normal_score=normal,
    )


def _nonnormal_part(matrix):
    """N and Q. The remainder of a block on the diagonal counts as band 1."""
    form, basis = scipy.linalg.schur(matrix)
    blocks = np.flatnonzero(np.diagonal(form, -1))
    order = np.arange(len(form))
    for i in blocks:  # the larger of its two couplings goes forward
        if abs(form[i + 1, i]) > abs(form[i, i + 1]):
            order[[i, i + 1]] = i + 1, i
    form, basis = form[np.ix_(order, order)], basis[:, order]
    nonnormal = np.triu(form, 1)
    for i in blocks:
        above, below = form[i, i + 1], form[i + 1, i]
        # LAPACK has equal numbers on the diagonal of a block, a, and two of
        # other signs beside it: the eigenvalues are a + iw and a - iw.
        rotation = np.copysign(np.sqrt(-above * below), above)
        nonnormal[i, i + 1] = above - rotation
        nonnormal[i + 1, i] = below + rotation
    return nonnormal, basis


def _largest(nonnormal, couplings):
    """Rows and columns of the largest couplings above the diagonal."""
    rows, columns = np.triu_indices(len(nonnormal), 1)
    sizes = np.abs(nonnormal[rows, columns])
    order = np.argsort(-sizes, kind="stable")[:couplings]
    order = order[sizes[order] > 0]
    return rows[order], columns[order]


def _number(value):
    value = np.asarray(value)
    if value.size != 1 or value.dtype.kind not in "biuf":
        raise ValueError(
            "`score` must return one number: of `model.evaluate` with metrics, "
            f"choose one. Received: {value!r}"
        )
    return float(value.item())
