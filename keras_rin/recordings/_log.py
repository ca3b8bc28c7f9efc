"""Logs with a label in each row, and the windows and streams of them."""

import itertools
import re
import typing

import numpy as np

from keras_rin.recordings._sources import check_columns
from keras_rin.recordings._sources import one_column
from keras_rin.recordings._tables import at
from keras_rin.recordings._tables import choose_channels
from keras_rin.recordings._tables import read_table

LABEL = re.compile(r"labels?|class|activity|exercise|category|y", re.I)
GROUP = re.compile(
    r"(person|subject|user|participant|patient|day|session)([_ ]?id)?", re.I
)
PARTS = "train", "validate", "test"
TEST, VALIDATE = 0.3, 0.3  # of the groups or rows, and of those left


class Log(typing.NamedTuple):
    """Rows of a log, in order.

    Attributes:
        x: Array `(rows, channels)` in float64.
        y: Array `(rows,)`, the number of the class.
        piece: Array `(rows,)`, the number of the stretch of rows that belong
            together.
        part: Array `(rows,)` one of `PARTS`.
        classes: List of strings, the names of the classes in order.
        channels: List of strings, the names of the channels.
        tested: List of strings, the groups of the test, empty without groups.
        summary: String, what was read, left out, and is tested on.
    """

    x: np.ndarray
    y: np.ndarray
    piece: np.ndarray
    part: np.ndarray
    classes: list
    channels: list
    tested: list
    summary: str

    def rows(self, *parts):
        """x and y of the rows of parts, one after the other."""
        rows = np.isin(self.part, parts)
        return self.x[rows], self.y[rows]

    def starts(self, parts, steps):
        """The first rows of all windows of as many steps, in one piece each."""
        in_piece = self.piece[: len(self.y) - steps + 1]
        in_piece = in_piece == self.piece[steps - 1 :]
        in_part = np.isin(self.part[: len(in_piece)], parts)
        return np.flatnonzero(in_piece & in_part)

    def windows(self, starts, steps, joined, count, rng):
        """x `(count, joined * steps, channels)` and y, drawn at random."""
        rows = rng.choice(starts, (count, joined))[..., None] + np.arange(steps)
        rows = rows.reshape(count, joined * steps)
        return self.x[rows].astype("float32"), self.y[rows]


def read_log(log, label, group, time, channels, separator, decimal) -> Log:
    """A table with a label in each row, whose last part or groups are a test.

    Groups are drawn without regard to their labels, the same ones each time.
    """
    place, frame = read_table(log, separator, decimal)
    label = label or one_column(frame, LABEL, place, "label")
    group = group or one_column(frame, GROUP, place, "group", False)
    named = [*filter(None, (label, group))]
    check_columns(place, frame, named)
    y, classes = _numbers(frame[label])
    part, tested = _last_parts(len(y)), []
    change, summary = part[1:] != part[:-1], f"labels in column {label}."
    if group:
        numbers, groups = _numbers(frame[group])
        part, tested = _parts_of_groups(numbers, groups, group, place)
        change = np.diff(numbers) != 0
        summary = f"{summary} Groups: column {group}."
    frame = frame.drop(columns=named)
    # A clock may start again with each group.
    ends = [0, *(np.flatnonzero(change) + 1), len(frame)]
    pieces = {place: frame[: ends[1]]}
    pieces |= {(a, b): frame[a:b] for a, b in itertools.pairwise(ends[1:])}
    channels, left_out = choose_channels(pieces, time, channels)
    x = frame[channels].to_numpy("float64")
    for row, column in np.argwhere(~np.isfinite(x)):
        where = at(place, frame, row, channels[column])
        raise ValueError(f"{where}: the value is missing or infinite.")
    summary = f"{place}: {len(y):,} rows, {summary}"
    arrays = x, y, change, part
    return _checked(*arrays, classes, channels, summary, tested, left_out)


def join_recordings(recordings) -> Log:
    """Short recordings of one class each, one after the other.

    Neighbors differ in class where there are such.
    """
    if not recordings.classes:
        raise ValueError(f"{recordings.source} has targets, and no classes.")
    rng = np.random.default_rng(0)
    parts = np.empty(len(recordings.y), dtype="<U8")
    for number in range(len(recordings.classes)):
        rows = rng.permutation(np.flatnonzero(recordings.y == number))
        parts[rows] = _last_parts(len(rows))
    if recordings.is_test is not None:
        parts[parts == "test"] = "train"
        parts[recordings.is_test] = "test"
    of_parts = [np.flatnonzero(parts == name) for name in PARTS]
    order = np.concatenate(
        [rows[_mixed(recordings.y[rows], rng)] for rows in of_parts]
    )
    lengths = np.array([len(recordings.x[row]) for row in order])
    numbers = np.repeat(np.arange(len(order)), lengths)
    return _checked(
        np.concatenate([recordings.x[row] for row in order]),
        np.repeat(recordings.y[order], lengths),
        np.diff(numbers) != 0,
        np.repeat(parts[order], lengths),
        recordings.classes,
        recordings.channels,
        f"{recordings.source}: {len(order)} recordings, joined.",
        [],
        recordings.left_out,
    )


def _mixed(y, rng):
    """Rows in random order, of which few neighbors have the same class."""
    left = {of: [*rng.permutation(np.flatnonzero(y == of))] for of in {*y}}
    order: list = []
    last = None
    while left:
        last = max(left, key=lambda of: (of != last, len(left[of])))
        order.append(left[last].pop())
        left = {label: rows for label, rows in left.items() if rows}
    return order


def _checked(x, y, change, part, classes, names, summary, tested, left_out):
    if len(classes) < 2:
        raise ValueError(f"{summary} There is one class alone: {classes[0]}.")
    if missing := set(y) - set(y[part == "train"]):
        raise ValueError(
            f"{summary} No training row is {classes[min(missing)]!r}: name "
            "other groups by --group, or collect more of it."
        )
    counts = np.bincount(y, minlength=len(classes))
    items = zip(classes, counts, strict=True)
    of_groups = f" of {', '.join(tested)}" if tested else ""
    lines = [
        summary,
        f"Channels: {', '.join(map(str, names))}.",
        f"Classes: {', '.join(f'{of} ({n:,} rows)' for of, n in items)}.",
        f"Tested on {(part == 'test').sum():,} rows{of_groups}.",
    ]
    if left_out:
        reasons = (f"{of} ({why})" for of, why in left_out.items())
        lines.append(f"Left out: {', '.join(reasons)}.")
    piece = np.append(0, np.cumsum(change))
    return Log(x, y, piece, part, classes, [*names], tested, "\n".join(lines))


def _numbers(column):
    """A number for each row, and the names in order."""
    names, numbers = np.unique(column, return_inverse=True)
    is_number = names.dtype.kind == "f"
    return numbers, [f"{of:g}" if is_number else str(of) for of in names]


def _parts_of_groups(numbers, groups, column, place):
    if len(groups) < 3:
        raise ValueError(
            f"{place}: column {column!r} has {len(groups)} groups; a training, "
            "a validation and a test need three."
        )
    order = np.random.default_rng(0).permutation(len(groups))
    parts = np.empty(len(groups), "<U8")
    parts[order] = _last_parts(len(groups))
    tested = [groups[of] for of in np.flatnonzero(parts == "test")]
    return parts[numbers], tested


def _last_parts(count):
    """The parts of things in order: the last are for the test."""
    test = max(1, round(TEST * count))
    validate = max(1, round(VALIDATE * (count - test)))
    train = count - test - validate
    return np.repeat(PARTS, [train, validate, test])
