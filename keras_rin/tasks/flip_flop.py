"""The flip-flop task: one bit for each input, set and reset by pulses."""

import numpy as np

from keras_rin import _arguments

__all__ = ["baseline_loss", "generate"]


def generate(
    rng: np.random.Generator,
    samples: int,
    length: int,
    bits: int = 3,
    pulse_probability: float = 0.1,
) -> tuple[np.ndarray, np.ndarray]:
    """Generates samples of the flip-flop task.

    Each input channel is 0 except for pulses of 1 or -1, which are equally
    likely. The target of a channel is the sign of its latest pulse. Every
    channel has a pulse in the first time step, so each target is 1 or -1
    throughout.

    A network that solves the task has 2^bits stable states, which
    `keras_rin.diagnostics.fixed_points` finds.

    Args:
        rng: A `numpy.random.Generator`.
        samples: Positive integer, number of sequences.
        length: Positive integer, number of time steps per sequence.
        bits: Positive integer, number of channels. Defaults to 3.
        pulse_probability: Number in [0, 1], probability of a pulse for each
            channel and time step after the first. Defaults to 0.1.

    Returns:
        A tuple `(x, y)` of float32 arrays of shape `(samples, length, bits)`.

    Example:

    >>> rng = np.random.default_rng(0)
    >>> x, y = keras_rin.tasks.flip_flop.generate(rng, 1, 8, bits=1)
    >>> x[0, :, 0].astype(int)
    array([ 1,  0,  0,  0,  0,  0,  0, -1])
    >>> y[0, :, 0].astype(int)
    array([ 1,  1,  1,  1,  1,  1,  1, -1])

    Reference:
        Sussillo and Barak, 2013, Opening the black box: low-dimensional
        dynamics in high-dimensional recurrent neural networks.
    """
    rng = _arguments.generator("rng", rng)
    sizes = {"samples": samples, "length": length, "bits": bits}
    shape = tuple(_arguments.integer(*size) for size in sizes.items())
    probability = _arguments.finite_number(
        "pulse_probability", pulse_probability, 0, 1
    )
    signs = rng.choice(np.array([-1, 1], "float32"), size=shape)
    pulses = rng.random(shape) < probability
    pulses[:, 0] = True
    steps = np.arange(length)[:, None]
    latest = np.maximum.accumulate(np.where(pulses, steps, 0), axis=1)
    return signs * pulses, np.take_along_axis(signs, latest, axis=1)


def baseline_loss() -> float:
    """Mean squared error of the constant prediction 0: 1.

    It is the variance of a target that is 1 or -1 with equal probability.
    """
    return 1.0
