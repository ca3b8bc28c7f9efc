"""A proposal of what the columns of a table mean, which nobody acts on."""

import pathlib
import re

import numpy as np
import pandas as pd

from keras_rin.recordings._forms import class_files
from keras_rin.recordings._recordings import MissingArguments

ROWS = 10_000  # from which a proposal is made
FEW = 30  # values of a class
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
    is_folder = (
        not isinstance(data, pd.DataFrame) and pathlib.Path(data).is_dir()
    )
    missing = [] if said.channels else ["channels"]
    if not (is_folder or said.label or said.target):
        missing.append("label")
    if needs_recording and not (is_folder or said.recording):
        missing.append("recording")
    if not missing:
        return
    path = class_files(pathlib.Path(data))[0] if is_folder else data
    frame, arguments = _sample(path, said)
    frame.columns = frame.columns.map(str)
    width = max(map(len, frame), default=0)
    lines = [f"  {name:{width}}  {_described(frame[name])}" for name in frame]
    what = " and ".join(QUESTIONS[name] for name in missing)
    source = "data" if isinstance(data, pd.DataFrame) else str(data)
    question = "\n".join([f"say {what}, of {source}:", *lines])
    arguments |= _roles(frame, said, missing)
    raise MissingArguments(question, source, arguments)


def _sample(path, said):
    """The first rows, and how to read them."""
    if isinstance(path, pd.DataFrame):
        return path.head(ROWS), {}
    path = pathlib.Path(path)
    if path.suffix.lower() == ".parquet":
        return pd.read_parquet(path).head(ROWS), {}
    with open(path, encoding="utf-8", errors="replace") as file:
        text = "".join(line for line, _ in zip(file, range(50), strict=False))
    form = {"separator": said.separator, "decimal": said.decimal}
    for mark in "\t|;":
        if said.separator == "," and text.count(mark) >= text.count("\n") > 0:
            form["separator"] = mark
    if form["separator"] != "," and re.search(r"\d,\d", text):
        form["decimal"] = ","
    try:
        frame = pd.read_csv(
            path,
            sep=form["separator"],
            decimal=form["decimal"],
            nrows=ROWS,
            on_bad_lines="skip",
            encoding_errors="replace",
            keep_default_na=False,
            na_values=[""],
        )
    except ValueError as error:
        raise ValueError(f"{path}: {str(error).strip()}") from error
    said = vars(said)
    return frame, {key: form[key] for key in form if form[key] != said[key]}


def _is_number(column):
    return pd.api.types.is_numeric_dtype(column) and column.dtype != bool


def _rises(column):
    is_number = _is_number(column) and len(column) > 1
    return is_number and np.mean(np.diff(column) > 0) > 0.9


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
    roles["recording"] = ",".join(said.recording or [])
    wanted = {"group", "time", *missing} - {"channels"}
    for role, pattern in SUGGESTED.items():
        left = [name for name in frame if name not in roles.values()]
        names = [name for name in left if re.search(pattern, name, re.I)]
        if role == "label":
            few = [n for n in left if 1 < frame[n].nunique() <= FEW]
            names += [name for name in few if not _is_number(frame[name])]
        if role in wanted and not roles[role]:
            needed = role.upper() if role in missing else None
            roles[role] = names[0] if names else needed
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
