"""The forms of data, each read by a library into one table."""

import csv
import importlib.util
import itertools
import pathlib
import types
import warnings
from collections.abc import Mapping

import numpy as np
import pandas as pd

from keras_rin.recordings._recordings import MissingArguments
from keras_rin.recordings._tables import FILE
from keras_rin.recordings._tables import FOLDER
from keras_rin.recordings._tables import Table

ENDINGS = ".csv", ".parquet"


def said_of(**columns):
    """What a person said, with lists of columns as lists."""
    names = "channels", "label", "target", "recording", "group", "time"
    said: dict = dict.fromkeys(names) | {"separator": ",", "decimal": "."}
    said |= columns
    for name in ("channels", "recording"):
        if isinstance(said[name], str):
            said[name] = next(csv.reader([said[name]]))
        said[name] = [*(said[name] or [])]
    said["separator"] = said["separator"].replace("\\t", "\t")
    if len(said["separator"]) != 1:
        raise ValueError("The separator is one character.")
    if said["label"] and said["target"]:
        raise ValueError("Name a label or a target, not both.")
    return types.SimpleNamespace(**said, rows=None)


def is_table(data):
    """Whether columns have to be named: a table, or a folder of tables."""
    if isinstance(data, pd.DataFrame | Mapping):
        return isinstance(data, pd.DataFrame)
    path = pathlib.Path(data)
    return path.is_dir() or (path.is_file() and path.suffix.lower() in ENDINGS)


def read_table(data, said):
    """The table; what follows from the form of the data is added to `said`."""
    if isinstance(data, pd.DataFrame):
        return Table(data, "The table")
    if isinstance(data, Mapping):
        return _of_arrays(data, "The arrays", said)
    path = pathlib.Path(data)
    if path.is_dir():
        return _of_folder(path, said)
    if is_table(path):
        return _of_file(path, said)
    if not (path.is_file() and path.suffix.lower() == ".npz"):
        return _of_sktime(path, said)
    try:
        with np.load(path) as arrays:
            arrays = dict(arrays)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
    return _of_arrays(arrays, str(path), said)


def _of_file(path, said):
    if path.suffix.lower() == ".parquet":
        return Table(pd.read_parquet(path), str(path))
    texts = filter(None, [said.label, said.group, *said.recording])
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:
            rows = csv.reader(file, delimiter=said.separator)
            cells = filter(None, rows)
            first, second = next(cells, []), next(cells, [])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of columns with several types
            frame = pd.read_csv(
                path,
                sep=said.separator,
                decimal=said.decimal,
                dtype=dict.fromkeys(texts, "category"),
                keep_default_na=False,
                nrows=said.rows,
            )
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not in UTF-8: {error.reason}") from error
    except ValueError as error:  # of the parser
        text = str(error).strip().rpartition("error: ")[2]
        raise ValueError(f"{path}: {text}") from error
    if len(second) > len(first) or len(first) != frame.shape[1]:
        raise ValueError(f"{path}: rows have more cells than the header.")
    frame.columns = pd.Index(first)
    return Table(frame, str(path), said.separator, said.decimal)


def class_files(folder):
    """The tables `CLASS/*.csv` and `CLASS/*.parquet` of a folder."""
    files = [file for file in sorted(folder.rglob("*")) if file.name[0] != "."]
    tables = [file for file in files if file.suffix.lower() in ENDINGS]
    others = [file for file in tables if file.parent.parent != folder]
    if others or not tables:
        raise ValueError(
            f"{folder} must have .csv or .parquet files in a folder for each "
            f"class{f', unlike {others[0]}' if others else ''}."
        )
    return tables


def _of_folder(folder, said):
    _refuse(said, f"the folder {folder}", "label", "target", "recording")
    files, frames = class_files(folder), []
    for file in files:
        frame = _of_file(file, said).frame
        labels = {FILE: str(file), FOLDER: file.parent.name}
        frames.append(frame.assign(**labels))
        if {*frames[-1]} != {*frames[0]}:
            raise ValueError(f"{file} and {files[0]} have different columns.")
    said.recording, said.label = [FILE], FOLDER
    return Table(pd.concat(frames), str(folder), said.separator, said.decimal)


