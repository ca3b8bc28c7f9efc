"""Recordings of the UCR and UEA archives that come with Python packages.

Six data sets come with sktime and two with aeon, of which only files are
read: `pip install --no-deps aeon` suffices.
"""

import functools
import importlib.util
import pathlib
from typing import NamedTuple

import keras
import numpy as np

from keras_rin import recordings

# The package that a data set comes with, from short recordings to long ones.
PACKAGES = {
    "ItalyPowerDemand": "sktime",
    "JapaneseVowels": "sktime",
    "Covid3Month_disc": "aeon",
    "BasicMotions": "sktime",
    "GunPoint": "sktime",
    "ArrowHead": "sktime",
    "PickupGestureWiimoteZ": "aeon",
    "OSULeaf": "sktime",
}


class Recordings(NamedTuple):
    """Recordings of different lengths, with zeros behind their ends.

    Attributes:
        x: Array `(recordings, steps, channels)`, float32.
        lengths: Array `(recordings,)`, the time steps of each.
        y: Array `(recordings,)`, the number of the class.
    """

    x: np.ndarray
    lengths: np.ndarray
    y: np.ndarray


@functools.cache
def read(name):
    """Recordings to train and to test on, normalized as those to train on."""
    package = PACKAGES.get(name, "sktime")
    spec = importlib.util.find_spec(package)
    if spec is None:
        raise ModuleNotFoundError(f"{name} comes with {package}.")
    folder = pathlib.Path(spec.origin).parent / "datasets" / "data" / name
    train, test = (
        recordings.read(folder / f"{name}_{part}.ts")
        for part in ("TRAIN", "TEST")
    )
    seen = np.concatenate(train.x, dtype="float32")
    mean, deviation = seen.mean(axis=0), seen.std(axis=0)
    deviation[deviation == 0] = 1  # a channel that never changes
    return [
        Recordings(
            keras.utils.pad_sequences(
                [(x.astype("float32") - mean) / deviation for x in part.x],
                dtype="float32",
                padding="post",
            ),
            np.array([*map(len, part.x)]),
            part.y,
        )
        for part in (train, test)
    ]


def parts(labels, count):
    """A number for each recording, each class spread over all numbers."""
    numbers = np.empty(len(labels), int)
    rng = np.random.default_rng(0)
    for label in np.unique(labels):
        rows = rng.permutation(np.flatnonzero(labels == label))
        numbers[rows] = np.arange(len(rows)) % count
    return numbers
