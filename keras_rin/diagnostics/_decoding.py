"""Linear decoding of the first signal from the last state."""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from keras_rin import _arguments


def first_signal_r2(
    recurrent_matrix: ArrayLike,
    *,
    input_vector: ArrayLike | None = None,
    noise: float = 0.0,
    activation: Callable | None = None,
    steps: int | None = None,
    samples: int = 2_000,
    rng: np.random.Generator | None = None,
) -> float:
    """R^2 of a linear decoder of the first of many signals from the last state.

    R^2 = 1 - mean (a . h_T + b - s_1)^2 / var s_1

    A network runs from rest, h_t = activation(h_{t-1} V + s_t w + z_t), on
    signals s_t ~ N(0, 1) with the noise z_t ~ N(0, noise I). The read-out a, b
    is fitted by least squares on as many sequences as R^2 is then measured
    on, so that a read-out which finds nothing comes out a little below 0.

    Without an activation, and with samples enough, R^2 tends to
    c S^-1 c^T, where c = w V^(T - 1) is the trace of the first signal and S
    the covariance of the state. Unlike the memory curve this counts the
    other signals as noise. Each unit is brought to the size 1 before the fit;
    what is then smaller than the rest by a factor of 2e-16 times the number of
    samples counts as nothing.

    The cost is of order steps samples units^2, and the states of all samples
    are held in memory: for 500 units and as many steps the simulation takes
    half a minute on two cores, and for 2,000 the better part of an hour.

    Args:
        recurrent_matrix: Array V of shape `(units, units)`.
        input_vector: Array w of shape `(units,)`. Defaults to `None`: the
            first unit alone.
        noise: Number, at least 0, the variance of the noise that enters each
            unit at each step. Defaults to 0.
        activation: Function of an array. Defaults to `None`: linear.
        steps: Positive integer T. Defaults to `None`: the number of units.
        samples: Positive integer, the sequences to fit on, and again to
            measure on: above the number of units + 1, and better ten times
            that. Defaults to 2000.
        rng: A `numpy.random.Generator`. Defaults to `None`: one of seed 0.

    Returns:
        R^2, a float: at most 1.

    Raises:
        ValueError: If `recurrent_matrix` is not square, real and finite, if
            `input_vector` does not fit it, if `noise` is negative, if
            `steps` is below 1 or `samples` too small, or if the states are
            not finite or `activation` changes their shape.
        TypeError: If `rng` is not a `numpy.random.Generator`.

    Example:

    >>> chain = np.eye(20, k=1)
    >>> r2 = keras_rin.diagnostics.first_signal_r2(chain)
    >>> round(r2, 6)
    1.0

    Reference:
        Orhan and Pitkow, 2020 (arXiv 1905.13715), figure 2.
    """
    matrix = _arguments.square_matrix("recurrent_matrix", recurrent_matrix)
    units = len(matrix)
    vector = _arguments.vector("input_vector", input_vector, units)
    noise = _arguments.finite_number("noise", noise, at_least=0)
    steps = _arguments.integer("steps", units if steps is None else steps)
    # With fewer samples the decoder fits every signal exactly.
    samples = _arguments.integer("samples", samples, at_least=units + 2)
    rng = _arguments.generator("rng", rng, seed=0)
    signals = rng.normal(size=(steps, 2 * samples))
    states = np.zeros((2 * samples, units))
    for signal in signals:
        with np.errstate(over="ignore", invalid="ignore"):
            states = states @ matrix + np.outer(signal, vector)
        if noise:
            states += np.sqrt(noise) * rng.normal(size=states.shape)
        if activation is not None:
            states = _arguments.real_array("activation", activation(states))
        if (
            states.shape != (2 * samples, units)
            or not np.isfinite(states).all()
        ):
            raise ValueError(
                "The states must stay finite and of one shape. Received: "
                f"states of shape {states.shape}, "
                f"{np.isfinite(states).sum()} of {states.size} finite"
            )
    return _r_squared(states, signals[0])


def _r_squared(states, signal):
    states = states / (np.abs(states).max(axis=0) + (states == 0).all(axis=0))
    states = np.column_stack([states, np.ones(len(states))])
    train, test = np.split(states, 2)
    y_train, y_test = np.split(signal, 2)
    rcond = np.finfo(float).eps * max(train.shape)  # of NumPy 2
    weights = np.linalg.lstsq(train, y_train, rcond)[0]
    return float(1 - np.mean((test @ weights - y_test) ** 2) / y_test.var())
