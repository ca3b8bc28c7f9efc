"""Delayed match to sample: is the second stimulus the first one?"""

import math

import numpy as np

from keras_rin import _arguments

__all__ = ["baseline_loss", "generate"]


def generate(
    rng: np.random.Generator,
    samples: int,
    length: int,
    stimuli: int = 2,
    period: int = 4,
    shortest_delay: int | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Generates trials of delayed match to sample.

    A trial has five periods: fixation, sample, delay, test, answer. One of the
    stimuli is shown in the sample period and one in the test period; half of
    the trials are matches. The fixation cue is on until the answer. The target
    is 0, and in the answer 1 for a match and 2 for another stimulus.

    Args:
        rng: A `numpy.random.Generator`.
        samples: Positive integer, number of trials.
        length: Integer above 4 `period`, number of time steps of a trial.
        stimuli: Integer of at least 2, number of stimuli. Defaults to 2.
        period: Positive integer, number of time steps of each period except
            the delay, which takes the others. Defaults to 4.
        shortest_delay: Positive integer. Each trial has a delay of its own,
            uniform from this one to the longest; a shorter one prolongs
            fixation. Defaults to `None`, where all have the longest.

    Returns:
        A tuple `(x, y)`. `x` is float32 of shape `(samples, length,
        1 + stimuli)`, the fixation cue and the one-hot encoded stimulus. `y`
        is int32 of shape `(samples, length)`, the target class.

    Example:

    >>> rng = np.random.default_rng(0)
    >>> x, y = keras_rin.tasks.delayed_match.generate(rng, 1, 7, period=1)
    >>> x[0].T.astype(int)
    array([[1, 1, 1, 1, 1, 1, 0],
           [0, 0, 0, 0, 0, 0, 0],
           [0, 1, 0, 0, 0, 1, 0]])
    >>> y
    array([[0, 0, 0, 0, 0, 0, 1]], dtype=int32)

    Reference:
        Miller, Erickson and Desimone, 1996, Neural mechanisms of visual working
        memory in prefrontal cortex of the macaque.
    """
    rng = _arguments.generator("rng", rng)
    samples = _arguments.integer("samples", samples)
    stimuli = _arguments.integer("stimuli", stimuli, at_least=2)
    period = _arguments.integer("period", period)
    length = _arguments.integer("length", length, at_least=4 * period + 1)
    longest = length - 4 * period
    shortest = longest if shortest_delay is None else shortest_delay
    shortest = _arguments.integer("shortest_delay", shortest)
    _arguments.finite_number("shortest_delay", shortest, 1, longest)
    delays = rng.integers(shortest, longest + 1, size=(samples, 1))
    first = rng.integers(stimuli, size=samples)
    is_match = rng.random(samples) < 0.5
    others = (first + rng.integers(1, stimuli, size=samples)) % stimuli
    second = np.where(is_match, first, others)

    x = np.zeros((samples, length, 1 + stimuli), "float32")
    y = np.zeros((samples, length), "int32")
    steps, end = np.arange(length), length - 2 * period
    in_sample = (steps < end - delays) & (steps >= end - delays - period)
    in_test = (steps >= end) & (steps < length - period)
    stimulus = np.eye(stimuli, dtype="float32")
    x[:, :-period, 0] = 1
    x[..., 1:] += in_sample[..., None] * stimulus[first][:, None]
    x[..., 1:] += in_test[:, None] * stimulus[second][:, None]
    y[:, -period:] = np.where(is_match, 1, 2)[:, None]
    return x, y


def baseline_loss(length: int, period: int = 4) -> float:
    """Cross-entropy of a uniform guess between match and no match.

    period * ln(2) / length

    The steps before the answer are predicted without error.

    Args:
        length: Integer above 4 `period`, number of time steps of a trial.
        period: Positive integer, number of time steps of the answer. Defaults
            to 4.

    Returns:
        A float, in nats, averaged over all time steps.
    """
    return period * math.log(2) / length
