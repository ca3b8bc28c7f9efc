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


def said_of(**arguments):
    """What a person said, with lists of columns as lists."""
    said = types.SimpleNamespace(**arguments)
    for name in ("channels", "recording"):
        value = getattr(said, name)
        if isinstance(value, str):
            setattr(said, name, next(csv.reader([value])))
    if said.label and said.target:
        raise ValueError("Name a label or a target, not both.")
    return said


def is_table(data):
    """Whether columns have to be named: a table, or a folder of tables."""
    if isinstance(data, pd.DataFrame | Mapping):
        return isinstance(data, pd.DataFrame)
    path = pathlib.Path(data)
    return path.is_dir() or (path.is_file() and path.suffix.lower() in ENDINGS)


def read_table(data, said):
    """The table, and what was said or follows from the form of the data."""
    if isinstance(data, pd.DataFrame):
        return Table(data, "The table"), said
    if isinstance(data, Mapping):
        return _of_arrays(data, "The arrays", said)
    path = pathlib.Path(data)
    if path.is_dir():
        return _of_folder(path, said)
    ending = path.suffix.lower()
    if path.is_file() and ending in ENDINGS:
        return _of_file(path, said), said
    if path.is_file() and ending == ".npz":
        try:
            with np.load(path) as arrays:
                return _of_arrays(dict(arrays), str(path), said)
        except ValueError as error:
            if isinstance(error, MissingArguments):
                raise
            raise ValueError(f"{path}: {error}") from error
    return _of_sktime(path, said)


def _of_file(path, said):
    if path.suffix.lower() == ".parquet":
        return Table(pd.read_parquet(path), str(path))
    texts = [said.label, said.group, *(said.recording or [])]
    options: dict = {"sep": said.separator, "keep_default_na": False}
    try:
        first = pd.read_csv(path, header=None, nrows=1, dtype=str, **options)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of columns with several types
            frame = pd.read_csv(
                path,
                decimal=said.decimal,
                dtype=dict.fromkeys(texts, str),
                **options,
            )
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not in UTF-8: {error.reason}") from error
    except ValueError as error:  # of a parser
        text = str(error).strip().rpartition("error: ")[2]
        raise ValueError(f"{path}: {text}") from error
    names = first.iloc[0].tolist()
    if not isinstance(frame.index, pd.RangeIndex) or len(names) != len(
        frame.columns
    ):
        raise ValueError(f"{path}: rows have more cells than the header.")
    frame.columns = pd.Index(names)
    return Table(frame, str(path), said.separator, said.decimal)


def class_files(folder):
    """The tables `CLASS/*.csv` and `CLASS/*.parquet` of a folder."""
    files = [file for file in folder.rglob("*") if file.is_file()]
    visible = [file for file in sorted(files) if file.name[0] != "."]
    tables = [file for file in visible if file.suffix.lower() in ENDINGS]
    others = [file for file in tables if file.parent.parent != folder]
    if others or not tables:
        problem = f", unlike {others[0]}" if others else ""
        raise ValueError(
            f"{folder} must have .csv or .parquet files in a folder for each "
            f"class{problem}."
        )
    return tables


def _of_folder(folder, said):
    _refuse(said, f"the folder {folder}", "label", "target", "recording")
    files = class_files(folder)
    frames = []
    for file in files:
        frame = _of_file(file, said).frame
        if frames and {*frame.columns} != {*frames[0].columns} - {FILE, FOLDER}:
            raise ValueError(f"{file} and {files[0]} have different columns.")
        frames.append(
            frame.assign(**{FILE: str(file)}, **{FOLDER: file.parent.name})
        )
    said = types.SimpleNamespace(**vars(said))
    said.recording, said.label = [FILE], FOLDER
    frame = pd.concat(frames)
    return Table(frame, str(folder), said.separator, said.decimal), said


def _refuse(said, source, *names):
    for name in names:
        if getattr(said, name):
            raise ValueError(f"--{name} has no meaning for {source}.")


