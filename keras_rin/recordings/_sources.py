"""The recordings of a folder, a file or an array, a frame each."""

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
from keras_rin.recordings._tables import at
from keras_rin.recordings._tables import read_table

RECORDING = re.compile(
    r"(recording|series|sequence|case|trial|segment|window)([_ ]?(id|number|nr"
    r"|no))?|id",
    re.I,
)
LABEL = re.compile(r"labels?|class|activity|category|target|y", re.I)


class Source(typing.NamedTuple):
    """The recordings of a source, by their place, with their labels."""

    name: str
    frames: dict
    labels: typing.Any = None
    kind: str | None = None  # "classes" or "target", where the source says so
    left_out: dict = {}
    is_test: np.ndarray | None = None


def find(data, options) -> Source:
    """The recordings of what `read` takes, with its options."""
    if isinstance(data, pd.DataFrame):
        return _one_table(data, options)
    if isinstance(data, Mapping):
        return _arrays(data, "The arrays", options)
    path = pathlib.Path(typing.cast(str, data))
    ending = path.suffix.lower()
    if path.is_dir():
        is_archive = any(of.suffix.lower() == ".ts" for of in path.iterdir())
        return _ts_folder(path) if is_archive else _folder(path, options)
    if path.is_file():
        if ending == ".ts":
            return _ts(path)
        if ending == ".npz":
            return _npz(path, options)
        if ending in ENDINGS:
            return _one_table(path, options)
        kinds = ", ".join([*ENDINGS, ".npz", ".ts"])
        raise ValueError(f"{path} is none of {kinds}, nor a folder.")
    spec = importlib.util.find_spec("sktime")
    folders = spec.submodule_search_locations if spec else []
    roots = [pathlib.Path(of, "datasets", "data") for of in folders or []]
    files = [file for root in roots for file in root.glob("*/*_TRAIN.ts")]
    names = {file.parent.name: file.parent for file in files}
    if str(data) in names:
        return _ts_folder(names[str(data)])
    raise ValueError(
        f"{path} is no file or folder, nor a data set of sktime: "
        f"{', '.join(sorted(names))}."
    )


def one_column(names, pattern, place, what, needed=True):
    """The one column whose name fits, or `None` where none is needed."""
    fits = [name for name in names if pattern.fullmatch(name)]
    if len(fits) == 1 or not (fits or needed):
        return fits[0] if fits else None
    reason = f"may be {' or '.join(fits)}" if fits else "has no usual name"
    is_log = "; a log with a label in each row is for keras-rin stream"
    raise ValueError(
        f"{place}: the column of the {what} {reason}; name it by --{what}, one "
        f"of {', '.join(names)}{is_log * (what == 'recording')}."
    )


def check_columns(place, frame, names):
    """Refuses columns that are missing, or lack a value."""
    for name in names:
        if name not in frame:
            columns = ", ".join(frame)
            raise ValueError(f"{place} has no column {name!r}: {columns}.")
        if frame[name].isna().any():
            row = int(np.argmax(frame[name].isna()))
            raise ValueError(f"{at(place, frame, row, name)}: nothing is said.")


def _table(source, options):
    return read_table(source, options.separator, options.decimal)


def _one_table(source, options):
    """A table with columns for recording and label."""
    place, frame = _table(source, options)
    names, label, needed = [*frame], options.label, options.labelled
    if needed and not label:
        label = one_column(names, LABEL, place, "label")
    rest = [name for name in names if name != label]
    keys = options.recording
    keys = keys or one_column(rest, RECORDING, place, "recording", needed)
    if not keys:
        return Source(place, {place: frame})
    keys, labels = keys.split(","), [label] if needed else []
    check_columns(place, frame, [*keys, *labels])
    frames, y = {}, []
    for key, part in frame.groupby(keys, sort=False):
        key = ", ".join(f"{of:g}" if type(of) is float else of for of in key)
        frames[f"{place}, recording {key}"] = part.drop(columns=keys + labels)
        for values in (part[name].unique() for name in labels):
            if len(values) > 1:
                raise ValueError(
                    f"{place}, recording {key} has more than one {label} "
                    f"({values[0]}, {values[1]}); a log with a label in each "
                    "row is for keras-rin stream."
                )
            y.append(values[0])
    return Source(place, frames, y)


