"""Images of scikit-learn and TFDS, split for training."""

import numpy as np
import tensorflow_datasets as tfds
from sklearn.datasets import load_digits


def load_images(name):
    """(images, labels) to train, validate and test on.

    The digits of scikit-learn or a data set of TFDS. The first tenth of the
    training images validates.
    """
    if name == "digits":
        digits = load_digits()
        order = np.random.default_rng(0).permutation(len(digits.target))
        x, y = (digits.images / 16)[order], digits.target[order]
        (x, x_test), (y, y_test) = (x[360:], x[:360]), (y[360:], y[:360])
    else:
        splits = tfds.load(
            name,
            split=["train", "test"],
            batch_size=-1,
            as_supervised=True,
            download=False,
        )
        (x, y), (x_test, y_test) = map(tfds.as_numpy, splits)
    tenth = len(y) // 10
    return (x[tenth:], y[tenth:]), (x[:tenth], y[:tenth]), (x_test, y_test)
