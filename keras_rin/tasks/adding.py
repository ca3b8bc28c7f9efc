"""The adding problem: the sum of the two marked numbers of a sequence."""

import numpy as np

from keras_rin import _arguments

__all__ = ["baseline_loss", "generate"]


def generate(
    rng: np.random.Generator, samples: int, length: int
) -> tuple[np.ndarray, np.ndarray]:
    """Generates samples of the adding problem.

    Args:
        rng: A `numpy.random.Generator`.
        samples: Positive integer, number of sequences.
        length: Integer of at least 2, number of time steps per sequence.

    Returns:
        A tuple `(x, y)`. `x` is float32 of shape `(samples, length, 2)`:
        channel 0 contains numbers drawn uniformly from [0, 1); channel 1 is 1
        at two different time steps, drawn uniformly, and 0 elsewhere. `y` is
        float32 of shape `(samples, 1)`, the sum of the two marked numbers.

    Example:

    >>> rng = np.random.default_rng(0)
    >>> x, y = keras_rin.tasks.adding.generate(rng, samples=32, length=100)
    >>> x.shape, y.shape
    ((32, 100, 2), (32, 1))

    Reference:
        Hochreiter and Schmidhuber, 1997, Long short-term memory; the
        placement of the marks follows Hu et al., 2018 (arXiv 1801.06105).
    """
    rng = _arguments.generator("rng", rng)
    samples = _arguments.integer("samples", samples)
    length = _arguments.integer("length", length, at_least=2)
    values = rng.random((samples, length), dtype=np.float32)
    first = rng.integers(length, size=samples)
    second = (first + rng.integers(1, length, size=samples)) % length
    marks = np.zeros_like(values)
    row = np.arange(samples)
    marks[row, first] = marks[row, second] = 1
    x = np.stack([values, marks], axis=-1)
    y = (values * marks).sum(axis=1, keepdims=True)
    return x, y


def baseline_loss() -> float:
    """Mean squared error of the constant prediction 1: 1/6.

    It is the variance of the sum of two numbers drawn uniformly from [0, 1).
    """
    return 1 / 6
