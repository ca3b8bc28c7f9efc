"""The copying problem: say at the end what was said at the start."""

import math

import numpy as np

from keras_rin import arguments


def generate(rng, samples, length, copied=10, symbols=8):
    """Draws sequences that start with symbols to be repeated at the end.

    The symbols 1 to `symbols` stand in the first `copied` steps, the cue
    `symbols` + 1 where as many steps are left, and the blank 0 everywhere
    else. The answer is blank up to the cue and then the symbols in order,
    each `length` - `copied` steps after it was shown.

    Args:
        rng: A `numpy.random.Generator`.
        samples: Positive integer, how many sequences.
        length: Integer of at least 2 `copied` + 1, the steps of a sequence.
        copied: Positive integer, how many symbols to remember. Defaults to
            10.
        symbols: Positive integer, how many different symbols there are.
            Defaults to 8.

    Returns:
        `x`, float32 of shape `(samples, length, symbols + 2)`: the sequence
        one-hot. `y`, int32 of shape `(samples, length)`: the answer at each
        step, from 0 to `symbols`.

    Raises:
        ValueError: If a size is not such an integer.
        TypeError: If `rng` is not a `numpy.random.Generator`.

    Example:

    >>> rng = np.random.default_rng(0)
    >>> x, y = keras_rin.tasks.copying.generate(
    ...     rng, samples=1, length=8, copied=2
    ... )
    >>> x.argmax(axis=2)
    array([[7, 6, 0, 0, 0, 9, 0, 0]])
    >>> y
    array([[0, 0, 0, 0, 0, 0, 7, 6]], dtype=int32)

    Reference:
        Hochreiter and Schmidhuber, 1997, Long short-term memory; in the
        form of Orhan and Pitkow, 2020 (arXiv 1905.13715).
    """
    rng = arguments.generator("rng", rng)
    samples = arguments.integer("samples", samples)
    copied = arguments.integer("copied", copied)
    symbols = arguments.integer("symbols", symbols)
    length = arguments.integer("length", length, at_least=2 * copied + 1)
    shown = rng.integers(1, symbols + 1, size=(samples, copied))
    sequence = np.zeros((samples, length), "int32")
    sequence[:, :copied] = shown
    sequence[:, -copied - 1] = symbols + 1
    y = np.zeros((samples, length), "int32")
    y[:, -copied:] = shown
    return np.eye(symbols + 2, dtype="float32")[sequence], y


def baseline_loss(length, copied=10, symbols=8):
    """The cross-entropy of who knows when to answer and nothing else.

    copied * ln(symbols) / length

    Args:
        length: Integer of at least 2 `copied` + 1, the steps of a sequence.
        copied: Positive integer, how many symbols to remember. Defaults to
            10.
        symbols: Positive integer, how many different symbols there are.
            Defaults to 8.

    Returns:
        A float, in nats, averaged over all steps.

    Example:

    >>> round(keras_rin.tasks.copying.baseline_loss(500), 4)
    0.0416
    """
    copied = arguments.integer("copied", copied)
    length = arguments.integer("length", length, at_least=2 * copied + 1)
    return copied * math.log(arguments.integer("symbols", symbols)) / length
