"""Recordings of the UCR and UEA archives that come with Python packages.

    python -m archive.data FOLDER

writes them into FOLDER as arrays, for a machine where the packages are not
installed: `ARCHIVE_DIR=FOLDER python -m engine measure archive`. Six data sets
come with sktime and two with aeon, of which only files are read: `pip install
--no-deps aeon` suffices.
"""

import dataclasses
import functools
import importlib.util
import os
import pathlib
import sys

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


@dataclasses.dataclass(frozen=True)
class Recordings:
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
    arrays = _stored(name) if "ARCHIVE_DIR" in os.environ else _installed(name)
    parts = [
        Recordings(*(arrays[f"{part}_{key}"] for key in ("x", "lengths", "y")))
        for part in ("train", "test")
    ]
    train = parts[0]
    steps = np.arange(train.x.shape[1]) < train.lengths[:, None]
    mean, deviation = train.x[steps].mean(axis=0), train.x[steps].std(axis=0)
    deviation[deviation == 0] = 1  # a channel that never changes
    normalized = []
    for part in parts:
        inside = np.arange(part.x.shape[1]) < part.lengths[:, None]
        x = np.where(inside[..., None], (part.x - mean) / deviation, 0)
        normalized.append(dataclasses.replace(part, x=x.astype("float32")))
    return normalized


def parts(labels, count):
    """A number for each recording, each class spread over all numbers."""
    numbers = np.empty(len(labels), int)
    rng = np.random.default_rng(0)
    for label in np.unique(labels):
        rows = rng.permutation(np.flatnonzero(labels == label))
        numbers[rows] = np.arange(len(rows)) % count
    return numbers


def _stored(name):
    path = pathlib.Path(os.environ["ARCHIVE_DIR"], f"{name}.npz")
    return dict(np.load(path))


def _installed(name):
    from sktime.datasets import load_from_tsfile

    package = importlib.util.find_spec(PACKAGES[name])
    if package is None:
        raise ModuleNotFoundError(f"{name} comes with {PACKAGES[name]}.")
    folder = pathlib.Path(package.origin).parent / "datasets" / "data" / name
    arrays, classes = {}, None
    for part in "train", "test":
        frames, labels = load_from_tsfile(
            str(folder / f"{name}_{part.upper()}.ts"),
            return_data_type="df-list",
        )
        recordings = [_finite(frame.to_numpy("float32")) for frame in frames]
        lengths = np.array([len(recording) for recording in recordings])
        shape = len(recordings), lengths.max(), recordings[0].shape[1]
        x = np.zeros(shape, "float32")
        for row, recording in zip(x, recordings, strict=True):
            row[: len(recording)] = recording
        if classes is None:
            classes = np.unique(labels)
        arrays[f"{part}_x"], arrays[f"{part}_lengths"] = x, lengths
        arrays[f"{part}_y"] = np.searchsorted(classes, labels)
    return arrays


def _finite(recording):
    """A recording without the missing values behind its end."""
    steps = np.isfinite(recording).all(axis=1)
    if not steps[: steps.sum()].all():
        raise ValueError("A value is missing in the middle of a recording.")
    return recording[steps]


if __name__ == "__main__":
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name in PACKAGES:
        np.savez_compressed(folder / f"{name}.npz", **_installed(name))