def _of_arrays(arrays, source, said):
    _refuse(said, source, "channels", "recording", "time")
    if not {"x", "y"} <= {*arrays} <= {"x", "y", "group"}:
        raise ValueError(
            f"{source} must have x, y and perhaps group, and no other array: "
            f"{', '.join(arrays)}"
        )
    y = np.asarray(arrays["y"])
    if y.dtype.kind not in "US" and not (said.label or said.target):
        proposal = {"target" if y.dtype.kind == "f" else "label": "y"}
        question = "say whether y names classes or has numbers to predict"
        raise MissingArguments(f"{question}, of {source}:", source, proposal)
    columns = {"y": y} | {name: arrays[name] for name in {*arrays} - {"x", "y"}}
    for name, values in columns.items():
        if np.shape(values) != (len(arrays["x"]),):
            raise ValueError(
                f"{source} has {len(arrays['x'])} recordings in x, and "
                f"{name} has the shape {np.shape(values)}."
            )
    frames = []
    for number, x in enumerate(arrays["x"]):
        kind = np.asarray(x).dtype.kind
        if np.ndim(x) != 2 or kind not in "iuf" or np.ma.is_masked(x):
            raise ValueError(
                f"{source} must have numbers (recordings, steps, channels) in "
                f"x, whose recording {number} has the shape {np.shape(x)}."
            )
        frames.append(pd.DataFrame(np.asarray(x)))
    said.group = "group" if "group" in arrays else None
    return _of_frames(frames, columns, source, said)


def _of_frames(frames, columns, source, said):
    """The table of frames of one recording each, without missing ends."""
    for number, frame in enumerate(frames):
        is_known = frame.notna().any(axis=1).to_numpy()
        steps = len(frame) - int(is_known[::-1].argmax())
        names = [str(n + 1) for n in range(frame.shape[1])]
        frame = frame.iloc[:steps].set_axis(names, axis=1)
        labels = {name: values[number] for name, values in columns.items()}
        frames[number] = frame.assign(recording=number, **labels)
    frame = pd.concat(frames, keys=range(len(frames)))
    said = types.SimpleNamespace(**vars(said))
    said.channels, said.recording = names, ["recording"]
    said.label = None if said.target else "y"
    said.target = said.target and "y"
    return Table(frame, source), said


def _of_sktime(path, said):
    """A `.ts` file, or all parts of a data set that comes with sktime."""
    unused = "channels", "recording", "time", "group", "label", "target"
    files, name = [path], str(path)
    if path.suffix.lower() != ".ts" or not path.is_file():
        spec = importlib.util.find_spec("sktime")
        place = (
            pathlib.Path(spec.origin).parent if spec and spec.origin else path
        )
        every = sorted(place.glob("datasets/data/*/*_T*.ts"))
        files = [file for file in every if file.parent.name == name]
        if not files:
            names = ", ".join(sorted({file.parent.name for file in every}))
            raise ValueError(
                f"{path} is no folder, no .csv, .parquet, .npz or .ts file, "
                f"nor of sktime: {names or 'pip install sktime'}"
            )
    _refuse(said, path, *unused)
    has_targets = [_has_targets(file) for file in files]
    from sktime.datasets import load_from_tsfile

    frames, labels = [], []
    for file in files:
        try:
            x, y = load_from_tsfile(str(file), return_data_type="df-list")
        except (OSError, ValueError, IndexError) as error:
            raise ValueError(f"{file}: {error}") from error
        frames, labels = [*frames, *x], [*labels, *y]
    said.target = "y" if any(has_targets) else None
    return _of_frames(frames, {"y": labels}, name, said)


def _has_targets(file):
    with open(file, encoding="utf-8") as lines:
        header = [line.lower().split() for line in itertools.islice(lines, 99)]
    is_target = ["@targetlabel", "true"] in header
    if is_target and ["@timestamps", "true"] in header:
        raise ValueError(f"{file}: targets beside time stamps are not read.")
    return is_target
