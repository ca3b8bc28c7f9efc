"""The parts of recordings: to train on, to validate and to test."""

import numpy as np

from keras_rin.recordings._recordings import MissingArguments
from keras_rin.recordings._recordings import joined

SHARE = 0.3  # for the test, and of what is left to validate
TRIES = 1000  # of parts that have each class


def parts_of(data, is_stream, join=False):
    """The parts for a comparison, or for a stream, which it prints."""
    if data.is_log and not is_stream:
        raise ValueError(f"{data.source} is a log: name its recordings.")
    if is_stream and not data.classes:
        raise ValueError(f"{data.source} has targets; a stream needs classes.")
    if is_stream and not (data.is_log or join):
        question = f"say that recordings are joined, of {data.source}:"
        raise MissingArguments(question, data.source, {"join": True})
    parts = split(data)
    if is_stream and not data.is_log:
        return [joined(part) for part in parts]
    return parts


def split(data):
    """Three `Recordings`: to train on, to validate and to test.

    Whole groups where there are, else as many recordings of each class, or the
    last rows of a log. The same ones each time.
    """
    if data.groups is not None:
        numbers = _by_group(data)
    elif data.is_log:
        data, numbers = _by_rows(data)
    else:
        numbers = _by_class(data)
    parts = [data.take(np.flatnonzero(numbers == n)) for n in range(3)]
    train, all_ = (np.hstack(recordings.y) for recordings in (parts[0], data))
    if not data.classes and np.ptp(train) == 0:
        raise ValueError(f"{data.source}: the targets do not vary.")
    if len(data.classes) == 1:
        raise ValueError(
            f"{data.source}: all have the class {data.classes[0]}."
        )
    if data.classes and {*all_} - {*train}:
        name = data.classes[min({*all_} - {*train})]
        raise ValueError(f"{data.source}: no training part has {name}.")
    return parts


def described(parts):
    """What was read, and what is tested on."""
    test = parts[2]
    names = test.names if test.groups is None else sorted({*test.groups})
    listed = ", ".join(names[:20]) + (", ..." if len(names) > 20 else "")
    steps = [f"{sum(map(len, part.x)):,}" for part in parts]
    return (
        f"{steps[0]} steps to train on, {steps[1]} to validate, {steps[2]} to "
        f"test: {listed}."
    )


def _sizes(count):
    """The part of each of several things, in order."""
    test = max(1, round(SHARE * count))
    validate = max(1, round(SHARE * (count - test)))
    return np.repeat([0, 1, 2], [count - test - validate, validate, test])


def _by_group(data):
    """Groups in parts that have as many classes as possible."""
    names, numbers = np.unique(data.groups, return_inverse=True)
    if len(names) < 3:
        raise ValueError(
            f"{data.source} has {len(names)} groups; a training, a validation "
            "and a test take three."
        )
    has_class = np.zeros((len(names), max(1, len(data.classes))), bool)
    for group, y in zip(numbers, data.y, strict=True):
        has_class[group, y if data.classes else 0] = True

    def value(parts):
        counts = [has_class[parts == n].any(axis=0).sum() for n in range(3)]
        return counts[0], min(counts)

    rng = np.random.default_rng(0)
    tries = [rng.permutation(_sizes(len(names))) for _ in range(TRIES)]
    return max(tries, key=value)[numbers]


def _by_rows(data):
    """The log, cut where parts begin, and the part of each stretch."""
    ends = np.cumsum([len(x) for x in data.x])
    cuts = np.searchsorted(_sizes(ends[-1]), [1, 2])
    firsts = np.unique([0, *ends[:-1], *cuts])
    x, y = (np.split(values, firsts[1:]) for values in data.rows())
    names = [f"from row {first + 1:,}" for first in firsts]
    cut = data._replace(x=x, y=y, names=names)
    return cut, np.searchsorted(cuts, firsts, "right")


def _by_class(data):
    """Recordings of each class, or all with targets, in each part."""
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
