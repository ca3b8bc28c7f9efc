"""The copying problem: recall a sequence of symbols after a delay."""

import math

import numpy as np

from keras_rin import _arguments

__all__ = ["baseline_loss", "generate"]


def generate(
    rng: np.random.Generator,
    samples: int,
    length: int,
    copied: int = 10,
    symbols: int = 8,
) -> tuple[np.ndarray, np.ndarray]:
    """Generates samples of the copying problem.

    The symbols, numbered 1 to `symbols`, are shown in the first `copied` time
    steps. The cue, number `symbols` + 1, is shown when `copied` time steps are
    left. All other inputs are the blank, 0. The target is blank up to the cue
    and then the symbols in order, each with a delay of `length` - `copied`
    time steps.

    Args:
        rng: A `numpy.random.Generator`.
        samples: Positive integer, number of sequences.
        length: Integer of at least 2 `copied` + 1, number of time steps per
            sequence.
        copied: Positive integer, number of symbols to recall. Defaults to 10.
        symbols: Positive integer, number of distinct symbols. Defaults to 8.

    Returns:
        A tuple `(x, y)`. `x` is float32 of shape
        `(samples, length, symbols + 2)`, the one-hot encoded inputs. `y` is
        int32 of shape `(samples, length)`, the target class of each time step,
        from 0 to `symbols`.

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
    rng = _arguments.generator("rng", rng)
    samples = _arguments.integer("samples", samples)
    copied = _arguments.integer("copied", copied)
    symbols = _arguments.integer("symbols", symbols)
    length = _arguments.integer("length", length, at_least=2 * copied + 1)
    recalled = rng.integers(1, symbols + 1, size=(samples, copied))
    sequence = np.zeros((samples, length), "int32")
    sequence[:, :copied] = recalled
    sequence[:, -copied - 1] = symbols + 1
    y = np.zeros((samples, length), "int32")
    y[:, -copied:] = recalled
    return np.eye(symbols + 2, dtype="float32")[sequence], y


def baseline_loss(length: int, copied: int = 10, symbols: int = 8) -> float:
    """Cross-entropy of a uniform guess at every time step after the cue.

    copied * ln(symbols) / length

    The blanks before are predicted without error.

    Args:
        length: Integer of at least 2 `copied` + 1, number of time steps per
            sequence.
        copied: Positive integer, number of symbols to recall. Defaults to 10.
        symbols: Positive integer, number of distinct symbols. Defaults to 8.

    Returns:
        A float, in nats, averaged over all time steps.

    Example:

    >>> round(keras_rin.tasks.copying.baseline_loss(500), 4)
    0.0416
    """
    return copied * math.log(symbols) / length
