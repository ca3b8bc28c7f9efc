"""What a matrix proves about a network with ReLU, for every input."""

import itertools
import typing

import keras
import numpy as np

from keras_rin.diagnostics._fixed_points.active_sets import ENUMERATED
from keras_rin.diagnostics._fixed_points.active_sets import active_sets
from keras_rin.diagnostics._fixed_points.threshold_linear import (
    threshold_linear,
)
from keras_rin.diagnostics._matrices.spectrum import ROUNDING


class Certificate(typing.NamedTuple):
    """What `certificate` returns, True, False or, not decided, `None`.

    Its lines say what holds, and why.

    Attributes:
        unique: Whether there is exactly one fixed point for every drive.
        attracting: Whether every state converges to it, for every drive.
        smallest_eigenvalue: That of I - (V + V') / 2; above 0 suffices for
            `unique`.
        spectral_norm: That of V; below 1 suffices for both.
        absolute_radius: The spectral radius of V with absolute entries; below
            1 suffices for both.
        reasons: Dict of a sentence for `"unique"` and `"attracting"`.
    """

    unique: bool | None
    attracting: bool | None
    smallest_eigenvalue: float
    spectral_norm: float
    absolute_radius: float
    reasons: dict[str, str]

    def __repr__(self):
        names = {
            "unique": "exactly one fixed point for every drive",
            "attracting": "every state converges to it",
        }
        words = {True: "holds", False: "does not hold", None: "not decided"}
        return "\n".join(
            f"{text}: {words[getattr(self, name)]}, {self.reasons[name]}"
            for name, text in names.items()
        )


def certificate(layer: keras.Layer) -> Certificate:
    """What is proven about the fixed points of a layer for every input.

    A SimpleRNN, RIN or RateRNN with ReLU has exactly one fixed point for every
    drive c = x W + b if and only if I - V is a P-matrix: all of its principal
    minors, det(I - V_AA), are above 0. Either of these suffices:

    I - (V + V') / 2 is positive definite
    the spectral radius of |V|, the absolute entries, is below 1

    Every state converges to it if the spectral norm of V or the spectral radius
    of |V| is below 1. It does not for some drive if the Jacobian of a set A of
    active units has an eigenvalue of modulus 1 or above.

    A RIN has V = U + I: the first condition says that U + U' is negative
    definite. All principal minors are computed for up to 14 units, of larger
    networks those of one unit, of two, and of all units.

    Args:
        layer: A built SimpleRNN, RIN or RateRNN with ReLU, or its cell.

    Returns:
        A `Certificate`, a named tuple. It holds for every drive: where it does
        not hold, the inputs that the layer gets may have one fixed point still.

    Raises:
        ValueError: If the layer is not of that kind, or not built.

    Example:

    >>> layer = keras_rin.layers.RIN(
    ...     40, recurrent_initializer=keras.initializers.Identity(-0.5)
    ... )
    >>> layer.build((None, None, 1))
    >>> print(keras_rin.diagnostics.certificate(layer))
    exactly one fixed point for every drive: holds, the spectral norm is 0.5
    every state converges to it: holds, the spectral norm is 0.5

    Reference:
        Cottle, Pang and Stone, 1992, The linear complementarity problem,
        chapter 3. Davydov, Jafarpour, Proskurnikov and Bullo, 2022,
        Non-Euclidean monotone operator theory (arXiv 2204.01877).
    """
    network = threshold_linear(layer, "`certificate`")
    matrix, units = network.matrix, network.units
    eigenvalues = np.linalg.eigvalsh(np.eye(units) - (matrix + matrix.T) / 2)
    smallest, norm = float(eigenvalues[0]), float(np.linalg.svdvals(matrix)[0])
    radius = float(np.abs(np.linalg.eigvals(np.abs(matrix))).max())
    margin = 4 * units * ROUNDING * (1 + norm)
    unique, why = _unique(matrix, smallest, margin)
    attracting, why_attracting = _attracting(network, unique, why)
    # The first one that suffices is the reason.
    sufficient = {"spectral radius of |V|": radius, "spectral norm": norm}
    for name, number in sufficient.items():
        if number < 1 - margin:
            unique = attracting = True
            why = why_attracting = f"the {name} is {number:.3g}"
    reasons = {"unique": why, "attracting": why_attracting}
    return Certificate(unique, attracting, smallest, norm, radius, reasons)


def _unique(matrix, smallest_eigenvalue, margin):
    """Whether I - V is a P-matrix, and why."""
    if smallest_eigenvalue > margin:
        value = f"{smallest_eigenvalue:.3g}"
        return True, f"the smallest eigenvalue of I - (V + V') / 2 is {value}"
    is_positive = True
    for sets in _checked_sets(len(matrix)):
        identity = np.eye(sets.shape[1])
        blocks = identity - matrix[sets[:, :, None], sets[:, None, :]]
        minors = np.linalg.det(blocks)
        # By how much rounding of the entries moves a determinant.
        sizes = np.prod(np.linalg.norm(blocks, axis=2), axis=1)
        error = len(identity) ** 2 * ROUNDING * sizes * (len(identity) > 1)
        if (minors < -error).any() or (minors[error == 0] <= 0).any():
            worst = sets[(minors - error).argmin()]
            return False, f"det(I - V_AA) is not above 0 for {_named(worst)}"
        is_positive &= bool((minors > error).all())
    if is_positive and len(matrix) <= ENUMERATED:
        return True, "all principal minors of I - V are above 0"
    return None, "neither a proof nor a set of units against it"


def _attracting(network, unique, why):
    if unique is False:
        return False, why
    for sets in _checked_sets(network.units):
        blocks = network.matrix[sets[:, :, None], sets[:, None, :]]
        if network.leak is not None:
            identity = np.eye(sets.shape[1])
            blocks = identity + network.leak * (blocks - identity)
        moduli = np.abs(np.linalg.eigvals(blocks)).max(axis=1)
        if moduli.max() >= 1 + 1e-9:
            worst = _named(sets[moduli.argmax()])
            modulus = f"{moduli.max():.3g}"
            return False, f"an eigenvalue has the modulus {modulus} for {worst}"
    return None, "neither a proof nor a set of units against it"


def _checked_sets(units):
    """Arrays `(sets, size)`: all, or those of one, two and all units."""
    if units <= ENUMERATED:
        sets = active_sets(units)
        next(sets)  # the empty one
        yield from sets
        return
    yield np.arange(units)[:, None]
    yield np.array(list(itertools.combinations(range(units), 2)))
    yield np.arange(units)[None]


def _named(units):
    names = ", ".join(map(str, units[:5]))
    more = f" and {len(units) - 5} more" * (len(units) > 5)
    return f"A = {{{names}{more}}}"
