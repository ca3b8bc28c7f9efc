"""The recordings of a folder, a file or an array, before anything is chosen."""

import collections
import importlib.util
import os
import pathlib
import re
import typing
import zipfile
from collections.abc import Mapping

import numpy as np
import pandas as pd

from keras_rin.recordings._tables import ENDINGS
from keras_rin.recordings._tables import Table
from keras_rin.recordings._tables import read_table

RECORDING = re.compile(
    r"(recording|series|sequence|case|trial|segment|window)([_ ]?(id|number|nr"
    r"|no))?|id",
    re.I,
)
LABEL = re.compile(r"labels?|class|activity|category|target|y", re.I)


class Found(typing.NamedTuple):
    """The recordings of a source, one table each, with their labels."""

    source: str
    tables: list
    y: typing.Any
    kind: str | None = None  # "classes" or "target", where the source says so
    is_test: np.ndarray | None = None
    left_out: dict = {}
    recording: str | None = None


class Options(typing.NamedTuple):
    """The arguments of `read` that tell how recordings are found."""

    form: dict
    label: str | None
    recording: str | None
    axes: str | None
    allow_pickle: bool
    labelled: bool


def find(data, options) -> Found:
    if isinstance(data, pd.DataFrame):
        return _one_table(read_table(data), options)
    if isinstance(data, Mapping):
        return _arrays(data, "The arrays", options)
    path = pathlib.Path(typing.cast(str, data))
    ending = path.suffix.lower()
    if path.is_dir():
        is_archive = any(of.suffix.lower() == ".ts" for of in path.iterdir())
        return (_ts_folder if is_archive else _folder)(path, options)
    if path.is_file():
        if ending == ".ts":
            return _ts(path)
        if ending == ".npz":
            return _npz(path, options)
        if ending in ENDINGS:
            return _one_table(read_table(path, **options.form), options)
        kinds = ", ".join([*ENDINGS, ".npz", ".ts"])
        raise ValueError(f"{path} is none of {kinds}, nor a folder.")
    names = _in_sktime()
    if str(data) in names:
        return _ts_folder(names[str(data)], options)
    raise ValueError(
        f"{path} is no file or folder, nor a data set of sktime: "
        f"{', '.join(sorted(names))}."
    )


def _in_sktime():
    spec = importlib.util.find_spec("sktime")
    folders = spec.submodule_search_locations if spec else []
    files = [
        file
        for folder in folders or []
        for file in pathlib.Path(folder).glob("datasets/data/*/*_TRAIN.ts")
    ]
    return {file.parent.name: file.parent for file in files}


def _one_table(table, options):
    """A table with columns for recording and label."""
    columns = [*table.frame.columns]
    label = None
    if options.labelled:
        label = options.label or _only(columns, LABEL, table.place, "label")
    rest = [name for name in columns if name != label]
    recording = options.recording
    if recording is None:
        recording = _only(rest, RECORDING, table.place, "recording", options)
    keys = recording.split(",") if recording else []
    for name in [*keys, *([label] if label else [])]:
        if name not in columns:
            raise ValueError(
                f"{table.place} has no column {name!r}: {', '.join(columns)}."
            )
    if not keys:
        return Found(table.place, [table], None, recording="")
    frame = table.frame
    if frame[keys].isna().any(axis=None):
        row = int(np.argmax(frame[keys].isna().any(axis=1)))
        raise ValueError(f"{table.at(row, keys[0])}: no recording is named.")
    tables, y = [], []
    for key, rows in frame.groupby(keys, sort=False).indices.items():
        place = f"{table.place}, recording {_name(key)}"
        lines = [table.lines[row] for row in rows]
        part = frame.iloc[rows].drop(
            columns=[*keys, *([label] if label else [])]
        )
        tables.append(Table(part.reset_index(drop=True), place, lines))
        if label:
            labels = frame[label].iloc[rows].unique()
            if len(labels) > 1:
                raise ValueError(
                    f"{place} has more than one {label} ({labels[0]}, "
                    f"{labels[1]}); a log with a label in each row is for "
                    "keras-rin stream."
                )
            y.append(labels[0])
    return Found(table.place, tables, y if label else None, recording=recording)


def _name(key):
    key = key if isinstance(key, tuple) else (key,)
    return ", ".join(f"{of:g}" if isinstance(of, float) else of for of in key)


def _only(names, pattern, place, what, options=None):
    """The one column whose name fits; "" for no column that has to be."""
    fits = [name for name in names if pattern.fullmatch(name)]
    if len(fits) == 1:
        return fits[0]
    if not fits and options and not options.labelled:
        return ""
    found = f"may be {' or '.join(fits)}" if fits else "has no usual name"
    raise ValueError(
        f"{place}: the column of the {what} {found}; name it by --{what}, out "
        f"of {', '.join(names)}."
    )


