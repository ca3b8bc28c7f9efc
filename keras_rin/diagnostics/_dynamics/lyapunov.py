"""Lyapunov exponents of a recurrent layer along sequences."""

import typing

import keras
import numpy as np
from numpy.typing import ArrayLike

from keras_rin import _arguments
from keras_rin.diagnostics._dynamics import state_map
from keras_rin.diagnostics._dynamics.sequences import cell_and_sequences
from keras_rin.diagnostics._dynamics.sequences import sorted_steps

# A smaller change of a state in a step, relative to it, is none; nor is a
# smaller exponent above 0, if weights are in float32.
RESTING = 1e-6


class LyapunovSpectrum(typing.NamedTuple):
    """What `lyapunov_spectrum` returns, in units of 1 / time step.

    `print` shows the largest exponent, and how many have which sign, which is
    undetermined within three standard errors, or 1e-7, of 0.

    Attributes:
        exponents: Array `(exponents,)`, the means over all time steps that
            count, the largest first.
        standard_error: Array `(exponents,)`, over the sequences; NaN of one.
        convergence: Array `(time - warmup, exponents)`, the exponents as
            estimated from the steps counted so far.
    """

    exponents: np.ndarray
    standard_error: np.ndarray
    convergence: np.ndarray

    def __repr__(self):
        largest, error = self.exponents[0], self.standard_error[0]
        margins = np.maximum(3 * np.nan_to_num(self.standard_error), 1e-7)
        positive = (self.exponents > margins).sum()
        negative = (self.exponents < -margins).sum()
        error = "" if np.isnan(error) else f" (standard error {error:.1g})"
        return (
            f"largest exponent {largest:.3g}{error}; {positive} positive, "
            f"{negative} negative, "
            f"{len(margins) - positive - negative} undetermined"
        )


def lyapunov_spectrum(
    layer: keras.Layer,
    x: "ArrayLike",
    *,
    mask: "ArrayLike | None" = None,
    initial_states: "ArrayLike | None" = None,
    exponents: int | None = None,
    warmup: int | None = None,
    rng: np.random.Generator | None = None,
) -> LyapunovSpectrum:
    """The Lyapunov exponents of a recurrent layer that is driven by sequences.

    J_t Q_{t-1} = Q_t R_t, exponent_i = mean over t of log |R_t[i, i]|

    J_t is the Jacobian along a sequence, see `state_jacobians`, and Q_t has
    orthonormal columns. Exponent i is the rate at which the i-th direction
    grows: with a largest exponent above 0 two close states separate, and
    gradients explode; below 0 the state forgets where it began, after
    1 / |exponent| time steps. The sign of an exponent is not determined within
    a few `standard_error` of 0, nor within 1e-7 if the weights are float32. A
    linear recurrence has the exponents log |eigenvalue| of its effective
    matrix. A direction that is lost in a time step, such as that of a ReLU unit
    at 0, has an exponent of -inf, or about -36 by rounding.

    Exponents belong to an attractor, the one that the sequences reach within
    the warmup. Without inputs and biases the state 0 may rest at an unstable
    fixed point, with an exponent above 0 whatever the network does elsewhere:
    pass initial states away from it.

    Everything is computed in float64, at a cost of order
    batch time state^2 exponents.

    Args:
        layer: A built recurrent layer or cell of Keras.
        x: Array `(batch, time, features)`, as in `state_trajectories`. For a
            layer without input, zeros.
        mask: Boolean array `(batch, time)`. Time steps where it is `False`
            are left out, as by the layer, and sequences that end within the
            warmup do not count. Defaults to `None`.
        initial_states: As in `state_trajectories`. Defaults to `None`.
        exponents: Positive integer, how many of the largest exponents to
            compute, at most the size of the state. Defaults to `None`: all.
        warmup: Integer from 0 to time - 1, the first time steps of each
            sequence that are run and not counted, while the state and Q_t
            settle. Defaults to `None`: a tenth.
        rng: A `numpy.random.Generator` that draws Q_0. Defaults to `None`:
            one of seed 0.

    Returns:
        A `LyapunovSpectrum`, a named tuple.

    Warns:
        UserWarning: If sequences do not move after the warmup and have an
            exponent above 0.

    Raises:
        ValueError: As in `state_trajectories`; if `exponents` or `warmup` is
            no such integer; if J_t Q_{t-1} is not finite.
        TypeError: If `rng` is not a `numpy.random.Generator`.

    Example:

    >>> layer = keras.layers.SimpleRNN(
    ...     2, None, recurrent_initializer=keras.initializers.Identity(0.5)
    ... )
    >>> layer.build((None, None, 1))
    >>> x = np.zeros((1, 50, 1))
    >>> spectrum = keras_rin.diagnostics.lyapunov_spectrum(layer, x)
    >>> np.exp(spectrum.exponents).round(3)
    array([0.5, 0.5])
    >>> print(spectrum)
    largest exponent -0.693; 0 positive, 2 negative, 0 undetermined

    Reference:
        Benettin, Galgani, Giorgilli and Strelcyn, 1980, Lyapunov
        characteristic exponents; Engelken, Wolf and Abbott, 2023, Lyapunov
        spectra of chaotic recurrent neural networks.
    """
    cell, inputs, unmasked, initial = cell_and_sequences(
        layer, x, mask, initial_states
    )
    lengths = unmasked.sum(axis=1)
    size = sum(state_map.sizes(cell))
    longest = int(lengths.max())
    exponents = size if exponents is None else exponents
    warmup = longest // 10 if warmup is None else warmup
    count = _arguments.integer("exponents", exponents, at_most=size)
    warmup = _arguments.integer("warmup", warmup, 0, longest - 1)
    rng = _arguments.generator("rng", rng, seed=0)
    order = np.argsort(-lengths, kind="stable")[: (lengths > warmup).sum()]
    inputs = sorted_steps(inputs[order], ~unmasked[order])
    initial, lengths = initial[order], lengths[order]
    basis = np.linalg.qr(rng.normal(size=(count, size)).T).Q
    with state_map.state_map(cell, "float64") as step:
        by_sequence, by_step, moves = _sum_growth(
            step, initial, inputs, lengths, basis, warmup
        )
    counts = lengths - warmup
    _warn_of_rest(cell, by_sequence.max(axis=1) / counts, moves)
    steps = np.minimum(counts[:, None], np.arange(1, len(by_step) + 1))
    order = np.argsort(-by_sequence.sum(axis=0), kind="stable")
    return LyapunovSpectrum(
        by_step.sum(axis=0)[order] / counts.sum(),
        _standard_error(by_sequence[:, order], counts[:, None]),
        np.cumsum(by_step[:, order], axis=0) / steps.sum(axis=0)[:, None],
    )


