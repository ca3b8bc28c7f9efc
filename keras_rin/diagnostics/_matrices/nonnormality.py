"""Measures of non-normality and of transient growth."""

import numpy as np
import scipy
from numpy.typing import ArrayLike

from keras_rin import _arguments
from keras_rin.diagnostics._matrices import spectrum


def spectral_radius(recurrent_matrix: "ArrayLike") -> float:
    """The largest modulus of an eigenvalue.

    rho(V) = max |lambda_i|

    |w V^k| grows or decays like rho^k in the limit. It does not bound
    transient growth.

    Args:
        recurrent_matrix: Array V of shape `(units, units)`.

    Returns:
        The spectral radius, a float.

    Warns:
        scipy.linalg.LinAlgWarning: If a change of V by rounding moves the
            result by more than 1e-6 of it, as in a long Jordan block in
            another basis; never for a chain.

    Raises:
        ValueError: If `recurrent_matrix` is not square, real and finite.

    Example:

    >>> keras_rin.diagnostics.spectral_radius([[0.5, 100.0], [0.0, -0.9]])
    0.9
    """
    matrix = _arguments.square_matrix("recurrent_matrix", recurrent_matrix)
    radius, perturbed_radius = spectrum.radii(matrix)
    if spectrum.doubtful(radius, perturbed_radius):
        spectrum.warn("spectral radius", radius, perturbed_radius)
    return float(radius)


def henrici_departure(recurrent_matrix: "ArrayLike") -> float:
    """The distance from normality in the sense of Henrici.

    d(V) = sqrt(|V|^2 - sum |lambda_i|^2), with |V| the Frobenius norm

    It is zero for a normal matrix (symmetric, orthogonal), and for no other. A
    chain of gain g has g sqrt(units - 1). d(V + c I) = d(V).

    Args:
        recurrent_matrix: Array V of shape `(units, units)`.

    Returns:
        The departure, a float in the units of V.

    Warns:
        scipy.linalg.LinAlgWarning: If a change of V by rounding moves the
            result by more than 1e-6 of it and 1e-12 of |V - c I|, with c the
            mean of the diagonal.

    Raises:
        ValueError: As in `spectral_radius`.

    Example:

    >>> keras_rin.diagnostics.henrici_departure([[0.5, 3.0], [0.0, -0.9]])
    3.0

    Reference:
        Henrici, 1962, Bounds for iterates and fields of values of non-normal
        matrices.
    """
    matrix = _arguments.square_matrix("recurrent_matrix", recurrent_matrix)
    matrix, exponent = spectrum.scaled(matrix)
    matrix = matrix - np.mean(np.diag(matrix)) * np.eye(len(matrix))
    departures = np.ldexp(_schur_departures(matrix), exponent)
    floor = np.ldexp(1e-12 * np.linalg.norm(matrix), exponent)
    if spectrum.doubtful(departures[0], departures[1], floor):
        spectrum.warn("departure from normality", *departures)
    return float(departures[0])


def _schur_departures(matrix):
    """Norms above the diagonal of the Schur forms of V and of V perturbed."""
    rng, parts = np.random.default_rng(0), []
    outside = matrix.copy()
    for units in spectrum.blocks(matrix):
        block = matrix[np.ix_(units, units)]
        outside[np.ix_(units, units)] = 0
        if len(units) > 1:
            pair = (block, spectrum.perturbed(block, rng))
            forms = [
                scipy.linalg.schur(matrix, "complex")[0] for matrix in pair
            ]
            parts.append([np.linalg.norm(np.triu(t, k=1)) for t in forms])
    parts.append([np.linalg.norm(outside)] * 2)
    return np.linalg.norm(parts, axis=0)


def transient_amplification(
    recurrent_matrix: "ArrayLike",
    *,
    input_vector: "ArrayLike | None" = None,
    steps: int | None = None,
) -> np.ndarray:
    """The size of the response to one pulse, step by step.

    a_k = |w V^k|, k = 0 .. steps

    With a normal matrix of spectral radius below 1 the norm of h_k = h_{k-1} V,
    h_0 = w, decreases at each step; with others it can grow transiently.

    Args:
        recurrent_matrix: Array V of shape `(units, units)`.
        input_vector: Array w of shape `(units,)`. Defaults to `None`: the
            first unit alone.
        steps: Integer, at least 1. Defaults to `None`: the number of units.

    Returns:
        Array of shape `(steps + 1,)`, starting with |w|; inf where a size is
        beyond float64, 0 where it is below.

    Warns:
        scipy.linalg.LinAlgWarning: As in `spectral_radius`.

    Raises:
        ValueError: If an argument is not as above, or not finite.

    Example:

    >>> chain = 2 * np.eye(3, k=1)
    >>> keras_rin.diagnostics.transient_amplification(chain)
    array([1., 2., 4., 0.])
    """
    matrix = _arguments.square_matrix("recurrent_matrix", recurrent_matrix)
    units = len(matrix)
    state = _arguments.vector("input_vector", input_vector, units)
    steps = _arguments.integer("steps", units if steps is None else steps)
    norms, perturbed_norms = _response_norms(matrix, state, steps)
    doubtful = np.flatnonzero(spectrum.doubtful(norms, perturbed_norms))
    if doubtful.size:
        step = doubtful[0]
        quantity = f"amplification from step {step} on"
        spectrum.warn(quantity, norms[step], perturbed_norms[step])
    return norms


def _response_norms(matrix, state, steps):
    """The norms of the states, and those with errors of the size of rounding.

    Powers of 2 are kept apart, so that nothing overflows on the way.
    """
    rng = np.random.default_rng(0)
    matrix, growth = spectrum.scaled(matrix)
    states, exponent = spectrum.scaled(np.stack([state, state]))
    norms, powers = np.empty((steps + 1, 2)), np.empty(steps + 1, "int64")
    for k in range(steps + 1):
        if k:
            slack = np.abs(states[1]) @ np.abs(matrix)
            states = states @ matrix
            states[1] += spectrum.ROUNDING * slack * rng.normal(size=len(slack))
            states, change = spectrum.scaled(states)
            exponent += growth + change
        norms[k], powers[k] = np.linalg.norm(states, axis=1), exponent
    with np.errstate(over="ignore", under="ignore"):
        return np.ldexp(norms.T, np.clip(powers, -5000, 5000).astype("int32"))
