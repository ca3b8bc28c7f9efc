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
    arrays = _installed(name)
    parts = [
        Recordings(*(arrays[f"{part}_{key}"] for key in Recordings._fields))
        for part in ("train", "test")
    ]
    inside = [
        np.arange(x.shape[1]) < lengths[:, None] for x, lengths, _ in parts
    ]
    seen = parts[0].x[inside[0]]
    mean, deviation = seen.mean(axis=0), seen.std(axis=0)
    deviation[deviation == 0] = 1  # a channel that never changes
    normalized = []
    for part, steps in zip(parts, inside, strict=True):
        x = np.where(steps[..., None], (part.x - mean) / deviation, 0)
        normalized.append(part._replace(x=x.astype("float32")))
    return normalized


def parts(labels, count):
    """A number for each recording, each class spread over all numbers."""
    numbers = np.empty(len(labels), int)
    rng = np.random.default_rng(0)
    for label in np.unique(labels):
        rows = rng.permutation(np.flatnonzero(labels == label))
        numbers[rows] = np.arange(len(rows)) % count
    return numbers


def _installed(name):
    from sktime.datasets import load_from_tsfile

    package = PACKAGES.get(name, "sktime")
    spec = importlib.util.find_spec(package)
    if spec is None:
        raise ModuleNotFoundError(f"{name} comes with {package}.")
    folder = pathlib.Path(spec.origin).parent / "datasets" / "data" / name
    arrays = {}
    for part in "train", "test":
        frames, labels = load_from_tsfile(
            f"{folder}/{name}_{part.upper()}.ts", return_data_type="df-list"
        )
        recordings = [_finite(frame.to_numpy("float32")) for frame in frames]
        if part == "train":
            classes = np.unique(labels)
        arrays[f"{part}_lengths"] = np.array([*map(len, recordings)])
        arrays[f"{part}_x"] = keras.utils.pad_sequences(
            recordings, dtype="float32", padding="post"
        )
        arrays[f"{part}_y"] = np.searchsorted(classes, labels)
    return arrays


def _finite(recording):
    """A recording without the missing values behind its end."""
    steps = np.isfinite(recording).all(axis=1)
    if not steps[: steps.sum()].all():
        raise ValueError("A value is missing in the middle of a recording.")
    return recording[steps]
