"""A proposal of what the columns of a table mean, which nobody acts on."""

import itertools
import pathlib
import re
import types

import numpy as np
import pandas as pd

from keras_rin.recordings._forms import class_files
from keras_rin.recordings._forms import is_table
from keras_rin.recordings._forms import read_table
from keras_rin.recordings._recordings import MissingArguments

ROWS, FEW = 10_000, 30  # of a sample, and of classes
QUESTIONS = {
    "channels": "which columns are channels",
    "label": "which one is the label (or the target)",
    "recording": "which ones tell recordings apart",
}
# What the names of columns suggest.
SUGGESTED = {
    "group": r"person|subject|user|participant|patient|session|day",
    "recording": r"recording|trial|file|id$",
    "label": r"label|class|activ|exercise|gesture|categor|motion|state|^y$",
    "time": r"time|stamp|clock|date|^t$",
}
INDEX = r"unnamed|index|row|^$"


def propose(data, said, needs_recording):
    """Raises `MissingArguments` if a table is not described enough."""
    if not is_table(data):
        return
    is_frame = isinstance(data, pd.DataFrame)
    is_folder = not is_frame and pathlib.Path(data).is_dir()
    has = {"channels": said.channels, "label": said.label or said.target}
    if needs_recording:
        has["recording"] = said.recording
    names = ["channels"] if is_folder else [*has]
    missing = [name for name in names if not has[name]]
    if not missing:
        return
    sample = class_files(pathlib.Path(data))[0] if is_folder else data
    arguments = {} if is_frame else _form(pathlib.Path(sample), said)
    known = types.SimpleNamespace(**vars(said) | arguments | {"rows": ROWS})
    frame = read_table(sample, known).frame.head(ROWS)
    frame = frame.set_axis([*map(str, frame)], axis=1)
    source = "data" if is_frame else str(data)
    width = max(map(len, frame), default=0)
    lines = [f"  {name:{width}}  {_described(frame[name])}" for name in frame]
    what = " and ".join(QUESTIONS[name] for name in missing)
    question = "\n".join([f"say {what}, of {source}:", *lines])
    arguments |= _roles(frame, said, missing)
    raise MissingArguments(question, source, arguments)


def _form(path, said):
    """Separator and decimal mark of a CSV file, if they look like others."""
    if path.suffix.lower() != ".csv" or said.separator != ",":
        return {}
    with open(path, encoding="utf-8", errors="replace") as file:
        text = "".join(itertools.islice(file, 50))
    for mark in ";|\t":
        if text.count(mark) >= text.count("\n") > 0:
            has_commas = re.search(r"\d,\d", text)
            return {"separator": mark, "decimal": "," if has_commas else "."}
    return {}


def _is_number(column):
    return pd.api.types.is_numeric_dtype(column) and column.dtype != bool


def _rises(column):
    return len(column) > 1 and np.mean(np.diff(column) > 0) > 0.9


def _described(column):
    if _is_number(column):
        rises = ", rises" if _rises(column) else ""
        return f"{column.min():.6g} to {column.max():.6g}{rises}"
    names = [*map(str, column.dropna().unique())]
    dots = ", ..." if len(names) > 3 else ""
    return f"{', '.join(names[:3])}{dots} ({len(names):,})"


def _roles(frame, said, missing):
    """What was said, and a proposal for the rest."""
    roles = {role: getattr(said, role) for role in ("target", *SUGGESTED)}
    roles["recording"] = ",".join(said.recording)
    for role in dict.fromkeys(["group", *missing, "time"]):
        if role == "channels" or roles[role]:
            continue
        left = [name for name in frame if name not in roles.values()]
        names = [n for n in left if re.search(SUGGESTED[role], n, re.I)]
        if role == "label":
            few = [n for n in left if 1 < frame[n].nunique() <= FEW]
            names += [name for name in few if not _is_number(frame[name])]
        names += [role.upper()] if role in missing else []
        roles[role] = next(iter(names), None)
    channels = said.channels or [
        name
        for name in frame
        if name not in roles.values()
        and _is_number(frame[name])
        and not _rises(frame[name])
        and not re.search(rf"{INDEX}|{SUGGESTED['time']}", name, re.I)
    ]
    roles["channels"] = ",".join(channels) or "CHANNELS"
    return {role: name for role, name in roles.items() if name}
