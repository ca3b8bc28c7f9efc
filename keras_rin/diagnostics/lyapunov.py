"""Lyapunov exponents of a recurrent layer along sequences."""

import typing

import keras
import numpy as np
from numpy.typing import ArrayLike

from keras_rin import arguments
from keras_rin.diagnostics import jacobians
from keras_rin.diagnostics import state_map


class LyapunovSpectrum(typing.NamedTuple):
    """What `lyapunov_spectrum` finds; see there."""

    exponents: np.ndarray
    standard_error: np.ndarray
    convergence: np.ndarray


def lyapunov_spectrum(
    layer: keras.Layer,
    x: ArrayLike,
    exponents: int | None = None,
    warmup: int | None = None,
    rng: np.random.Generator | None = None,
) -> LyapunovSpectrum:
    """The Lyapunov exponents of a recurrent layer that is driven by sequences.

    J_t Q_{t-1} = Q_t R_t, exponent_i = mean over t of log |R_t[i, i]|

    J_t = d s_t / d s_{t-1} is the Jacobian along a sequence, see
    `state_jacobians`, and Q_t has orthonormal columns. Exponent i is the rate
    at which the i-th direction grows: a volume of the first i directions grows
    like exp(t (exponent_1 + ... + exponent_i)). With a largest exponent above
    0 two close states separate, and gradients explode; below 0 the state
    forgets where it began, after 1 / |exponent| time steps. An identity
    recurrence without activation has exponents of 0, a linear one
    log |eigenvalue| of its effective matrix. The sum of all exponents is the
    mean of log |det J_t|.

    A direction that is lost in a time step, such as that of a ReLU unit at 0,
    has an exponent of -inf or, by rounding, of about -36 or below for each
    step in which it is.

    Everything is computed in float64, whatever the dtype of the layer. The
    cost is of order batch time state^2 exponents. What is computed on the way
    takes a few hundred MB at most.

    Args:
        layer: A built recurrent layer or cell of Keras.
        x: Array `(batch, time, features)`, as in `state_trajectories`. For a
            layer without input, zeros.
        exponents: Positive integer, how many of the largest exponents to
            compute, at most the size of the state. Defaults to `None`: all.
        warmup: Integer from 0 to time - 1, the first time steps that are
            run and not counted, while the state and Q_t settle. Defaults to
            `None`: a tenth.
        rng: A `numpy.random.Generator` that draws Q_0. Defaults to `None`:
            one of seed 0.

    Returns:
        A named tuple: `exponents` `(exponents,)`, the means over the
        sequences, the largest first, in units of 1 / time step;
        `standard_error` `(exponents,)`, over the sequences, NaN if there is
        one alone; `convergence` `(time - warmup, exponents)`, the exponents
        as estimated from the steps counted so far.

    Raises:
        ValueError: As in `state_trajectories`; if `exponents` or `warmup` is
            no such integer; or if J_t Q_{t-1} is not finite.
        TypeError: If `rng` is not a `numpy.random.Generator`.

    Example:

    >>> layer = keras.layers.SimpleRNN(
    ...     2, None, recurrent_initializer=keras.initializers.Identity(0.5)
    ... )
    >>> layer.build((None, None, 1))
    >>> found = keras_rin.diagnostics.lyapunov_spectrum(
    ...     layer, np.zeros((1, 50, 1))
    ... )
    >>> np.exp(found.exponents).round(3)
    array([0.5, 0.5])

    Reference:
        Benettin, Galgani, Giorgilli and Strelcyn, 1980, Lyapunov
        characteristic exponents for smooth dynamical systems; Engelken, Wolf
        and Abbott, 2023, Lyapunov spectra of chaotic recurrent neural
        networks.
    """
    cell, inputs = jacobians.read(layer, x, "float64")
    batch, time, _ = inputs.shape
    size = sum(state_map.sizes(cell))
    exponents = size if exponents is None else exponents
    count = arguments.integer("exponents", exponents)
    if count > size:
        raise ValueError(
            f"`exponents` must be at most {size}, the size of the state of "
            f"{layer.name}. Received: exponents={exponents}"
        )
    warmup = time // 10 if warmup is None else warmup
    if arguments.integer("warmup", warmup, at_least=0) >= time:
        raise ValueError(
            f"`warmup` must be below the {time} time steps of `x`. "
            f"Received: warmup={warmup}"
        )
    rng = arguments.generator("rng", rng, seed=0)
    basis = np.linalg.qr(rng.normal(size=(count, size)).T).Q
    of_sequence = np.zeros((batch, count))
    of_step = np.zeros((time - warmup, count))
    together = max(1, state_map.VALUES // (size * count))
    with state_map.state_map(cell, "float64") as step:
        for start in range(0, batch, together):
            part = slice(start, start + together)
            for t, growth in enumerate(_growth(step, inputs[part], basis)):
                if t >= warmup:
                    of_sequence[part] += growth
                    of_step[t - warmup] += growth.sum(axis=0)
    steps = np.arange(1, len(of_step) + 1)[:, None]
    order = np.argsort(-of_sequence.sum(axis=0), kind="stable")
    return LyapunovSpectrum(
        of_step.sum(axis=0)[order] / (batch * len(of_step)),
        _standard_error(of_sequence[:, order] / len(of_step)),
        np.cumsum(of_step[:, order], axis=0) / (batch * steps),
    )


def _growth(step, x, basis):
    """log |R_t[i, i]| `(batch, exponents)`, step by step."""
    states = step.initial(len(x))
    # Directions are rows here, columns of Q_t in the formula.
    directions = np.broadcast_to(basis.T, (len(x), *basis.T.shape))
    for t in range(x.shape[1]):
        states, grown = step.along(states, x[:, t], directions)
        if not (np.isfinite(grown).all() and np.isfinite(states).all()):
            raise ValueError(
                f"The states of {step.name} along `x`, and their Jacobians, "
                f"must stay finite. Received: NaN or infinity at step {t + 1}"
            )
        q, r = np.linalg.qr(np.swapaxes(grown, 1, 2))
        directions = np.swapaxes(q, 1, 2)
        with np.errstate(divide="ignore"):
            yield np.log(np.abs(np.diagonal(r, axis1=1, axis2=2)))


def _standard_error(each):
    if len(each) == 1:
        return np.full(each.shape[1], np.nan)
    with np.errstate(invalid="ignore"):  # of -inf
        return each.std(axis=0, ddof=1) / np.sqrt(len(each))