def _visible(folder):
    hidden = re.compile(r"[.~_$]")
    entries = sorted(folder.iterdir(), key=lambda of: of.name)
    return [of for of in entries if not hidden.match(of.name)]


def _files(folder, left_out):
    """The tables of a folder; other files are counted as left out."""
    files = [of for of in _visible(folder) if of.is_file()]
    endings = {of.suffix.lower() for of in files}
    usual = {".csv", ".tsv", ".parquet"} & endings or {".txt"}
    for file in files:
        if file.suffix.lower() not in usual:
            left_out[f"*{file.suffix}"] += 1
    return [of for of in files if of.suffix.lower() in usual]


def _folder(path, options):
    """A folder with a folder for each class, or the class in each name."""
    left_out: collections.Counter = collections.Counter()
    folders = [of for of in _visible(path) if of.is_dir()]
    parts = {of.name.lower(): of for of in folders}
    if {*parts} == {"train", "test"} and options.labelled:
        found = [_folder(parts[name], options) for name in ("train", "test")]
        return _joined(str(path), found)
    by_class = {of: _files(of, left_out) for of in folders}
    for folder in folders:
        deeper = [of for of in _visible(folder) if of.is_dir()]
        if deeper:
            raise ValueError(
                f"{deeper[0]} is a folder below that of a class: name one "
                "folder whose folders are the classes."
            )
    files = [file for files in by_class.values() for file in files]
    y = [file.parent.name for file in files]
    here = _files(path, left_out)
    if files:
        left_out.update(f"{of.name}, in no folder of a class" for of in here)
    elif len(here) == 1 and options.labelled:
        return _one_table(read_table(here[0], **options.form), options)
    else:
        files = here
        if options.labelled and files:
            y = _classes_in_names(path, files, options.label)
    tables = [read_table(file, **options.form) for file in files]
    counts = {name: f"files: {n}" for name, n in left_out.items()}
    labels = y if options.labelled else None
    return Found(
        str(path), tables, labels, "classes", None, counts, recording=""
    )


def _classes_in_names(path, files, pattern):
    """The classes in names such as `walking_01.csv`."""
    if pattern:
        matches = [re.search(pattern, file.stem) for file in files]
        for file, match in zip(files, matches, strict=True):
            if not (match and match.groups()):
                raise ValueError(f"{file}: --label={pattern} finds no group.")
        return [match[1] for match in matches if match]
    words = [
        [of for of in re.split(r"[\W_]+", file.stem) if not of.isdigit()]
        for file in files
    ]
    words = [
        [of[0].rstrip("0123456789")] if len(of) == 1 else of for of in words
    ]
    names = ["_".join(of) for of in words]
    columns = [{*of} for of in zip(*words, strict=False)]
    several = sum(len(of) > 1 for of in columns) > 1
    numbered = any(re.search(r"\d", name) for name in names)
    if several or numbered or len({*names}) > len(names) / 2 or not all(names):
        raise ValueError(
            f"{path}: the class in names such as {files[0].name} can be meant "
            "in several ways; give a regular expression whose group it is, "
            "such as --label='([a-z]+)_[0-9]+'."
        )
    return names


def _joined(source, found):
    """The training and the test set of one source."""
    tables = [table for of in found for table in of.tables]
    if any(of.y is None for of in found):
        raise ValueError(f"{source} has no labels.")
    y = np.concatenate([np.asarray(of.y) for of in found])
    is_test = None
    if len(found) > 1:
        is_test = np.arange(len(tables)) >= len(found[0].tables)
    left_out = {of: why for part in found for of, why in part.left_out.items()}
    first = found[0]._replace(source=source, tables=tables, y=y)
    return first._replace(is_test=is_test, left_out=left_out)


def _npz(path, options):
    if not zipfile.is_zipfile(path):
        raise ValueError(f"{path} is no .npz file.")
    try:
        with np.load(path, allow_pickle=options.allow_pickle) as file:
            arrays = {name: file[name] for name in file.files}
    except ValueError as error:
        if "allow_pickle" not in str(error):
            raise ValueError(f"{path}: {error}.") from error
        raise ValueError(
            f"{path} holds a pickle, which can run code: say --allow-pickle if "
            "you trust it, or save x as one array, with NaN behind the ends, "
            "and y.astype(str)."
        ) from error
    except (OSError, EOFError, AttributeError, TypeError) as error:
        raise ValueError(f"{path} is no .npz file: {error}.") from error
    return _arrays(arrays, str(path), options)