def _visible(folder):
    entries = sorted(folder.iterdir(), key=lambda of: of.name)
    return [of for of in entries if of.name[0] not in ".~_$"]


def _files(folder, left_out):
    """The tables of a folder; other files are counted as left out."""
    files = [of for of in _visible(folder) if of.is_file()]
    usual = {".csv", ".tsv", ".parquet"} & {of.suffix.lower() for of in files}
    usual = usual or {".txt"}
    others = [of for of in files if of.suffix.lower() not in usual]
    left_out.update(f"*{of.suffix}" for of in others)
    return [of for of in files if of not in others]


def _folder(path, options):
    """A folder with a folder for each class, or the class in each name."""
    folders = [of for of in _visible(path) if of.is_dir()]
    parts = {of.name.lower(): of for of in folders}
    if {*parts} == {"train", "test"} and options.labelled:
        sources = (_folder(parts[name], options) for name in ("train", "test"))
        return _joined(str(path), *sources)
    left_out: collections.Counter = collections.Counter()
    for folder in folders:
        if deeper := [of for of in _visible(folder) if of.is_dir()]:
            raise ValueError(
                f"{deeper[0]} is a folder below that of a class: name one "
                "folder whose folders are the classes."
            )
    files = [file for of in folders for file in _files(of, left_out)]
    labels: list | None = [file.parent.name for file in files]
    here = _files(path, left_out)
    if files:
        left_out.update(f"{of.name}, in no folder of a class" for of in here)
    elif len(here) == 1 and options.labelled:
        return _one_table(here[0], options)
    else:
        files, labels = here, None
        if options.labelled and files:
            labels = _classes_in_names(path, files, options.label)
    frames = dict(_table(file, options) for file in files)
    counts = {name: f"files: {n}" for name, n in left_out.items()}
    return Source(str(path), frames, labels, "classes", counts)


def _classes_in_names(path, files, pattern):
    """The classes in names such as `walking_01.csv`: the word that varies."""
    if pattern:
        matches = [re.search(pattern, file.stem) for file in files]
        for file, match in zip(files, matches, strict=True):
            if not (match and match.groups()):
                raise ValueError(f"{file}: --label={pattern} finds no group.")
        return [match[1] for match in matches if match]
    words = [re.findall(r"[^\W\d_]+", file.stem) for file in files]
    varying = [of for of in zip(*words, strict=False) if len({*of}) > 1]
    is_clear = len(varying) == 1 and len({*map(len, words)}) == 1
    if not is_clear or len({*varying[0]}) > len(files) / 2:
        raise ValueError(
            f"{path}: the class in names such as {files[0].name} can be meant "
            "in several ways; give a regular expression whose group it is, "
            "such as --label='([a-z]+)_[0-9]+'."
        )
    return [*varying[0]]


def _joined(name, train, *test):
    """The training and the test set of one source."""
    if not test:
        return train
    if train.labels is None or test[0].labels is None:
        raise ValueError(f"{name} has no labels.")
    labels = [*train.labels, *test[0].labels]
    return train._replace(
        name=name,
        frames=train.frames | test[0].frames,
        labels=labels,
        left_out=train.left_out | test[0].left_out,
        is_test=np.arange(len(labels)) >= len(train.labels),
    )


def _npz(path, options):
    try:
        if not zipfile.is_zipfile(path):
            raise OSError("it is no zip file")
        with np.load(path, allow_pickle=options.allow_pickle) as file:
            arrays = {name: file[name] for name in file.files}
    except (OSError, EOFError, AttributeError, TypeError, ValueError) as error:
        if "allow_pickle" not in str(error):
            raise ValueError(f"{path} is no .npz file: {error}.") from error
        raise ValueError(
            f"{path} holds a pickle, which can run code: say --allow-pickle if "
            "you trust it, or save x as one array, with NaN behind the ends, "
            "and y.astype(str)."
        ) from error
    return _arrays(arrays, str(path), options)


