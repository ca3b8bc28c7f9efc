"""Recordings with one label or one number each, from the files people have."""

import typing
from collections.abc import Sequence

import numpy as np
import pandas as pd

from keras_rin.recordings import _sources
from keras_rin.recordings import _tables

ADVICE = "say --classes if they are names of classes, --target if numbers"


class Recordings(typing.NamedTuple):
    """Recordings with their labels, which prints what was read.

    Attributes:
        x: List of arrays `(steps, channels)` in float64.
        y: Array `(recordings,)`, the number of the class or the target;
            `None` without labels.
        classes: List of strings, the names of the classes in order; empty if
            `y` are targets.
        channels: List of strings, the names of the channels.
        left_out: Dict of columns and files that were left out, with the reason.
        is_test: Boolean array `(recordings,)`, the test set that the data
            name, or `None`.
        names: List of strings, where each recording is from.
        source: String, what was read.
        options: Dict, the arguments that read another file alike.
    """

    x: list
    y: typing.Any
    classes: list
    channels: list
    left_out: dict
    is_test: np.ndarray | None
    names: list
    source: str
    options: dict

    def __repr__(self) -> str:
        lengths = [len(x) for x in self.x]
        lines = [
            f"{self.source}: {len(lengths)} recordings of {min(lengths)} to "
            f"{max(lengths)} steps.",
            f"Channels: {', '.join(self.channels)}.",
        ]
        if self.y is not None:
            lines.append(self._labels())
        if self.is_test is not None:
            lines.append(f"Test set of the data: {self.is_test.sum()}.")
        if self.left_out:
            items = (
                f"{of or 'a column without a name'} ({why})"
                for of, why in self.left_out.items()
            )
            lines.append(f"Left out: {', '.join(items)}.")
        return "\n".join(lines)

    def _labels(self):
        if not self.classes:
            return f"Targets: {self.y.min():g} to {self.y.max():g}."
        counts = np.bincount(self.y, minlength=len(self.classes))
        items = zip(self.classes, counts, strict=True)
        return f"Classes: {', '.join(f'{of} ({n})' for of, n in items)}."


def read(
    data: object,
    *,
    label: str | None = None,
    recording: str | None = None,
    time: str | None = None,
    channels: Sequence[str] | None = None,
    classes: bool = False,
    target: bool = False,
    axes: str | None = None,
    separator: str | None = None,
    decimal: str | None = None,
    allow_pickle: bool = False,
    labelled: bool = True,
) -> Recordings:
    """Reads recordings with one label or one number each.

    Columns with a clock, an index or text are left out, missing values at the
    ends too. What can be meant in two ways is an error that names the argument.

    >>> data = {"x": np.zeros((4, 9, 2)), "y": ["run", "walk"] * 2}
    >>> keras_rin.recordings.read(data)
    The arrays: 4 recordings of 9 to 9 steps.
    Channels: 1, 2.
    Classes: run (2), walk (2).

    Args:
        data: A folder with a folder of CSV or Parquet files for each class; a
            folder of files with the class in their names; one such file, or a
            DataFrame, with columns for recording and label; a `.npz` file, or a
            dict, with `x` `(recordings, steps, channels)` and `y`, perhaps also
            `x_test` and `y_test`; a `.ts` file, or a folder with
            `NAME_TRAIN.ts` and `NAME_TEST.ts`; the name of a data set that
            comes with sktime.
        label: Column of the label, in a table; of files in one folder, a
            regular expression whose group is the class in the name.
        recording: Column of the recording, or several with commas between.
        time: Column of the clock, which is left out.
        channels: Names of the channels; all other columns are left out.
        classes: Whether labels that are numbers name classes.
        target: Whether labels that are numbers are to be predicted as numbers.
        axes: Order of the axes in `x`, such as `"recordings,channels,steps"`.
        separator: Character between the cells of a text file.
        decimal: Decimal mark of a text file, `"."` or `","`.
        allow_pickle: Whether to open a `.npz` file that holds a pickle, which
            can run code: only if you trust it.
        labelled: Whether the data have labels.

    Returns:
        `Recordings`, which print what was read.

    Raises:
        ValueError: Data that cannot be read, or can be read in two ways, with
            file, line and column.
    """
    form = {"separator": separator, "decimal": decimal}
    found = _sources.find(
        data,
        _sources.Options(form, label, recording, axes, allow_pickle, labelled),
    )
    tables = found.tables
    if not tables:
        raise ValueError(f"{found.source} has no recordings.")
    _check_columns(tables)
    columns = [*tables[0].frame.columns]
    frames = [table.frame[columns] for table in tables]
    place = tables[0].place
    left_out = _tables.left_out(frames, place, time, channels)
    channels = list(channels or [of for of in columns if of not in left_out])
    if not channels:
        raise ValueError(f"{place} has no column of numbers to learn from.")
    x = [_values(table, channels, left_out) for table in tables]
    if max(map(len, x)) < 2:
        raise ValueError(
            f"{found.source}: each recording has one step; name the column "
            "that tells recordings apart by --recording"
        )
    y, names = None, []
    if labelled:
        y, names = _labels(found, classes, target)
    options: dict = form | {"channels": channels, "axes": axes}
    options |= {"recording": found.recording, "allow_pickle": allow_pickle}
    return Recordings(
        x=x,
        y=y,
        classes=names,
        channels=channels,
        left_out=found.left_out | left_out,
        is_test=found.is_test,
        names=[table.place for table in tables],
        source=found.source,
        options={key: value for key, value in options.items() if value},
    )


