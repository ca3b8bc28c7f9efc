"""Streams of a watch, from the recordings that come with seglearn.

Ten people did seven exercises of physiotherapy, on both sides; accelerometer
and gyroscope have six channels at 50 Hz, of which every second sample is kept,
or every nth, for a rate of 50 / n Hz.
Of the package only the file is read: `pip install --no-deps seglearn`.
"""

import functools
import importlib.util
import pathlib
from typing import NamedTuple

import numpy as np

CLASSES, FEATURES, RATE = 7, 6, 25  # Hz
PEOPLE = range(1, 11)
FOLDS = ((1, 4, 7), (2, 5, 8), (3, 6, 9, 10))  # people left out
CROP = 128  # steps at this rate; two are joined
STREAMS, LENGTH = 8, 10_000
SEGMENT = (6, 18)  # seconds until the exercise changes


class Watch(NamedTuple):
    """Recordings, one after the other.

    Attributes:
        x: Array `(steps, 6)`, of all recordings.
        starts: Array `(recordings,)`, the first step of each.
        lengths: Array `(recordings,)`, the number of steps of each.
        y: Array `(recordings,)`, the number of the exercise.
        person: Array `(recordings,)`, from 1 to 10.
    """

    x: np.ndarray
    starts: np.ndarray
    lengths: np.ndarray
    y: np.ndarray
    person: np.ndarray


@functools.cache
def read(rate=RATE):
    spec = importlib.util.find_spec("seglearn")
    if spec is None:
        raise ModuleNotFoundError("The recordings come with seglearn.")
    file = pathlib.Path(spec.origin).parent / "data" / "watch_dataset.npy"
    data = np.load(file, allow_pickle=True).item()
    x = [
        recording[:: round(50 / rate)].astype("float32")
        for recording in data["X"]
    ]
    lengths = np.array([*map(len, x)])
    starts = np.cumsum(lengths) - lengths
    y, person = (data[name].astype(int) for name in ("y", "subject"))
    return Watch(np.concatenate(x), starts, lengths, y, person)


def others(people):
    return tuple(person for person in PEOPLE if person not in people)


def scale(people, transform=None, rate=RATE):
    """Mean and deviation of the channels, over the steps of people.

    Or of other inputs, which `transform` makes of x, over streams of them.
    """
    if transform is not None:
        x = transform(streams(people, rate=rate)[0])
        return x.mean(axis=(0, 1)), x.std(axis=(0, 1))
    watch = read(rate)
    x = watch.x[np.repeat(np.isin(watch.person, people), watch.lengths)]
    return x.mean(axis=0), x.std(axis=0)


def streams(people, count=STREAMS, length=LENGTH, rate=RATE):
    """x `(streams, steps, 6)` as recorded, and the exercise of each step.

    Pieces of recordings of these people are joined, of which no two neighbors
    have the same exercise.
    """
    watch, rng = read(rate), np.random.default_rng(people)
    rows = np.flatnonzero(np.isin(watch.person, people))
    segment = [int(seconds * rate) for seconds in SEGMENT]
    x = np.empty((count, length, FEATURES), "float32")
    y = np.empty((count, length), int)
    for n in range(count):
        at, last = 0, -1
        while at < length:
            row = rng.choice(rows[watch.y[rows] != last])
            steps = min(rng.integers(*segment), watch.lengths[row], length - at)
            start = rng.integers(watch.lengths[row] - steps + 1)
            start, last = start + watch.starts[row], watch.y[row]
            x[n, at : at + steps] = watch.x[start : start + steps]
            y[n, at : at + steps] = last
            at += steps
    return x, y


def steps_to_settle(right, y, rate=RATE):
    """Steps after each change to the first of a second of right answers.

    Infinite where the exercise changes again before that.
    """
    steps, settled = [], int(rate)
    for of_stream, labels in zip(right, y, strict=True):
        changes = np.flatnonzero(np.diff(labels)) + 1
        for stretch in np.split(of_stream, changes)[1:]:
            runs = (
                np.convolve(stretch, np.ones(settled, int), "valid") == settled
            )
            steps.append(int(runs.argmax()) if runs.any() else np.inf)
    return np.array(steps)


def batches(batch, transform=None, rate=RATE):
    """The function (settings of a model, update) that draws pairs of crops.

    A network reads them, or what `transform` makes of a pair.

    Of `settings` it reads the `key`, the recordings `rows` to draw from, of
    which the first `count` are valid, and the `mean` and `deviation`.
    """
    import jax
    from jax import numpy as jnp

    watch = Watch(*map(jnp.asarray, read(rate)))
    crop = round(CROP * rate / RATE)

    def draw(settings, update):
        key = jax.random.fold_in(settings["key"], update)
        keys = jax.random.split(key, 2)
        shape = (batch, 2)
        rows = jax.random.randint(keys[0], shape, 0, settings["count"])
        rows = settings["rows"][rows]
        most = watch.lengths[rows] - crop
        starts = jax.random.randint(keys[1], shape, 0, most + 1)
        steps = (watch.starts[rows] + starts)[..., None] + jnp.arange(crop)
        x = watch.x[steps].reshape(batch, 2 * crop, FEATURES)
        x = x if transform is None else transform(x)
        y = jnp.repeat(watch.y[rows], crop, axis=1)
        return (x - settings["mean"]) / settings["deviation"], y

    return draw


def rows_of(people):
    """The recordings of people, filled up to a fixed number, and how many."""
    watch = read()
    rows = np.flatnonzero(np.isin(watch.person, people))
    return np.resize(rows, len(watch.y)), len(rows)