def _refuse(said, source, *names):
    for name in names:
        if getattr(said, name):
            raise ValueError(f"--{name} has no meaning for {source}.")


def _of_arrays(arrays, source, said):
    _refuse(said, source, "channels", "recording", "time")
    if not {"x", "y"} <= {*arrays} <= {"x", "y", "group"}:
        names = ", ".join(arrays)
        raise ValueError(f"{source} must have x, y, and group at most: {names}")
    columns = {name: np.asarray(arrays[name]) for name in {*arrays} - {"x"}}
    kind = columns["y"].dtype.kind
    if kind not in "US" and not (said.label or said.target):
        proposal = {"target" if kind == "f" else "label": "y"}
        question = "say whether y names classes or has numbers to predict"
        raise MissingArguments(f"{question}, of {source}:", source, proposal)
    for name, values in columns.items():
        if values.shape != (len(arrays["x"]),):
            raise ValueError(
                f"{source} has {len(arrays['x'])} recordings in x, and {name} "
                f"has the shape {values.shape}."
            )
    for x in arrays["x"]:
        kind = np.asarray(x).dtype.kind
        if np.ndim(x) != 2 or kind not in "iuf" or np.ma.is_masked(x):
            shape = "numbers (recordings, steps, channels)"
            raise ValueError(f"{source} must have {shape} in x.")
    said.group = "group" if "group" in arrays else None
    frames = [pd.DataFrame(np.asarray(x)) for x in arrays["x"]]
    return _of_frames(frames, columns, source, said)


def _of_frames(frames, columns, source, said):
    """The table of frames of one recording each, without missing ends."""
    for number, frame in enumerate(frames):
        is_known = frame.notna().any(axis=1).to_numpy()
        steps = len(frame) - int(is_known[::-1].argmax())
        said.channels = [str(n + 1) for n in range(frame.shape[1])]
        frame = frame.iloc[:steps].set_axis(said.channels, axis=1)
        labels = {name: values[number] for name, values in columns.items()}
        frames[number] = frame.assign(recording=number, **labels)
    said.label, said.target = (None, "y") if said.target else ("y", None)
    said.recording = ["recording"]
    keys = [f"recording {number}, step" for number in range(len(frames))]
    return Table(pd.concat(frames, keys=keys), source)


def _of_sktime(path, said):
    """A `.ts` file, or all parts of a data set that comes with sktime."""
    _refuse(said, path, "channels", "recording", "time", "group", "label")
    files = [path]
    if path.suffix.lower() != ".ts" or not path.is_file():
        spec = importlib.util.find_spec("sktime")
        place = pathlib.Path(spec.origin if spec and spec.origin else path)
        every = sorted(place.parent.glob("datasets/data/*/*_T*.ts"))
        files = [file for file in every if file.parent.name == str(path)]
        if not files:
            names = ", ".join(sorted({file.parent.name for file in every}))
            raise ValueError(
                f"{path} is no folder, no .csv, .parquet, .npz or .ts file, "
                f"nor of sktime: {names or 'pip install sktime'}"
            )
    said.target = any([_has_targets(file) for file in files])
    from sktime.datasets import load_from_tsfile

    frames: list = []
    labels: list = []
    for file in files:
        try:
            x, y = load_from_tsfile(str(file), return_data_type="df-list")
        except (OSError, ValueError, IndexError) as error:
            raise ValueError(f"{file}: {error}") from error
        frames, labels = [*frames, *x], [*labels, *y]
    return _of_frames(frames, {"y": labels}, str(path), said)


def _has_targets(file):
    with open(file, encoding="utf-8") as lines:
        header = [line.lower().split() for line in itertools.islice(lines, 99)]
    is_target = ["@targetlabel", "true"] in header
    if is_target and ["@timestamps", "true"] in header:
        raise ValueError(f"{file}: targets beside time stamps are not read.")
    return is_target
