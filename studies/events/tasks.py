"""Tasks of rare events: `x, y` of a generator, and what counts as right.

Channel 0 is uniform in [0, 1) at every step; an event is a 1 or -1 in another
one, which is 0 elsewhere.
"""

import dataclasses
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


def symbols(rng, samples, length, count):
    """So many events in turn, each one of two symbols."""
    x, rows = background(rng, samples, length, 2), np.arange(samples)
    drawn = rng.integers(2, size=(samples, count))
    for number in range(count):
        steps = place(rng, number, count, samples, length)
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


def flip_flop(rng, samples, length):
    """The signs of the last pulses of three channels, two or three in each."""
    x, rows = background(rng, samples, length, 3), np.arange(samples)
    y = np.zeros((samples, 3), "float32")
    for channel in range(3):
        steps = np.sort(rng.integers(1, length, size=(samples, 2)), axis=1)
        for step in (np.zeros(samples, int), *steps.T):
            y[:, channel] = rng.choice([-1, 1], samples)
            x[rows, step, 1 + channel] = y[:, channel]
    return x, y


def counting(rng, samples, length, largest=20):
    """How many pulses, in tens."""
    x = background(rng, samples, length, 1)
    counts = rng.integers(largest + 1, size=samples)
    for sequence, count in zip(x, counts, strict=True):
        sequence[rng.choice(length, count, replace=False), 1] = 1
    return x, counts[:, None].astype("float32") / 10


def is_near(y, outputs):
    return np.abs(outputs - y).max(axis=1) < 0.04  # of a sum with deviation .41


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
    "flip-flops": Task(
        flip_flop,
        *(4, 3, "mse"),
        lambda y, outputs: (np.sign(outputs) == y).all(axis=1),
    ),
    "counting": Task(
        counting,
        *(2, 1, "mse"),
        lambda y, outputs: np.abs(outputs - y)[:, 0] < 0.05,
    ),
}
