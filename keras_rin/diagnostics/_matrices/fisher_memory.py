"""Fisher memory: what the state of a noisy linear network says of the past."""

import math

import numpy as np
import scipy
from numpy.typing import ArrayLike

from keras_rin import _arguments
from keras_rin.diagnostics._matrices import spectrum


def fisher_memory_curve(
    recurrent_matrix: "ArrayLike",
    *,
    input_vector: "ArrayLike | None" = None,
    noise: float = 1.0,
    lags: int | None = None,
    horizon: int | None = None,
) -> np.ndarray:
    """The Fisher information in the state about the input of k steps ago.

    J(k) = w V^k C^-1 (w V^k)^T, C = noise * sum over k of (V^k)^T V^k

    The network is linear and noisy: h_t = h_{t-1} V + s_t w + z_t, with
    z_t ~ N(0, noise I). C is the covariance of the noise in the state, and
    J(k) the Fisher information in h_t about s_{t-k}: no unbiased estimate of
    s_{t-k} has a variance below 1 / J(k). The curve of a chain of gain 1 from
    its first unit is 1 / (k + 1), and 0 beyond its length; a scaled isometry
    a Q has a^(2k) (1 - a^2). The cost is of order units^3 log(horizon).

    Args:
        recurrent_matrix: Array V of shape `(units, units)`, such as those of
            `recurrent_matrices`.
        input_vector: Array w of shape `(units,)`, such as one row of a
            Keras kernel. Defaults to `None`: the first unit alone, where a
            chain begins.
        noise: Positive number, the variance of the noise that enters each
            unit at each step. Defaults to 1.
        lags: Positive integer, the length of the curve, at most `horizon`.
            Defaults to `None`: `horizon`, or the number of units.
        horizon: Positive integer, the steps the network has run, from rest.
            Defaults to `None`: it has always run, which needs a spectral
            radius below 1. An isometry has a curve at a finite horizon
            alone: 1 / horizon at every lag.

    Returns:
        Array of shape `(lags,)`: J(0), J(1), ...

    Raises:
        ValueError: If an argument is not as above; if the spectral radius is
            1 (within 1e-6, for float32) or more, without a `horizon`.
        ValueError: If V amplifies beyond 10^12 or so, so that double
            precision cannot hold the result.

    Example:

    >>> chain = np.eye(4, k=1)
    >>> keras_rin.diagnostics.fisher_memory_curve(chain, lags=5).round(3)
    array([1.   , 0.5  , 0.333, 0.25 , 0.   ])

    Reference:
        Ganguli, Huh and Sompolinsky, 2008, Memory traces in dynamical
        systems.
    """
    noise = _noise_variance(noise)
    encoder, step, _ = _whitened_network(recurrent_matrix, horizon)
    lags = _number_of_lags(lags, horizon, len(step))
    trace = (
        _arguments.vector("input_vector", input_vector, len(encoder)) @ encoder
    )
    trace = trace / np.sqrt(noise)
    curve = np.empty(lags)
    for lag in range(lags):
        curve[lag] = trace @ trace
        trace = trace @ step
    return curve


def total_memory(
    recurrent_matrix: "ArrayLike",
    *,
    input_vector: "ArrayLike | None" = None,
    noise: float = 1.0,
    horizon: int | None = None,
) -> float:
    """The Fisher memory of all lags together.

    J_tot = sum over k of J(k)

    With a unit input vector and unit noise it is 1 for every normal matrix,
    and at most the number of units for any.

    Args:
        recurrent_matrix: Array V of shape `(units, units)`.
        input_vector: Array w of shape `(units,)`. Defaults to `None`: the
            first unit alone.
        noise: Positive number, the variance of the noise. Defaults to 1.
        horizon: Positive integer, the steps since rest. Defaults to `None`.

    Returns:
        The total, a float.

    Raises:
        ValueError: As in `fisher_memory_curve`, which has the reference.

    Example:

    >>> chain = np.eye(4, k=1)
    >>> round(keras_rin.diagnostics.total_memory(chain), 3)
    2.083
    >>> round(keras_rin.diagnostics.total_memory(0.9 * np.eye(4)), 3)
    1.0
    """
    noise = _noise_variance(noise)
    memory = spatial_memory_matrix(recurrent_matrix, horizon=horizon)
    vector = _arguments.vector(
        "input_vector", input_vector, len(memory)
    ) / np.sqrt(noise)
    return float(vector @ memory @ vector)


def spatial_memory_matrix(
    recurrent_matrix: "ArrayLike",
    *,
    noise: float = 1.0,
    horizon: int | None = None,
) -> np.ndarray:
    """The total memory as a function of where the input enters.

    J_s = sum over k of V^k C^-1 (V^k)^T, so that J_tot = w J_s w^T

    Its trace is units / noise whatever V is, so that a network only favours
    some inputs over others. For a normal matrix it is I / noise.

    Args:
        recurrent_matrix: Array V of shape `(units, units)`.
        noise: Positive number, the variance of the noise. Defaults to 1.
        horizon: Positive integer, the steps since rest. Defaults to `None`.

    Returns:
        Symmetric array of shape `(units, units)`.

    Raises:
        ValueError: As in `fisher_memory_curve`, which has the reference.

    Example:

    >>> chain = np.eye(3, k=1)
    >>> keras_rin.diagnostics.spatial_memory_matrix(chain).round(3)
    array([[1.833, 0.   , 0.   ],
           [0.   , 0.833, 0.   ],
           [0.   , 0.   , 0.333]])
    """
    noise = _noise_variance(noise)
    encoder, _, powers = _whitened_network(recurrent_matrix, horizon)
    memory = encoder @ powers @ encoder.T / noise
    return (memory + memory.T) / 2


