"""One table of a file, read by pandas, and which columns are channels."""

import contextlib
import io
import itertools
import pathlib
import re

import numpy as np
import pandas as pd

ENDINGS = ".csv", ".tsv", ".txt", ".parquet"
SEPARATORS = ";", "\t", "|", ",", r"\s+", "\x1f"  # the last one: one column
CLOCK = re.compile(
    r"(.*[^a-z])?(time|(time|date)?[_ ]?stamp|date|datetime|clock|epoch|uptime"
    r"|elapsed|seconds|millis|milliseconds)([^a-z].*)?|t|ts|s|sec|ms|us|ns",
    re.I,
)
INDEX = re.compile(
    r"(unnamed.*|index|idx|row|step|sample|frame|no\.?|nr\.?|)", re.I
)


def read_table(source, separator=None, decimal=None):
    """Place and frame of a CSV or Parquet file, or of a DataFrame.

    Columns are of numbers in float64 or of text; the index is the line in the
    file, or the row of the frame.
    """
    place = "the frame" if isinstance(source, pd.DataFrame) else str(source)
    if pathlib.Path(place).suffix.lower() in ENDINGS[:-1]:
        frame = _read_csv(pathlib.Path(place), separator, decimal)
    else:
        is_frame = isinstance(source, pd.DataFrame)
        frame = source.copy() if is_frame else pd.read_parquet(place)
        frame.index = pd.RangeIndex(len(frame), name="row")
        frame.columns = [str(name) for name in frame.columns]
    if not frame.columns.is_unique:
        names = ", ".join(frame.columns)
        raise ValueError(f"{place} has two columns of one name: {names}.")
    for name in frame.columns:
        frame[name] = _numbers(place, frame, name)
    return place, frame


def at(place, frame, row, column):
    """Where a value is, for an error message."""
    return f'{place}, {frame.index.name} {frame.index[row]}, column "{column}"'


def _numbers(place, frame, name):
    """A column in float64, or of text; a word among numbers is an error."""
    column = frame[name]
    if pd.api.types.is_datetime64_any_dtype(column):
        return column
    numbers = pd.to_numeric(column, errors="coerce")
    wrong = numbers.isna() & column.notna()
    if wrong.any() and numbers.notna().sum() > wrong.sum():
        row = int(np.argmax(wrong))
        raise ValueError(
            f"{at(place, frame, row, name)}: {column.iloc[row]!r} is no number."
        )
    return column if wrong.any() else numbers.astype("float64")