def _arrays(arrays, source, options):
    """Arrays x and y, perhaps with x_test and y_test, in any case."""
    named = {str(name).lower(): value for name, value in arrays.items()}
    for name in ("x", "y"):
        if f"{name}_train" in named:
            named[name] = named.pop(f"{name}_train")
    wanted = ("x", "y") if options.labelled else ("x",)
    ends = ["", *(["_test"] if {"x_test", "y_test"} & {*named} else [])]
    found = []
    for end in ends if options.labelled else [""]:
        for name in wanted:
            if name + end not in named:
                raise ValueError(
                    f"{source} has no {name + end!r}: {', '.join(arrays)}."
                )
        tables = _of_array(named["x" + end], f"{source}, x{end}", options)
        y = np.asarray(named["y" + end]) if options.labelled else None
        if y is not None and len(np.atleast_1d(y)) != len(tables):
            raise ValueError(
                f"{source}: x{end} has {len(tables)} recordings and y{end} has "
                f"shape {y.shape}."
            )
        found.append(Found(source, tables, y, recording=""))
    return _joined(source, found) if options.labelled else found[0]


def _of_array(x, place, options):
    try:
        parts = [np.asarray(of, "float64") for of in x]
    except (TypeError, ValueError) as error:
        raise ValueError(f"{place} has to hold numbers: {error}.") from error
    parts = [of[:, None] if of.ndim == 1 else of for of in parts]
    for number, part in enumerate(parts):
        if part.ndim != 2 or not part.size:
            raise ValueError(
                f"{place}[{number}] of shape {part.shape}: a recording has the "
                "shape (steps, channels)."
            )
    order = re.findall("steps|channels", (options.axes or "").lower())
    if (
        sum(len(of) < of.shape[1] for of in parts) > len(parts) / 2
        and not order
    ):
        raise ValueError(
            f"{place}: recordings of shape {parts[0].shape} would have more "
            "channels than steps; say --axes=recordings,channels,steps, or "
            "--axes=recordings,steps,channels if it is so."
        )
    if order == ["channels", "steps"]:
        parts = [part.T for part in parts]
    elif options.axes and order != ["steps", "channels"]:
        raise ValueError(
            f"--axes={options.axes} is neither recordings,channels,steps nor "
            "recordings,steps,channels."
        )
    return [_table(part, f"{place}[{n}]") for n, part in enumerate(parts)]


def _table(values, place):
    names = [str(n + 1) for n in range(values.shape[1])]
    return Table(pd.DataFrame(values, columns=names), place, range(len(values)))


def _ts_folder(path, options):
    files = [of for of in _visible(path) if of.suffix.lower() == ".ts"]
    stems = [of.stem for of in files]
    if len(files) == 1:
        return _ts(files[0])
    name = os.path.commonprefix(stems)
    if sorted(stems) != [f"{name}EST", f"{name}RAIN"] or not name.endswith(
        "_T"
    ):
        raise ValueError(
            f"{path} has neither one .ts file nor NAME_TRAIN.ts and "
            f"NAME_TEST.ts: {', '.join(stems)}; name one file."
        )
    return _joined(str(path), [_ts(files[1]), _ts(files[0])])


def _ts(path):
    """A file of the archive's format; time stamps are left out."""
    lines = path.read_text(encoding="utf-8-sig").splitlines()
    header = [line.lower().split() for line in lines if line[:1] == "@"]
    tags = {of[0]: of[1:] for of in header}
    labels = [tags.get(of, [""])[0] for of in ("@classlabel", "@targetlabel")]
    if "true" not in labels or "@data" not in tags:
        raise ValueError(f"{path} has no @data, or neither class nor target.")
    has_time = tags.get("@timestamps", [""])[0] == "true"
    start = [line.strip().lower() for line in lines].index("@data") + 1
    tables, y = [], []
    for number, line in enumerate(lines[start:], start + 1):
        if not line.strip() or line[0] in "#%":
            continue
        if has_time:
            line = re.sub(r"\([^()]*,\s*([^(),]*)\)", r"\1", line)
        *dimensions, label = line.split(":")
        place = f"{path}, line {number}"
        try:
            values = [
                np.array(of.replace("?", "nan").split(","), "float64")
                for of in dimensions
            ]
            tables.append(_table(np.stack(values, axis=1), place))
        except ValueError as error:
            raise ValueError(f"{place}: {error}.") from error
        y.append(label.strip())
    kind = "classes" if labels[0] == "true" else "target"
    left_out = {"time stamps": "time"} if has_time else {}
    return Found(str(path), tables, y, kind, None, left_out, recording="")