def _warn_of_rest(cell, largest, moves):
    at_unstable_point = ~moves & (largest > RESTING)
    if at_unstable_point.any():
        _arguments.warn(
            f"The states of {cell.name} in {at_unstable_point.sum()} of "
            f"{len(moves)} sequences do not move: these exponents, up to "
            f"{largest[at_unstable_point].max():.3g}, belong to an unstable "
            "fixed point and to no attractor. Pass other `initial_states`"
        )


def _sum_growth(step, initial, inputs, lengths, basis, warmup):
    """log |R_t[i, i]| after the warmup, summed over steps, over sequences.

    And which sequences move after the warmup.
    """
    by_sequence, by_step, moves = 0, [], False
    for times, growth, has_moved in _growth(
        step, initial, inputs, lengths, basis
    ):
        is_counted = times >= warmup
        by_sequence = by_sequence + growth[:, is_counted].sum(axis=1)
        by_step.append(growth[:, is_counted].sum(axis=0))
        moves = moves | has_moved[:, is_counted].any(axis=1)
    return by_sequence, np.concatenate(by_step), moves


def _growth(step, states, x, lengths, basis):
    """log |R_t[i, i]| `(sequences, steps, exponents)`, and which states move.

    In blocks of time steps, whose states are computed together. The longest
    sequence comes first, and those that have ended neither grow nor move.
    """
    directions = np.broadcast_to(basis, (len(x), *basis.shape))
    block = max(1, state_map.VALUES // (len(x) * step.size**2))
    for start in range(0, lengths[0], block):
        times = np.arange(start, min(start + block, lengths[0]))
        is_active = times < lengths[:, None]
        trajectory = step.unchecked_trajectory(states, x[:, times], is_active)
        previous, states = trajectory[:, :-1], trajectory[:, -1]
        grow = _tangent_map(step, previous, x[:, times], basis.shape[1])
        diagonals = np.ones((*is_active.shape, basis.shape[1]))
        for k, active in enumerate(is_active.sum(axis=0)):
            directions, r = np.linalg.qr(grow(k, directions[:active]))
            diagonals[:active, k] = np.diagonal(r, axis1=1, axis2=2)
        _check_finite(step, start, trajectory[:, 1:], diagonals)
        changes = np.abs(np.diff(trajectory, axis=1)).max(axis=2)
        sizes = np.abs(trajectory[:, 1:]).max(axis=2, initial=1)
        with np.errstate(divide="ignore"):
            growth = np.log(np.abs(diagonals))
        yield times, growth, changes > RESTING * sizes


def _tangent_map(step, states, x, count):
    """A function of a step k and directions that returns J_k times these."""
    if 2 * count < step.size:

        def grow(k, directions):
            rows = slice(len(directions))
            return step.directional(states[rows, k], x[rows, k], directions)

        return grow
    # For many directions a Jacobian costs less than copies of the state.
    jacobians = step.jacobians(
        states.reshape(-1, step.size), x.reshape(-1, x.shape[-1])
    ).reshape(*states.shape, step.size)
    return lambda k, directions: jacobians[: len(directions), k] @ directions


def _check_finite(step, start, *arrays):
    is_finite = [np.isfinite(array).all(axis=(0, 2)) for array in arrays]
    is_finite = np.logical_and(*is_finite)
    if not is_finite.all():
        raise ValueError(
            f"The states of {step.name} along `x`, and their Jacobians, must "
            "stay finite. Received: NaN or infinity at step "
            f"{start + is_finite.argmin() + 1}"
        )


def _standard_error(sums, counts):
    """The standard error of the ratio of mean sum to mean count."""
    if len(sums) == 1:
        return np.full(sums.shape[1], np.nan)
    with np.errstate(invalid="ignore"):  # of -inf
        residuals = sums - counts * (sums.sum(axis=0) / counts.sum())
        deviation = np.sqrt((residuals**2).sum(axis=0) / (len(sums) - 1))
    return deviation * np.sqrt(len(sums)) / counts.sum()