def _arrays(arrays, name, options):
    """Arrays x and y, perhaps with x_test and y_test, in any case."""
    named = {
        str(key).lower().removesuffix("_train"): value
        for key, value in arrays.items()
    }
    sources = []
    has_test = options.labelled and {"x_test", "y_test"} & {*named}
    for part in ["", "_test"] if has_test else [""]:
        for key in ("x", "y") if options.labelled else ("x",):
            if key + part not in named:
                names = ", ".join(arrays)
                raise ValueError(f"{name} has no {key + part!r}: {names}.")
        place = f"{name}, x{part}"
        frames = _frames(named["x" + part], place, options.axes)
        labels = None
        if options.labelled:
            labels = np.asarray(named["y" + part])
            if labels.ndim == 2 and labels.shape[1] == 1:
                labels = labels[:, 0]
            if labels.shape != (len(frames),):
                raise ValueError(
                    f"{place} has {len(frames)} recordings and y of shape "
                    f"{labels.shape}: y has one label each, of one-hot "
                    "y.argmax(axis=1)."
                )
        sources.append(Source(name, frames, labels))
    return _joined(name, *sources)


def _frames(x, place, axes):
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
    order = re.findall("steps|channels", (axes or "").lower())
    if axes and {*order} != {"steps", "channels"}:
        raise ValueError(
            f"--axes={axes} is neither recordings,channels,steps nor "
            "recordings,steps,channels."
        )
    wide = sum(len(part) < part.shape[1] for part in parts)
    if wide > len(parts) / 2 and not axes:
        raise ValueError(
            f"{place}: recordings of shape {parts[0].shape} would have more "
            "channels than steps; say --axes=recordings,channels,steps, or "
            "--axes=recordings,steps,channels if it is so."
        )
    if order[:1] == ["channels"]:
        parts = [part.T for part in parts]
    return {f"{place}[{n}]": _frame(part) for n, part in enumerate(parts)}


def _frame(values):
    names = [str(n + 1) for n in range(values.shape[1])]
    return pd.DataFrame(values, columns=names).rename_axis("row")


def _ts_folder(path):
    files = [of for of in _visible(path) if of.suffix.lower() == ".ts"]
    stems = [of.stem for of in files]
    name = os.path.commonprefix(stems).removesuffix("T")
    if len(files) > 1 and stems != [f"{name}TEST", f"{name}TRAIN"]:
        raise ValueError(
            f"{path} has neither one .ts file nor NAME_TRAIN.ts and "
            f"NAME_TEST.ts: {', '.join(stems)}; name one file."
        )
    return _joined(str(path), *map(_ts, reversed(files)))


def _ts(path):
    """A file of the archive's format; time stamps are left out.

    sktime's reader writes the names of classes in lower case and does not
    read targets beside time stamps.
    """
    lines = path.read_text(encoding="utf-8-sig").splitlines()
    header = [line.lower().split() for line in lines if line[:1] == "@"]
    tags = {of[0]: of[1:2] for of in header}
    kinds = {"@classlabel": "classes", "@targetlabel": "target"}
    kind = [kinds[of] for of in kinds if tags.get(of) == ["true"]]
    if not kind or "@data" not in tags:
        raise ValueError(f"{path} has no @data, or neither class nor target.")
    has_time = tags.get("@timestamps") == ["true"]
    start = [line.strip().lower() for line in lines].index("@data") + 1
    frames, labels = {}, []
    for number, line in enumerate(lines[start:], start + 1):
        if not line.strip() or line[0] in "#%":
            continue
        if has_time:
            line = re.sub(r"\([^()]*,\s*([^(),]*)\)", r"\1", line)
        *channels, label = line.replace("?", "nan").split(":")
        place = f"{path}, line {number}"
        try:
            x = [np.array(of.split(","), "float64") for of in channels]
            frames[place] = _frame(np.stack(x, axis=1))
        except ValueError as error:
            raise ValueError(f"{place}: {error}.") from error
        labels.append(label.strip())
    left_out = {"time stamps": "time"} if has_time else {}
    return Source(str(path), frames, labels, kind[0], left_out)
