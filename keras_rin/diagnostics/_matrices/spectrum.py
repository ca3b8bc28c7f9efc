"""Eigenvalues in double precision, and whether it determines them.

Of a matrix far from normal computed eigenvalues may lie far from the true ones:
for a Jordan block of 50 units in an orthogonal basis, 0.5 away. Everything is
therefore computed again with V changed by as much as rounding changes it.
"""

import numpy as np
import scipy

from keras_rin import _arguments

ROUNDING = np.finfo("float64").eps
TOLERANCE = 1e-6  # relative: a result that rounding moves by more is doubtful


def scaled(array):
    """The array with its largest entry in [0.5, 1), and the power of 2."""
    exponent = int(np.frexp(np.abs(array).max(initial=0))[1])
    return np.ldexp(array, -exponent), exponent


def blocks(matrix):
    """The units of each diagonal block, in an order that makes V triangular.

    The eigenvalues of V are those of its blocks, of a chain the diagonal.
    """
    count, labels = scipy.sparse.csgraph.connected_components(
        matrix != 0, connection="strong"
    )
    if count == len(matrix):
        return np.arange(count)[:, None]
    order = np.argsort(labels, kind="stable")
    return np.split(order, np.cumsum(np.bincount(labels))[:-1])


def perturbed(matrix, rng):
    """The matrix, changed as much as an orthogonal basis would change it."""
    size = ROUNDING * np.linalg.norm(matrix) / np.sqrt(len(matrix))
    return matrix + size * rng.normal(size=matrix.shape)


def eigenvalues(matrix):
    """Those of the matrix and of one within rounding, complex `(2, units)`."""
    rng = np.random.default_rng(0)
    pairs = [
        _block_eigenvalues(matrix[np.ix_(u, u)], rng) for u in blocks(matrix)
    ]
    return np.concatenate(pairs, axis=1)


def _block_eigenvalues(block, rng):
    if len(block) == 1:
        return np.repeat(block.astype("complex128"), 2, axis=0)
    balanced, exponent = scaled(_balanced(block))
    pair = [
        np.linalg.eigvals(matrix).astype("complex128")
        for matrix in (balanced, perturbed(balanced, rng))
    ]
    return np.ldexp(np.real(pair), exponent) + 1j * np.ldexp(
        np.imag(pair), exponent
    )


def _balanced(block):
    """A block of the same eigenvalues, scaled by units to be nearer to normal.

    Where units are linked as in a tree, both weights of a link become equal.
    """
    links = (block != 0) & ~np.eye(len(block), dtype=bool)
    if links.sum() == 2 * (len(block) - 1) and (links == links.T).all():
        root = np.sqrt(np.abs(block))
        return np.sign(block) * root * root.T
    with np.errstate(invalid="ignore"):  # scales that are no 64-bit integers
        return scipy.linalg.matrix_balance(block, permute=False)[0]


def radii(matrix):
    """The spectral radius, and that of a matrix within rounding."""
    return np.abs(eigenvalues(matrix)).max(axis=1)


def neutral(matrix, tolerance, error):
    """The eigenvalues, and which have a modulus of 1 within the tolerance.

    Or within the error of the matrix, relative to its norm: in a Jordan block
    of k units an error e moves an eigenvalue by e^(1/k).
    """
    parts = [
        _neutral_eigenvalues(matrix[np.ix_(units, units)], tolerance, error)
        for units in blocks(matrix)
    ]
    values, is_neutral = (
        np.concatenate(part) for part in zip(*parts, strict=True)
    )
    return values, is_neutral


def _neutral_eigenvalues(block, tolerance, error):
    block = _balanced(block)
    error = error * np.linalg.norm(block)
    values, left, right = scipy.linalg.eig(block, left=True)
    with np.errstate(divide="ignore"):
        sensitivity = 1 / np.abs(np.sum(left.conj() * right, axis=0))
    distance = np.abs(np.abs(values) - 1)
    is_neutral = distance <= tolerance
    # The sensitivity alone, of first order, is no bound: it may be infinite.
    is_doubtful = ~is_neutral & (distance <= len(block) * error * sensitivity)
    for k in np.flatnonzero(is_doubtful):
        shifted = block - np.exp(1j * np.angle(values[k])) * np.eye(len(block))
        change = scipy.linalg.svdvals(shifted)[-1]
        is_neutral[k] = change <= error
    return values, is_neutral


def doubtful(value, perturbed_value, at_least=0.0):
    """Whether rounding moves a result by more than the tolerance."""
    allowed = np.maximum(TOLERANCE * np.abs(value), at_least)
    with np.errstate(invalid="ignore"):  # inf - inf is NaN
        return np.abs(value - perturbed_value) > allowed


def warn(quantity, value, perturbed_value):
    _arguments.warn(
        f"Double precision does not determine the {quantity} of "
        "`recurrent_matrix`, which is far from normal: rounding takes it from "
        f"{value:.6g} to {perturbed_value:.6g}, or further",
        scipy.linalg.LinAlgWarning,
    )
