"""Character-level language modeling on a text."""

import numpy as np


def windows(text, characters, length):
    """Consecutive windows of a text, and the same one character later.

    Both are int32 arrays `(windows, length)` of indices into `characters`.
    The remainder at the end is dropped.
    """
    index = {character: k for k, character in enumerate(characters)}
    codes = np.array([index[character] for character in text], "int32")
    size = (len(codes) - 1) // length * length
    return (
        codes[:size].reshape(-1, length),
        codes[1 : size + 1].reshape(-1, length),
    )


def baseline_loss(text):
    """Entropy of the frequencies of the characters, in nats."""
    counts = np.unique(list(text), return_counts=True)[1]
    shares = counts / counts.sum()
    return float(-(shares * np.log(shares)).sum())