def _read_csv(path, separator, decimal):
    text = enumerate(_decode(path.read_bytes()).splitlines(), 1)
    rows = [(n, line) for n, line in text if line.strip(" \t,;|\x00")]
    rows = [*itertools.dropwhile(lambda row: row[1][0] in "#%", rows)]
    if not rows:
        raise ValueError(f"{path} is empty.")
    numbers, lines = zip(*rows, strict=True)
    sample = lines[1 :: len(lines) // 50 + 1] or lines
    form, sample = _dialect(path, lines[0], sample, separator, decimal)
    names = _parse(lines[:1], form, dtype=str, keep_default_na=False)
    has_header = _is_header(_parse(lines[:1], form), sample)
    try:
        frame = _parse(lines[has_header:], form)
    except pd.errors.EmptyDataError as error:
        raise ValueError(f"{path} has a header alone.") from error
    except pd.errors.ParserError as error:
        cells = re.search(r"(\d+) fields in line (\d+), saw (\d+)", str(error))
        if cells is None:
            raise ValueError(f"{path}: {error}".strip()) from error
        line = numbers[has_header:][int(cells[2]) - 1]
        raise ValueError(
            f"{path}, line {line} has {cells[3]} cells, and lines before it "
            f"{cells[1]}."
        ) from error
    if has_header:
        frame.columns = [str(name).strip() for name in names.iloc[0]]
    else:
        frame.columns = [str(n + 1) for n in frame.columns]
    frame.index = pd.Index(numbers[has_header:], name="line")
    if form[1] == ",":  # of a column with a word, whose numbers are text
        for name in frame.select_dtypes(exclude="number"):
            frame[name] = frame[name].str.replace(",", ".")
    return frame


def _decode(content):
    if content[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return content.decode("utf-16")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("cp1252", "replace")


def _parse(lines, form, **options):
    return pd.read_csv(
        io.StringIO("\n".join(lines)),
        sep=form[0],
        decimal=form[1],
        header=None,
        skipinitialspace=True,
        float_precision="round_trip",
        na_values=["?"],
        low_memory=False,
        **options,
    )


def _shares(frame):
    """The share of numbers in each column, which may have a word as well."""
    columns = [pd.to_numeric(frame[of], errors="coerce") for of in frame]
    return np.array([of.notna().mean() for of in columns])


def _dialect(path, first, sample, separator, decimal):
    """Separator and decimal mark with which most is numbers, and the sample."""
    separator = r"\s+" if separator == " " else separator
    separators = (separator,) if separator else SEPARATORS
    lines = "\n".join([first, *sample])
    frames: dict = {}
    for form in itertools.product(separators, decimal or ".,"):
        mark = form[0] if form[0] == r"\s+" else re.escape(form[0])
        is_there = re.search(mark, sample[-1].strip()) is not None
        if form == (",", ","):
            is_there = '"' in lines
        if form[0] == "\x1f":
            is_there = not frames
        if not is_there:
            continue
        with contextlib.suppress(pd.errors.ParserError):
            frame = _parse(sample, form, on_bad_lines="skip")
            is_sure = form[0] != "\x1f" or _shares(frame)[0] > 0.5
            if is_sure and _parse([first], form).shape[1] == frame.shape[1]:
                frames[form] = frame
    if not frames:
        raise ValueError(
            f"{path}: its first line and the others have different numbers of "
            "cells; name the separator by --separator."
        )
    best = max(frames, key=lambda form: _shares(frames[form]).mean())
    is_given = separator or decimal
    if not is_given and re.fullmatch(r"([-+]?\d+,\d+\s*)+", lines):
        raise ValueError(
            f"{path}: the comma in {first!r} separates two cells or is a "
            "decimal mark: say --separator=, or --decimal=,"
        )
    return best, frames[best]


def _is_header(names, below):
    """Whether a word is above numbers, or numbers that pandas gives columns."""
    is_number = [pd.api.types.is_numeric_dtype(of) for of in names.dtypes]
    if not all(is_number):
        return bool(((_shares(below) > 0.5) & ~np.array(is_number)).any())
    named = names.iloc[0, int(names.iloc[0].isna()[0]) :].tolist()
    has_fractions = (below.dtypes == "float64").any()
    return bool(named == [*range(len(named))] and has_fractions)


def choose_channels(frames, time=None, channels=None):
    """The names of the channels, and of other columns with the reason.

    A column that can be meant in two ways is an error, which names the flags.
    """
    place, first = next(iter(frames.items()))
    for name in [*(channels or []), *([time] if time else [])]:
        if name not in first:
            names = ", ".join(first)
            raise ValueError(f"{place} has no column {name!r}: {names}.")
    if channels:
        left_out = {of: "no channel" for of in first if of not in channels}
        for name in channels:
            if first[name].dtype != "float64":
                raise ValueError(f"{place}: column {name!r} has no numbers.")
        return [*channels], left_out
    reasons = {
        name: "time" if name == time else _reason(name, frames)
        for name in first
    }
    channels = [name for name in first if not reasons[name]]
    if not channels:
        raise ValueError(f"{place} has no column of numbers to learn from.")
    return channels, {name: why for name, why in reasons.items() if why}


def _reason(name, frames):
    """Why a column is no channel, or `None`."""
    columns = [frame[name] for frame in frames.values()]
    if any(column.dtype != "float64" for column in columns):
        is_clock = CLOCK.fullmatch(name) or _are_dates(columns[0])
        return "time" if is_clock else "text"
    columns = [of[np.isfinite(of)].to_numpy() for of in columns]
    if not any(map(len, columns)):
        return "empty"
    steps = np.concatenate([*map(np.diff, columns)])
    steps = steps * (np.sign(np.nansum(steps)) or 1)
    is_monotone = len(steps) > 0 and min(steps) >= 0
    if is_monotone and (steps > 0).mean() > 0.5:
        if INDEX.fullmatch(name) or (steps == 1).all():
            return "index"
        if not CLOCK.fullmatch(name):
            _ask(name, frames, "goes one way in every recording")
    if CLOCK.fullmatch(name):
        if is_monotone:
            return "time"
        _ask(name, frames, "has the name of a clock and runs back")
    longer = [column for column in columns if len(column) > 1]
    if longer and not any(map(np.ptp, longer)):
        if np.ptp(np.concatenate(columns)) > 0:
            _ask(name, frames, "has one value in each recording")
    return None


def _are_dates(column):
    try:
        return pd.to_datetime(column.head(3), format="ISO8601").notna().all()
    except (TypeError, ValueError):
        return False


def _ask(name, frames, what):
    place, first = next(iter(frames.items()))
    others = [of for of in first if of != name and first[of].dtype == "float64"]
    raise ValueError(
        f'{place}: column "{name}" {what}: leave it out by --time={name}, or '
        f"name the channels, such as --channels={','.join(others)}"
    )
