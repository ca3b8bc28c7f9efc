"""Recordings with one label or one number each, from the files people have."""

import types
import typing
from collections.abc import Sequence

import numpy as np
import pandas as pd

from keras_rin.recordings._sources import find
from keras_rin.recordings._tables import at
from keras_rin.recordings._tables import choose_channels


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
    form: dict = {"separator": separator, "decimal": decimal, "axes": axes}
    form |= {"recording": recording, "allow_pickle": allow_pickle}
    options = types.SimpleNamespace(label=label, labelled=labelled, **form)
    source = find(data, options)
    if not source.frames:
        raise ValueError(f"{source.name} has no recordings.")
    frames = _same_columns(source.frames)
    names, left_out = choose_channels(frames, time, channels)
    left_out = source.left_out | left_out
    x = [_values(of, frames[of], names, left_out) for of in frames]
    if max(map(len, x)) < 2:
        raise ValueError(
            f"{source.name}: each recording has one step; name the column "
            "that tells recordings apart by --recording"
        )
    form["channels"] = names
    y, of_classes = _labels(source, classes, target) if labelled else (None, [])
    return Recordings(
        x=x,
        y=y,
        classes=of_classes,
        channels=names,
        left_out=left_out,
        is_test=source.is_test,
        names=[*frames],
        source=source.name,
        options={key: value for key, value in form.items() if value},
    )


def _same_columns(frames):
    """The frames with their columns in one order."""
    first, *places = frames
    columns = [*frames[first]]
    for place in places:
        if {*frames[place]} != {*columns}:
            raise ValueError(
                f"{place} has the columns {', '.join(frames[place])}, and "
                f"{first} {', '.join(columns)}."
            )
    return {place: frame[columns] for place, frame in frames.items()}


def _values(place, frame, channels, left_out):
    """Values `(steps, channels)`, without missing ones at both ends."""
    x = frame[channels].to_numpy("float64")
    known = np.flatnonzero(np.isfinite(x).all(axis=1))
    if not len(known):
        raise ValueError(f"{place} has no row without missing values.")
    inside = slice(known[0], known[-1] + 1)
    is_wrong = np.isinf(x)
    is_wrong[inside] |= np.isnan(x[inside])
    if is_wrong.any():
        row, column = np.argwhere(is_wrong)[0]
        kind = "missing" if np.isnan(x[row, column]) else "infinite"
        where = at(place, frame, row, channels[column])
        raise ValueError(f"{where}: the value is {kind}.")
    ends = np.isnan(np.delete(x, inside, axis=0))
    if part := (ends.any(axis=1) & ~ends.all(axis=1)).sum():
        name = "rows at an end with a missing value"
        left_out[name] = str(int(left_out.get(name, 0)) + part)
    return x[inside]


def _labels(source, classes, target):
    """Numbers of classes with their names, or targets without names."""
    if source.labels is None:
        raise ValueError(f"{source.name} has no labels.")
    labels = pd.Series([*source.labels])
    if labels.isna().any():
        missing = [*source.frames][int(np.argmax(labels.isna()))]
        raise ValueError(f"{missing} has no label.")
    y = pd.to_numeric(labels.astype(str), errors="coerce").to_numpy("float64")
    is_target = target or source.kind == "target"
    if np.isnan(y).any() or source.kind == "classes":
        if is_target:
            raise ValueError(f"{source.name}: {labels[0]!r} is no target.")
        names, numbers = np.unique(labels.astype(str), return_inverse=True)
        return numbers, names.tolist()
    if np.isinf(y).any():
        raise ValueError(f"{source.name}: targets are finite numbers.")
    is_whole = (y == np.round(y)).all()
    if is_target or not (is_whole or classes):
        return y, []
    values, numbers = np.unique(y, return_inverse=True)
    if len(values) > 2 and not classes:
        raise ValueError(
            f"{source.name}: the labels are whole numbers from {y.min():g} to "
            f"{y.max():g}: say --classes if they are names of classes, "
            "--target if numbers."
        )
    return numbers, [f"{value:.15g}" for value in values]
