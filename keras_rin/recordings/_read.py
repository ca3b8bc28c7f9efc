"""Recordings and logs, with the meaning that a person gave to columns."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from keras_rin.recordings._forms import read_table
from keras_rin.recordings._forms import said_of
from keras_rin.recordings._proposal import propose
from keras_rin.recordings._recordings import Recordings
from keras_rin.recordings._tables import split_unit

GAP = 3.0  # median steps of the time, beyond which rows do not belong together


def read(
    data: object,
    *,
    channels: Sequence[str] | str | None = None,
    label: str | None = None,
    target: str | None = None,
    recording: Sequence[str] | str | None = None,
    group: str | None = None,
    time: str | None = None,
    separator: str = ",",
    decimal: str = ".",
) -> Recordings:
    """Reads recordings, or a log, with the meaning that you give columns.

    What has to be said and is not raises `MissingArguments`, with a proposal.
    Columns that nobody named are left out.

    >>> data = {"x": np.zeros((4, 9, 2)), "y": ["run", "walk"] * 2}
    >>> keras_rin.recordings.read(data)
    The arrays: 4 recordings of 9 to 9 steps, 36 in all.
    Channels: 1, 2.
    Classes: run (2), walk (2).

    Args:
        data: A DataFrame, a `.csv` or a `.parquet` file; a folder with a folder
            of such files for each class, one recording a file; a dict, or a
            `.npz` file, of `x` `(recordings, steps, channels)`, with NaN behind
            shorter recordings, `y` and perhaps `group`; a `.ts` file, or the
            name of a data set that comes with sktime.
        channels: Columns of numbers, in a list or with commas between.
        label: Column of the class, which is text; of arrays `"y"`.
        target: Column of a number to predict; of arrays `"y"`.
        recording: Columns that tell recordings apart, one label each. Defaults
            to `None`: a log, with a label in each row.
        group: Column of persons or days, which training, validation and test
            never share.
        time: Column that rises in a recording, or in a group of a log: in ISO
            8601, in seconds, or since 1970; `"t:ms"` has another unit. A gap
            ends a stretch of a log.
        separator: Character between the cells of a CSV file. Defaults to `","`.
        decimal: Decimal mark of a CSV file. Defaults to `"."`.

    Returns:
        `Recordings`, which print what was read.

    Raises:
        MissingArguments: Only you can say something that is missing.
        ValueError: Data that are not what was said, with file, row and column.
    """
    columns = {key: value for key, value in locals().items() if key != "data"}
    return recordings_of(data, columns)


def recordings_of(data, columns, needs_recording=False):
    """`Recordings` as they are, or what `read` makes of data."""
    if isinstance(data, Recordings):
        return data
    said = said_of(**columns)
    propose(data, said, needs_recording)
    table = read_table(data, said)
    time = said.time and split_unit(said.time)[0]
    named = [*said.channels, *said.recording]
    named += filter(None, (said.label, said.target, said.group, time))
    table.check(named)
    x = table.numbers(said.channels)
    order, begins, rate = _pieces(table, said, _keys(table, said))
    y, classes = _labels(table, said)
    y, firsts, groups = y[order], np.flatnonzero(begins), None
    if (np.diff(order) < 0).any():  # else the rows need no copy
        x = x[order]
    if said.recording:
        _check_constant(table, order, begins, y, said.target or said.label)
    if said.group:
        numbers, texts = table.codes(said.group)
        _check_constant(table, order, begins, numbers[order], said.group)
        groups = np.array(texts)[numbers[order][firsts]]
    others = ", ".join(
        name for name in map(str, table.frame) if name not in named
    )
    return Recordings(
        x=np.split(x, firsts[1:]),
        y=y[firsts] if said.recording else np.split(y, firsts[1:]),
        classes=classes,
        channels=[*said.channels],
        names=_names(table, said, order[firsts]),
        groups=groups,
        rate=rate,
        source=table.source,
        notes=[f"Left out: {others}."] if others else [],
        text=(said.separator, said.decimal),
    )


def _labels(table, said):
    if said.target:
        return table.numbers([said.target])[:, 0], []
    return table.codes(said.label)


def _columns(said):
    """The columns that tell recordings, or the groups of a log, apart."""
    return said.recording or [*filter(None, [said.group])]


def _keys(table, said):
    """The number of the recording, or the group of a log, in each row."""
    codes = {name: table.codes(name)[0] for name in _columns(said)}
    if not len(table.frame):
        raise ValueError(f"{table.source} has no rows.")
    if not codes:
        return np.zeros(len(table.frame), int)
    groups = pd.DataFrame(codes).groupby([*codes], sort=False)
    return groups.ngroup().to_numpy()


def _names(table, said, rows):
    """Where the recordings that begin in these rows are from."""
    columns = _columns(said)
    if not columns:
        return [table.source] * len(rows)
    texts = table.frame[columns].iloc[rows].astype(str)
    return [", ".join(row) for row in texts.to_numpy()]


def _pieces(table, said, keys):
    """The order of rows, where a piece begins, and rows in a second.

    A piece is a recording or, of a log, what a group or a gap in time ends.
    """
    order = np.argsort(keys, kind="stable")
    goes_on = np.append(False, np.diff(keys[order]) == 0)
    if not said.time:
        is_back = goes_on & (np.diff(order, prepend=0) != 1)
        if is_back.any():
            name = [*said.recording, said.group][0]
            row = order[is_back.argmax()]
            raise table.error(row, name, "its rows begin again")
        return order, ~goes_on, None
    steps = np.append(0, np.diff(table.clock(said.time)[order]))
    is_back = goes_on & (steps <= 0)
    if is_back.any():
        row = order[is_back.argmax()]
        raise table.error(row, said.time, "no later than the row before")
    if not goes_on.any():
        return order, ~goes_on, None
    median = float(np.median(steps[goes_on]))
    is_gap = goes_on & (steps > GAP * median)
    if is_gap.any() and said.recording:
        row, seconds = order[is_gap.argmax()], steps[is_gap.argmax()]
        raise table.error(row, said.time, f"a gap of {seconds:g} s before it")
    return order, ~goes_on | is_gap, 1 / median


def _check_constant(table, order, begins, values, name):
    is_other = ~begins & np.append(False, values[1:] != values[:-1])
    if is_other.any():
        problem = "two values in one recording; name all columns that tell "
        problem += "recordings apart, or none of a log"
        raise table.error(order[is_other.argmax()], name, problem)
