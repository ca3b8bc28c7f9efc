"""A text as windows of one-hot characters, and what comes next."""

import pathlib

import numpy as np
import tensorflow_datasets as tfds

from keras_rin.tasks import character_stream


def read(file=None, data_dir=None):
    """A text of one's own, or tiny Shakespeare through TFDS."""
    if file:
        return pathlib.Path(file).read_text(encoding="utf-8")
    builder = tfds.builder("tiny_shakespeare", data_dir=data_dir)
    if not pathlib.Path(builder.data_dir).exists():
        raise FileNotFoundError(
            f"No prepared tiny_shakespeare in {builder.data_dir}. Name the "
            "folder that holds it with --data_dir or TFDS_DATA_DIR, or a text "
            "of your own with --text_file."
        )
    parts = [
        example["text"].decode()
        for split in ("train", "validation", "test")
        for example in tfds.as_numpy(builder.as_dataset(split=split))
    ]
    return "".join(parts)


def splits(text, length):
    """(x, y) to train, validate and test on, and the loss of knowing nothing.

    The tenths of the text before last and last are to validate and to test.
    """
    characters = character_stream.alphabet(text)
    cuts = [0, 8 * len(text) // 10, 9 * len(text) // 10, len(text)]
    parts = [text[a:b] for a, b in zip(cuts, cuts[1:], strict=False)]
    one_hot = np.eye(len(characters), dtype="float32")
    found = []
    for part in parts:
        x, y = character_stream.generate(part, characters, 1, length)
        found.append((one_hot[x], y))
    return found, character_stream.baseline_loss(parts[2])