def _check_columns(tables):
    first = tables[0]
    for table in tables:
        if {*table.frame.columns} != {*first.frame.columns}:
            raise ValueError(
                f"{table.place} has the columns "
                f"{', '.join(table.frame.columns)}, and {first.place} "
                f"{', '.join(first.frame.columns)}."
            )


def _values(table, channels, left_out):
    """Values `(steps, channels)`, without missing ones at both ends."""
    x = table.frame[channels].to_numpy("float64")
    known = np.flatnonzero(np.isfinite(x).all(axis=1))
    if not len(known):
        raise ValueError(f"{table.place} has no row without missing values.")
    inside = slice(known[0], known[-1] + 1)
    wrong = ~np.isfinite(x)
    ends = np.isnan(x)
    ends[inside] = False
    if (wrong & ~ends).any():
        row, column = np.argwhere(wrong & ~ends)[0]
        kind = "missing" if np.isnan(x[row, column]) else "infinite"
        raise ValueError(
            f"{table.at(row, channels[column])}: the value is {kind}."
        )
    if part := (ends.any(axis=1) & ~ends.all(axis=1)).sum():
        name = "rows at an end with a missing value"
        left_out[name] = str(int(left_out.get(name, 0)) + part)
    return x[inside]


def _labels(found, classes, target):
    """Numbers of classes with their names, or targets without names."""
    y = _vector(found)
    is_named = found.kind == "classes" or y.dtype.kind not in "iuf"
    if found.kind == "target" or (target and not is_named):
        if is_named:
            raise ValueError(f"{found.source}: targets are numbers.")
        return y.astype("float64"), []
    if target:
        raise ValueError(f"{found.source}: the labels {y[0]!r}, ... are names.")
    is_whole = is_named or (y == np.round(y)).all()
    if not (is_whole or classes):
        return y.astype("float64"), []
    y = y.astype("int64") if is_whole and not is_named else y
    names, numbers = np.unique(y, return_inverse=True)
    if len(names) > 2 and not (is_named or classes):
        raise ValueError(
            f"{found.source}: the labels are whole numbers from {y.min()} to "
            f"{y.max()}: {ADVICE}."
        )
    return numbers, [str(name) for name in names]


def _vector(found):
    """One label for each recording: numbers, or names in strings."""
    y = np.asarray(found.y)
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if y.shape != (len(found.tables),):
        raise ValueError(
            f"{found.source} has {len(found.tables)} recordings and y of shape "
            f"{y.shape}: y has one label each, of one-hot y.argmax(axis=1)."
        )
    if len(missing := np.flatnonzero(pd.isna(y))):
        raise ValueError(f"{found.tables[missing[0]].place} has no label.")
    if y.dtype.kind not in "iuf":
        y = y.astype(str)
        numbers = pd.to_numeric(pd.Series(y), errors="coerce")
        if found.kind != "classes" and numbers.notna().all():
            y = numbers.to_numpy()
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        raise ValueError(f"{found.source}: targets are finite numbers.")
    return y
