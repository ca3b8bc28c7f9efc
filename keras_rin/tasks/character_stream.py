"""Character-level language modeling on a continuous text."""

import collections

import numpy as np

from keras_rin import _arguments

__all__ = ["alphabet", "baseline_loss", "generate"]


def __dir__():
    return __all__


def alphabet(text: str) -> str:
    """Returns the distinct characters of a text in sorted order.

    Args:
        text: A string of at least one character.

    Returns:
        A string that contains each character once.

    Raises:
        ValueError: If `text` is not such a string.

    Example:

    >>> keras_rin.tasks.character_stream.alphabet("banana")
    'abn'
    """
    return "".join(sorted(set(_checked_text(text))))


def generate(
    text: str, characters: str, streams: int, length: int
) -> tuple[np.ndarray, np.ndarray]:
    """Cuts a text into windows for next-character prediction.

    The text is cut into `streams` contiguous parts of equal size, and each
    part into consecutive windows. Row w * `streams` + s contains window w of
    part s, so in batches of `streams` rows, in order, each window continues
    the corresponding window of the previous batch, as a stateful layer
    requires. For stateless training the rows can be shuffled. The remainder
    at the end of each part is dropped.

    Args:
        text: A string, long enough for one window in each stream.
        characters: A string of distinct characters, such as `alphabet`
            returns, that includes all characters of the text.
        streams: Positive integer, number of parts, which is the batch size
            of a stateful layer.
        length: Positive integer, number of time steps per window.

    Returns:
        A tuple `(x, y)` of int32 arrays of shape `(windows * streams, length)`:
        indices into `characters`, and the same shifted by one time step.

    Raises:
        ValueError: If a size is not a positive integer, if the text is too
            short, or if it contains other characters.

    Example:

    >>> x, y = keras_rin.tasks.character_stream.generate(
    ...     "abcabcabc", "abc", streams=2, length=3
    ... )
    >>> x
    array([[0, 1, 2],
           [1, 2, 0]], dtype=int32)
    >>> y
    array([[1, 2, 0],
           [2, 0, 1]], dtype=int32)
    """
    streams = _arguments.integer("streams", streams)
    length = _arguments.integer("length", length)
    codes = _encode(_checked_text(text), characters)
    part = len(codes) // streams
    windows = (part - 1) // length
    if windows < 1:
        raise ValueError(
            f"`text` must have at least {streams * (length + 1)} characters "
            f"for streams={streams} and length={length}. "
            f"Received: a text of {len(codes)} characters"
        )
    parts = codes[: streams * part].reshape(streams, part)

    def cut(start):
        rows = parts[:, start : start + windows * length]
        rows = rows.reshape(streams, windows, length).swapaxes(0, 1)
        return rows.reshape(windows * streams, length)

    return cut(0), cut(1)


def baseline_loss(text: str) -> float:
    """Cross-entropy of predicting the character frequencies at every step.

    Args:
        text: A string of at least one character.

    Returns:
        A float, the entropy of the character frequencies in nats per
        character.

    Raises:
        ValueError: If `text` is not such a string.

    Example:

    >>> round(keras_rin.tasks.character_stream.baseline_loss("abab"), 4)
    0.6931
    """
    counts = np.array(list(collections.Counter(_checked_text(text)).values()))
    shares = counts / counts.sum()
    return float(-(shares * np.log(shares)).sum())


def _checked_text(text):
    if not isinstance(text, str) or not text:
        raise ValueError(
            "`text` must be a string of at least one character. "
            f"Received: text={text!r}"
        )
    return text


def _encode(text, characters):
    index = {c: k for k, c in enumerate(characters)}
    if len(index) != len(characters):
        raise ValueError(
            "`characters` must contain each character only once. "
            f"Received: characters={characters!r}"
        )
    unknown = set(text) - set(index)
    if unknown:
        raise ValueError(
            "`characters` must contain every character of the text. "
            f"Missing: {''.join(sorted(unknown))!r}"
        )
    return np.array([index[c] for c in text], "int32")
