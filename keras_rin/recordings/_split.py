"""The parts of recordings: to train on, to validate and to test."""

import numpy as np

from keras_rin.recordings._recordings import MissingArguments
from keras_rin.recordings._recordings import joined

SHARE = 0.3  # for the test, and of what is left to validate
TRIES = 1000  # of parts that have each class


def split(data):
    """Three `Recordings`: to train on, to validate and to test.

    Whole groups where there are, else as many recordings of each class, or the
    last rows of a log. The same ones each time.
    """
    if data.groups is not None:
        parts = _by_group(data)
    elif data.is_log:
        data, parts = _by_rows(data)
    else:
        parts = _by_class(data)
    parts = [data.take(np.flatnonzero(parts == n)) for n in range(3)]
    if not data.classes:
        if not data.is_log and min(np.ptp(part.y) for part in parts) == 0:
            raise ValueError(f"{data.source}: the targets do not vary.")
        return parts
    if len(data.classes) < 2:
        raise ValueError(
            f"{data.source}: all have the class {data.classes[0]}."
        )
    missing = {*_labels(data)} - {*_labels(parts[0])}
    if missing:
        raise ValueError(
            f"{data.source}: no part for training has the class "
            f"{data.classes[min(missing)]}; collect more of it."
        )
    return parts


def parts_of(data, is_stream, join=False):
    """The parts for a comparison of recordings, or those of a stream."""
    if not is_stream:
        if data.is_log:
            raise ValueError(f"{data.source} is a log: name its recordings.")
        return split(data)
    if not data.classes:
        raise ValueError(f"{data.source} has targets; a stream needs classes.")
    if not (data.is_log or join):
        question = f"say that recordings are joined, of {data.source}:"
        raise MissingArguments(question, data.source, {"join": True})
    parts = split(data)
    return parts if data.is_log else [joined(part) for part in parts]


def described(parts):
    """A line that says what is tested on."""
    *_, test = parts
    names = test.names if test.groups is None else sorted({*test.groups})
    kind = "Groups" if test.groups is not None else "Parts"
    kind = kind if test.is_log or test.groups is not None else "Recordings"
    listed = ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")
    steps = [f"{sum(map(len, part.x)):,}" for part in parts]
    return (
        f"Trained on {steps[0]} steps, validated on {steps[1]}, tested on "
        f"{steps[2]}. {kind} of the test: {listed}."
    )


def _labels(data):
    return np.concatenate(data.y) if data.is_log else data.y


def _sizes(count):
    """The number of the part of each of several things."""
    test = max(1, round(SHARE * count))
    validate = max(1, round(SHARE * (count - test)))
    return np.repeat([0, 1, 2], [count - test - validate, validate, test])


def _by_group(data):
    names, numbers = np.unique(data.groups, return_inverse=True)
    if len(names) < 3:
        raise ValueError(
            f"{data.source} has {len(names)} groups; a training, a validation "
            "and a test take three."
        )
    has_class = np.zeros((len(names), max(1, len(data.classes))), bool)
    for group, y in zip(numbers, data.y, strict=True):
        has_class[group, y if data.classes else 0] = True
    rng, best, most = np.random.default_rng(0), None, -1
    for _ in range(TRIES):
        parts = rng.permutation(_sizes(len(names)))
        counts = [has_class[parts == n].any(axis=0).sum() for n in range(3)]
        # Classes in the training first, then in the smallest of the others.
        value = counts[0] * 1000 + min(counts)
        if value > most:
            best, most = parts, value
    return best[numbers]


def _by_rows(data):
    """The log, cut where its parts begin, and the part of each stretch."""
    ends = np.cumsum([len(x) for x in data.x])
    cuts = np.searchsorted(_sizes(ends[-1]), [1, 2])
    every = np.unique([*ends[:-1], *cuts])
    x, y = (np.split(values, every) for values in data.rows())
    firsts = np.append(0, every)
    names = [f"rows from {first + 1:,}" for first in firsts]
    cut = data._replace(x=x, y=y, names=names)
    return cut, np.searchsorted(cuts, firsts, "right")


def _by_class(data):
    rng, parts = np.random.default_rng(0), np.empty(len(data.y), int)
    labels = data.y if data.classes else np.zeros(len(data.y), int)
    for label in np.unique(labels):
        rows = np.flatnonzero(labels == label)
        if len(rows) < 3:
            name = data.classes[label] if data.classes else "targets"
            raise ValueError(
                f"{data.source}: {len(rows)} recordings of {name}; a training, "
                "a validation and a test take three."
            )
        parts[rows] = rng.permutation(_sizes(len(rows)))
    return parts
