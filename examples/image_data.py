"""Images and labels as NumPy arrays, read from disk."""

import os

import numpy as np
import tensorflow_datasets as tfds
from sklearn.datasets import load_digits

NAMES = ["digits", "mnist", "fashion_mnist", "cifar10"]


def load(name, data_dir=None, download=False):
    """Returns (train, validation, test), each a pair (images, labels).

    A tenth of the training images, always the same, is for validation.
    """
    if name == "digits":
        train, test = _digits()
    else:
        train, test = _from_tfds(name, data_dir, download)
    held_out = len(train[0]) // 10
    validation = tuple(part[:held_out] for part in train)
    train = tuple(part[held_out:] for part in train)
    return train, validation, test


def _digits():
    """The 1,797 digits of 8 x 8 pixels that scikit-learn ships."""
    data = load_digits()
    order = np.random.default_rng(0).permutation(len(data.target))
    images, labels = (data.images / 16)[order], data.target[order]
    return (images[360:], labels[360:]), (images[:360], labels[:360])


def _from_tfds(name, data_dir, download):
    builder = tfds.builder(name, data_dir=data_dir)
    if not os.path.exists(builder.data_dir):
        if not download:
            raise FileNotFoundError(
                f"No prepared {name} in {builder.data_dir}. Name the folder "
                "that holds it with --data_dir or TFDS_DATA_DIR, or pass "
                "--download to fetch it."
            )
        builder.download_and_prepare()
    return tuple(
        tfds.as_numpy(
            builder.as_dataset(split=split, batch_size=-1, as_supervised=True)
        )
        for split in ("train", "test")
    )
