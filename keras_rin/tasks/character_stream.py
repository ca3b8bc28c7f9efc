"""Predicting the next character of a text."""

import collections

import numpy as np

from keras_rin import arguments


def alphabet(text):
    """The different characters of a text, in order.

    Args:
        text: A string of at least one character.

    Returns:
        A string: each character once, sorted.

    Raises:
        ValueError: If `text` is not such a string.

    Example:

    >>> keras_rin.tasks.character_stream.alphabet("banana")
    'abn'
    """
    return "".join(sorted(set(_checked(text))))


def generate(text, characters, streams, length):
    """Cuts a text into windows that go on where the last batch stopped.

    The text is cut into `streams` parts of equal size, and these into
    windows. Row w * `streams` + s holds window w of part s, so that batches
    of `streams` rows, in order, carry on the state of a stateful layer;
    shuffled, the rows are windows like any others. What is left over at the
    end of a part is dropped.

    Args:
        text: A string, long enough for one window in each stream.
        characters: A string of different characters, such as `alphabet`
            returns; all of the text must be among them.
        streams: Positive integer, how many parts are read side by side.
        length: Positive integer, the steps of a window.

    Returns:
        `x` and `y`, int32 of shape `(windows * streams, length)`: places of
        characters in `characters`, and of those one step later.

    Raises:
        ValueError: If a size is not a positive integer, if the text is too
            short, or if it has other characters.

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
    streams = arguments.integer("streams", streams)
    length = arguments.integer("length", length)
    codes = _encode(_checked(text), characters)
    part = len(codes) // streams
    windows = (part - 1) // length
    if windows < 1:
        raise ValueError(
            f"`text` must have {streams * (length + 1)} characters or more "
            f"for streams={streams} and length={length}. "
            f"Received: a text of {len(codes)}"
        )
    parts = codes[: streams * part].reshape(streams, part)

    def cut(start):
        kept = parts[:, start : start + windows * length]
        kept = kept.reshape(streams, windows, length).swapaxes(0, 1)
        return kept.reshape(windows * streams, length)

    return cut(0), cut(1)


def baseline_loss(text):
    """The cross-entropy of who knows how frequent each character is.

    Args:
        text: A string of at least one character.

    Returns:
        A float: the entropy of the frequencies, in nats for each character.

    Raises:
        ValueError: If `text` is not such a string.

    Example:

    >>> round(keras_rin.tasks.character_stream.baseline_loss("abab"), 4)
    0.6931
    """
    counts = np.array(list(collections.Counter(_checked(text)).values()))
    shares = counts / counts.sum()
    return float(-(shares * np.log(shares)).sum())


def _checked(text):
    if not isinstance(text, str) or not text:
        raise ValueError(
            "`text` must be a string of at least one character. "
            f"Received: text={text!r}"
        )
    return text


def _encode(text, characters):
    place = {c: k for k, c in enumerate(characters)}
    if len(place) != len(characters):
        raise ValueError(
            "`characters` must hold each character once. "
            f"Received: characters={characters!r}"
        )
    unknown = set(text) - set(place)
    if unknown:
        raise ValueError(
            "`characters` must hold every character of the text. "
            f"Missing: {''.join(sorted(unknown))!r}"
        )
    return np.array([place[c] for c in text], "int32")
