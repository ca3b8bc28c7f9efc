"""A linear map as a product of factors near the identity."""

import keras
import numpy as np
import scipy
from numpy.typing import ArrayLike

from keras_rin import _arguments
from keras_rin.layers._linear_residual import LinearResidual

ROUNDING = 1e-12  # stretches and rotations this close to the identity are 0


def near_identity_factors(matrix: "ArrayLike", depth: int) -> np.ndarray:
    """Factorizes a matrix into factors that are close to the identity.

    (I + A_depth) ... (I + A_2) (I + A_1) = R

    With the polar decomposition R = O P, the first factors are equal roots of
    the positive definite P, the last ones equal roots of the rotation O. The
    split is chosen such that the largest spectral norm of an A_i is smallest:

    max |A_i| <= (4 pi + 3 gamma) / depth  if depth >= 3 gamma

    Here gamma is the largest |ln sigma| over the singular values sigma of R.
    For large depths the largest norm is close to (pi + gamma) / depth, and
    with fewer than about pi + gamma factors some norms reach 1.

    R acts on columns, as in the paper. A Keras layer acts on rows: its
    `kernel` is the transpose of A_i, as in `linear_residual_network`.

    Args:
        matrix: Array of shape `(d, d)` with a positive determinant, R.
        depth: Positive integer, number of factors.

    Returns:
        A float64 array of shape `(depth, d, d)`, A_1 first.

    Raises:
        ValueError: If `matrix` is singular or has a negative determinant,
            which no product of factors within 1 of the identity has.

    Example:

    >>> factors = keras_rin.constructions.near_identity_factors([[4.0]], 2)
    >>> factors.ravel()
    array([1., 1.])

    Reference:
        Hardt and Ma, 2017, Identity matters in deep learning (arXiv
        1611.04231), theorem 2.1, whose later version has this bound. The
        polar decomposition was introduced by this package.
    """
    depth = _arguments.integer("depth", depth)
    matrix = _invertible(matrix)
    if depth == 1:
        return matrix[None] - np.eye(len(matrix))
    left, values, axes = np.linalg.svd(matrix)
    logs = np.log(values)
    logs[np.abs(logs) < ROUNDING] = 0
    angles, planes = _planes(left @ axes)
    stretches = _number_of_stretches(logs, angles, depth)
    stretch = axes.T * np.expm1(logs / max(stretches, 1)) @ axes
    rotation = _rotation_offset(angles / max(depth - stretches, 1), planes)
    return np.stack([stretch] * stretches + [rotation] * (depth - stretches))


def linear_residual_network(
    matrix: "ArrayLike", depth: int
) -> keras.Sequential:
    """Builds a linear map R as a Keras model of layers near the identity.

    y = x (I + A_1^T) (I + A_2^T) ... (I + A_depth^T) = x R^T

    x is a row vector, as in Keras. The model has one
    `keras_rin.layers.LinearResidual` for each of the `near_identity_factors`.

    Args:
        matrix: Array of shape `(d, d)` with a positive determinant, R.
        depth: Positive integer, number of layers.

    Returns:
        A `keras.Sequential` from `(batch, d)` to `(batch, d)`.

    Example:

    >>> turn = np.array([[0.0, -1.0], [1.0, 0.0]])
    >>> model = keras_rin.constructions.linear_residual_network(turn, 8)
    >>> y = model.predict(np.array([[1.0, 0.0]]), verbose=0)
    >>> bool(np.allclose(y, [[0.0, 1.0]], atol=1e-6))
    True
    """
    factors = near_identity_factors(matrix, depth)
    layers = [LinearResidual() for _ in factors]
    model = keras.Sequential([keras.Input(factors.shape[1:2]), *layers])
    for layer, factor in zip(layers, factors, strict=True):
        layer.set_weights([factor.T])
    return model


def _invertible(matrix) -> np.ndarray:
    matrix = _arguments.square_matrix("matrix", matrix)
    condition = np.linalg.cond(matrix)
    if not condition * np.finfo("float64").eps * len(matrix) < 1:
        raise ValueError(
            "`matrix` must be invertible. Received: a matrix of condition "
            f"number {condition:.2g}"
        )
    if np.linalg.slogdet(matrix)[0] < 0:
        raise ValueError(
            "`matrix` must have a positive determinant, as with one more "
            "dimension scipy.linalg.block_diag(matrix, -1), which acts in the "
            "same way on the first coordinates. Received: a negative one"
        )
    return matrix


def _planes(rotation):
    """The angles of a rotation and their planes, two columns each."""
    blocks, basis = scipy.linalg.schur(rotation, output="real")
    d = len(rotation)
    paired = np.flatnonzero(np.diag(blocks, -1))
    unpaired = np.setdiff1d(np.arange(d), [*paired, *(paired + 1)])
    # A rotation has an even number of eigenvalues -1: each pair is half a turn.
    half_turns = unpaired[np.diag(blocks)[unpaired] < 0].reshape(-1, 2)
    sines, cosines = blocks[paired + 1, paired], np.diag(blocks)[paired]
    angles = np.append(
        np.arctan2(sines, cosines), np.full(len(half_turns), np.pi)
    )
    pairs = np.concatenate([np.stack([paired, paired + 1], 1), half_turns])
    turning = np.abs(angles) > ROUNDING
    return angles[turning], basis[:, pairs[turning]]


def _number_of_stretches(logs, angles, depth):
    """The number of factors of P for which the largest norm is smallest."""
    stretches = np.arange(depth + 1)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        roots = np.nan_to_num(logs / stretches[:, None], nan=0)
        turns = np.nan_to_num(np.abs(angles) / stretches[::-1, None], nan=0)
        stretched = np.abs(np.expm1(roots)).max(1, initial=0)
    turned = 2 * np.sin(np.minimum(turns, np.pi) / 2).max(1, initial=0)
    # Without factors there is no stretch, or no rotation.
    stretched[0] = np.inf if logs.any() else 0
    turned[-1] = np.inf if angles.size else 0
    return int(np.argmin(np.maximum(stretched, turned)))


def _rotation_offset(angles, planes):
    """T - I for the rotation T by the angles in their planes."""
    first, second = planes[:, :, 0], planes[:, :, 1]
    shrink = -2 * np.sin(angles / 2) ** 2
    within = (first * shrink) @ first.T + (second * shrink) @ second.T
    across = (second * np.sin(angles)) @ first.T
    return within + across - across.T