def optimal_input_vector(
    recurrent_matrix: "ArrayLike", *, horizon: int | None = None
) -> np.ndarray:
    """The input whose past is remembered best.

    w, of length 1, with the largest J_tot = w J_s w^T

    Args:
        recurrent_matrix: Array V of shape `(units, units)`.
        horizon: Positive integer, the steps since rest. Defaults to `None`.

    Returns:
        Array of shape `(units,)` and length 1, its largest entry positive.
        Where several are best, as for normal matrices, one of them.

    Raises:
        ValueError: As in `fisher_memory_curve`, which has the reference.

    Example:

    >>> chain = np.eye(3, k=1)
    >>> keras_rin.diagnostics.optimal_input_vector(chain).round(3)
    array([1., 0., 0.])
    """
    memory = spatial_memory_matrix(recurrent_matrix, horizon=horizon)
    vector = np.linalg.eigh(memory).eigenvectors[:, -1]
    return vector * np.sign(vector[np.abs(vector).argmax()]) + 0.0


def _noise_variance(noise):
    smallest = np.finfo("float64").tiny
    return _arguments.finite_number("noise", noise, smallest)


def _number_of_lags(lags, horizon, units):
    if lags is None:
        return units if horizon is None else horizon
    return _arguments.integer("lags", lags, at_most=horizon or math.inf)


def _whitened_network(recurrent_matrix, horizon):
    """The network in the coordinates x = h R^-1, where C = R^T R.

    Returns R^-1, which takes inputs there; A = R V R^-1, which takes one
    step there; and the sum of A^k (A^k)^T. Noise has the variance 1.
    """
    matrix = _arguments.square_matrix("recurrent_matrix", recurrent_matrix)
    steps = _number_of_steps(matrix, horizon)
    with np.errstate(over="ignore", invalid="ignore"):
        factor = _covariance_factor(matrix, steps)
        encoder = _solve_right(np.eye(len(matrix)), factor)
        step = _solve_right(factor @ matrix, factor)
        powers = _sum_of_powers(step, steps)
        trace = np.sum(encoder.T @ encoder * powers)
    # The trace is the number of units only if rounding has little effect.
    if not abs(trace / len(matrix) - 1) <= 1e-6:
        raise ValueError(
            "`recurrent_matrix` amplifies too much for double precision: the "
            f"spatial memory matrix should have the trace {len(matrix)}. "
            f"Received: a matrix for which it is {trace:.6g}"
        )
    return encoder, step, powers


def _number_of_steps(matrix, horizon):
    if horizon is not None:
        return _arguments.integer("horizon", horizon)
    radius = spectrum.radii(matrix).max()
    if radius >= 1 - 1e-6:
        raise ValueError(
            "`recurrent_matrix` must have a spectral radius below 1, also "
            "after a change by rounding, or pass `horizon`. "
            f"Received: a spectral radius of {radius:.7g}"
        )
    # The loops over steps end early, when the power of the matrix vanishes.
    return 2**60


def _covariance_factor(matrix, steps):
    """Triangular R, R^T R = sum over k < steps of (V^k)^T V^k.

    The steps are doubled, and with them R and R V^steps R^-1. Powers of V
    itself would lose twice as many digits to amplification.
    """
    eye = np.eye(len(matrix))
    factor, power = eye, matrix
    for bit in f"{steps:b}"[1:]:
        if not np.linalg.norm(power) > 1e-9:
            break
        growth = _qr_factor(eye, power)
        factor = growth @ factor
        power = growth @ power @ _solve_right(power, growth)
        if bit == "1":
            stepped = factor @ matrix
            longer = _qr_factor(eye, stepped)
            growth = _solve_right(longer, factor)
            power = _solve_right(growth @ power @ stepped, longer)
            factor = longer
    return factor


def _sum_of_powers(step, steps):
    """The sum over k < steps of A^k (A^k)^T."""
    eye = np.eye(len(step))
    total, power = eye, step
    for bit in f"{steps:b}"[1:]:
        if not np.linalg.norm(power) > 1e-9:
            break
        total = total + power @ total @ power.T
        power = power @ power
        if bit == "1":
            total = eye + step @ total @ step.T
            power = power @ step
    return total


def _qr_factor(top, bottom):
    """R of the stacked matrices, R^T R = top^T top + bottom^T bottom."""
    return np.linalg.qr(np.vstack([top, bottom]), mode="r")


def _solve_right(matrix, factor):
    """matrix @ factor^-1, a triangular solve."""
    return scipy.linalg.solve_triangular(
        factor, matrix.T, trans="T", check_finite=False
    ).T
