"""Tasks of rare events: `x, y` of a generator, and what counts as right.

Channel 0 is uniform in [0, 1) at every step; an event is a 1 or -1 in another
one, which is 0 elsewhere.
"""

import dataclasses
import functools
from collections.abc import Callable

import keras
import numpy as np

from keras_rin.tasks import adding


@dataclasses.dataclass(frozen=True)
class Task:
    """A task of so many features and outputs, with a target for a sequence."""

    generate: Callable
    features: int
    outputs: int
    loss: str | keras.losses.Loss
    is_right: Callable  # of targets and outputs, one a sequence


def background(rng, samples, length, channels):
    x = np.zeros((samples, length, 1 + channels), "float32")
    x[..., 0] = rng.random((samples, length), dtype="float32")
    return x


def place(rng, part, parts, samples, length):
    """A step for each sequence, in this of so many equal parts."""
    ends = np.linspace(0, length, parts + 1).astype(int)
    return rng.integers(*ends[part : part + 2], samples)


def noisy_adding(noise):
    """Adding, with noise in the channel of marks."""

    def generate(rng, samples, length):
        x, y = adding.generate(rng, samples, length)
        draws = rng.standard_normal((samples, length), dtype="float32")
        x[..., 1] += noise * draws
        return x, y

    return generate


def symbols(rng, samples, length, count, kinds=2, within=None):
    """So many events in turn, each a symbol, within the first steps or all."""
    x, rows = background(rng, samples, length, kinds), np.arange(samples)
    drawn = rng.integers(kinds, size=(samples, count))
    for number in range(count):
        steps = place(rng, number, count, samples, within or length)
        x[rows, steps, 1 + drawn[:, number]] = 1
    return x, drawn


def order(count):
    """Which symbols came, in which order: a class for each possibility."""

    def generate(rng, samples, length):
        x, drawn = symbols(rng, samples, length, count)
        return x, drawn @ 2 ** np.arange(count)

    return generate


def match(rng, samples, length):
    """Whether two symbols are the same."""
    x, drawn = symbols(rng, samples, length, 2)
    return x, (drawn[:, 0] == drawn[:, 1]).astype(int)


def cued_match(rng, samples, length):
    """Whether two of four symbols are the same, those that come with a cue."""
    x, rows = background(rng, samples, length, 3), np.arange(samples)
    drawn = rng.integers(2, size=(samples, 4))
    cued = np.argsort(rng.random((samples, 4)), axis=1)[:, :2]
    for number in range(4):
        steps = place(rng, number, 4, samples, length)
        x[rows, steps, 1 + drawn[:, number]] = 1
        x[rows, steps, 3] = (cued == number).any(axis=1)
    first, second = np.take_along_axis(drawn, cued, axis=1).T
    return x, (first == second).astype(int)


# Four symbols of four, answered together: at the first steps, or apart.
selective_copying = functools.partial(symbols, count=4, kinds=4)
copying = functools.partial(selective_copying, within=4)


def symbol_loss(y, outputs):
    return CROSS_ENTROPY(y, keras.ops.reshape(outputs, (-1, 4, 4)))


def are_symbols(y, outputs):
    return (outputs.reshape(-1, 4, 4).argmax(axis=2) == y).all(axis=1)


def flip_flop(pulses):
    """The signs of the last of up to so many pulses of three channels."""

    def generate(rng, samples, length):
        x, rows = background(rng, samples, length, 3), np.arange(samples)
        y = np.zeros((samples, 3), "float32")
        for channel in range(3):
            size = samples, pulses - 1
            steps = np.sort(rng.integers(1, length, size=size), axis=1)
            for step in (np.zeros(samples, int), *steps.T):
                y[:, channel] = rng.choice([-1, 1], samples)
                x[rows, step, 1 + channel] = y[:, channel]
        return x, y

    return generate


def levels(rng, samples, length, largest=6):
    """How often the level of a channel changes, 1 or -1 at every step."""
    x = background(rng, samples, length, 1)
    x[..., 1] = rng.choice([-1, 1], (samples, 1))
    counts = rng.integers(largest + 1, size=samples)
    for sequence, count in zip(x, counts, strict=True):
        for step in rng.choice(length, count, replace=False):
            sequence[step:, 1] *= -1
    return x, counts[:, None].astype("float32") / 10


def counting(rng, samples, length, largest=20):
    """How many pulses, in tens."""
    x = background(rng, samples, length, 1)
    counts = rng.integers(largest + 1, size=samples)
    for sequence, count in zip(x, counts, strict=True):
        sequence[rng.choice(length, count, replace=False), 1] = 1
    return x, counts[:, None].astype("float32") / 10


def is_near(y, outputs):
    return np.abs(outputs - y).max(axis=1) < 0.04  # of a sum with deviation .41


def is_nearest(y, outputs):
    return np.abs(outputs - y)[:, 0] < 0.05  # half a count


def are_signs(y, outputs):
    return (np.sign(outputs) == y).all(axis=1)


def is_class(y, outputs):
    return outputs.argmax(axis=1) == y


CROSS_ENTROPY = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
TASKS = {
    "adding": Task(adding.generate, 2, 1, "mse", is_near),
    "adding, noise 0.05": Task(noisy_adding(0.05), 2, 1, "mse", is_near),
    "adding, noise 0.2": Task(noisy_adding(0.2), 2, 1, "mse", is_near),
    "order of two": Task(order(2), 3, 4, CROSS_ENTROPY, is_class),
    "order of three": Task(order(3), 3, 8, CROSS_ENTROPY, is_class),
    "match": Task(match, 3, 2, CROSS_ENTROPY, is_class),
    "flip-flops": Task(flip_flop(3), 4, 3, "mse", are_signs),
    "counting": Task(counting, 2, 1, "mse", is_nearest),
    "flip-flops, closer": Task(flip_flop(20), 4, 3, "mse", are_signs),
    "match of the cued": Task(cued_match, 4, 2, CROSS_ENTROPY, is_class),
    "copying": Task(copying, 5, 16, symbol_loss, are_symbols),
    "selective copying": Task(
        selective_copying, 5, 16, symbol_loss, are_symbols
    ),
    "changes of a level": Task(levels, 2, 1, "mse", is_nearest),
}
