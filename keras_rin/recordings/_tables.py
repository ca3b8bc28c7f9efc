"""One table of a file: its separator, its header, and which columns count."""

import csv
import io
import itertools
import pathlib
import re
import typing

import numpy as np
import pandas as pd

ENDINGS = ".csv", ".tsv", ".txt", ".parquet"
CLOCK = re.compile(
    r"(.*[^a-z])?(time|(time|date)?[_ ]?stamp|date|datetime|clock|epoch|uptime"
    r"|elapsed|seconds|millis|milliseconds)([^a-z].*)?|t|ts|s|sec|ms|us|ns",
    re.I,
)
INDEX = re.compile(
    r"(unnamed.*|index|idx|row|step|sample|frame|no\.?|nr\.?|)", re.I
)
NUMBER = {".": r"[-+]?(\d+\.?\d*|\.\d+)", ",": r"[-+]?(\d+,?\d*|,\d+)"}
EXPONENT = r"(e[-+]?\d+)?|[-+]?(nan|inf(inity)?)|"


class Table(typing.NamedTuple):
    """A frame, and where its rows are in its file.

    Attributes:
        frame: DataFrame, whose columns are of numbers in float64 or of text.
        place: String, the file.
        lines: The line of each row in the file, or its number in a frame.
    """

    frame: pd.DataFrame
    place: str
    lines: typing.Sequence[int]

    def at(self, row, column):
        line = "line" if isinstance(self.lines, list) else "row"
        return f'{self.place}, {line} {self.lines[row]}, column "{column}"'


def read_table(source, separator=None, decimal=None) -> Table:
    """The table of a CSV or Parquet file, or of a DataFrame."""
    if isinstance(source, pd.DataFrame):
        frame, place = source.reset_index(drop=True), "the frame"
        return _numeric(Table(frame, place, range(len(frame))))
    path = pathlib.Path(source)
    if path.suffix.lower() == ".parquet":
        frame = pd.read_parquet(path).reset_index(drop=True)
        return _numeric(Table(frame, str(path), range(len(frame))))
    return _read_csv(path, separator, decimal)


def _read_csv(path, separator, decimal):
    text = enumerate(_decode(path.read_bytes()).splitlines(), 1)
    rows = [(n, line) for n, line in text if line.strip(" \t,;|\x00")]
    rows = list(itertools.dropwhile(lambda row: row[1][0] in "#%", rows))
    if not rows:
        raise ValueError(f"{path} is empty.")
    numbers, lines = zip(*rows, strict=True)
    sample = [lines[0], *lines[1 : -1 : max(1, len(lines) // 40)][:60]]
    sample += lines[-1:] if len(lines) > 1 else ()
    separator, decimal = _dialect(sample, separator, decimal, path)
    first, *body = _cells(sample, separator)
    has_header = _is_header(first, body, decimal)
    names = list(map(str.strip, first)) if has_header else None
    names = names or [str(n + 1) for n in range(len(first))]
    if len(set(names)) < len(names):
        raise ValueError(f"{path} has two columns of one name: {names}.")
    for number, cells in zip(numbers, _cells(lines, separator), strict=True):
        if len(cells) != len(first):
            raise ValueError(
                f"{path}, line {number} has {len(cells)} cells, and line "
                f"{numbers[0]} has {len(first)}."
            )
    try:
        frame = pd.read_csv(
            io.StringIO("\n".join(lines[has_header:])),
            sep=r"\s+" if separator == " " else separator or "\x1f",
            decimal=decimal,
            header=None,
            names=names,
            index_col=False,
            skipinitialspace=True,
            float_precision="round_trip",
            na_values=["?"],
            low_memory=False,
        )
    except (ValueError, pd.errors.ParserError) as error:
        raise ValueError(f"{path}: {error}".strip()) from error
    return _numeric(Table(frame, str(path), list(numbers[has_header:])))


def _decode(content):
    if content[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return content.decode("utf-16")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("cp1252", "replace")


def _cells(lines, separator):
    if separator == " ":
        return [line.split() for line in lines]
    if separator is None:
        return [[line.strip().strip('"')] for line in lines]
    options = {"delimiter": separator, "skipinitialspace": True}
    return list(csv.reader(lines, **options))


def _is_number(cell, decimal):
    pattern = f"({NUMBER[decimal]}){EXPONENT}"
    return bool(re.fullmatch(pattern, cell.strip(), re.I))


def _dialect(lines, separator, decimal, path):
    """Separator and decimal mark, with which most cells are numbers."""
    separators = [separator] if separator else [*";\t|, ", None]
    shares = {}
    for mark, point in itertools.product(separators, decimal or ".,"):
        is_quoted = '"' in lines[-1]  # as decimal commas between commas are
        clashes = mark == point and not is_quoted
        if clashes or (mark and mark not in lines[-1]):
            continue
        first, *body = _cells(lines, mark)
        fits = [of for of in body if len(of) == len(first)]
        if len(fits) > len(body) / 2 or not body:
            cells = list(itertools.chain(*(fits or [first])))
            share = np.mean([_is_number(cell, point) for cell in cells])
            shares[mark, point] = share
    if not shares:
        names = "its first line and the others have different numbers of cells"
        raise ValueError(f"{path}: {names}; name the separator by --separator.")
    best = max(shares.values())
    ties = [of for of, share in shares.items() if share == best]
    if best and {(",", "."), (None, ",")} <= {*ties}:
        raise ValueError(
            f"{path}: the comma in {lines[-1]!r} separates two cells or is a "
            "decimal mark: say --separator=, or --decimal=,"
        )
    return ties[0]


def _is_header(first, body, decimal):
    numbers = [_is_number(cell, decimal) for cell in first]
    if not all(numbers):
        below = zip(*body, strict=True) if body else [("",)] * len(first)
        return any(
            cell.strip() and not number and _are_numbers(column, decimal)
            for cell, number, column in zip(first, numbers, below, strict=True)
        )
    # pandas numbers columns without names: 0, 1, 2, below the index or not.
    named = first[not first[0].strip() :]
    is_count = named == [str(n) for n in range(len(named))]
    return is_count and any("." in cell for row in body for cell in row)


def _are_numbers(cells, decimal):
    return np.mean([_is_number(cell, decimal) for cell in cells]) > 0.5


def _numeric(table):
    """Columns of numbers in float64; a word among numbers is an error."""
    frame = table.frame.rename(columns=str)
    for name in frame.columns:
        column = frame[name]
        if pd.api.types.is_numeric_dtype(column):
            frame[name] = column.astype("float64")
        elif not pd.api.types.is_datetime64_any_dtype(column):
            numbers = pd.to_numeric(column, errors="coerce")
            wrong = numbers.isna() & column.notna()
            if numbers.notna().sum() > wrong.sum():
                row = int(np.argmax(wrong))
                if wrong.any():
                    raise ValueError(
                        f"{table.at(row, name)}: {column[row]!r} is no number."
                    )
            if not wrong.any():
                frame[name] = numbers.astype("float64")
    return table._replace(frame=frame)


def is_text(column):
    return column.dtype != "float64"


def is_monotone(columns, share=0.0):
    """Whether values go one way in every recording, at a share of the steps."""
    steps = np.concatenate([np.diff(of[np.isfinite(of)]) for of in columns])
    steps = np.sign(steps) * (np.sign(steps.sum()) or 1)
    return len(steps) > 0 and min(steps) >= 0 and (steps > 0).mean() > share


def _counts(columns):
    return all((np.diff(of) == 1).all() for of in columns)


def left_out(frames, place, time=None, channels=None) -> dict:
    """The columns that are no channels, each with the reason.

    A column that can be meant in two ways is an error, which names the flags.
    """
    names = [*frames[0].columns]
    for name in [*(channels or []), *([time] if time else [])]:
        if name not in names:
            raise ValueError(
                f"{place} has no column {name!r}: {', '.join(names)}."
            )
    if channels:
        for name in channels:
            if is_text(frames[0][name]):
                raise ValueError(f"{place}: column {name!r} has no numbers.")
        return {name: "no channel" for name in names if name not in channels}
    reasons = {name: _reason(frames, name, place, time) for name in names}
    return {name: reason for name, reason in reasons.items() if reason}


def _reason(frames, name, place, time):
    if name == time:
        return "time"
    if any(is_text(frame[name]) for frame in frames):
        is_clock = CLOCK.fullmatch(name) or _is_date(frames[0][name])
        return "time" if is_clock else "text"
    columns = [frame[name].to_numpy() for frame in frames]
    every = np.concatenate(columns)
    if np.isnan(every).all():
        return "empty"
    if is_monotone(columns, 0.5):
        if _counts(columns) or INDEX.fullmatch(name):
            return "index"
        if not CLOCK.fullmatch(name):
            _ask(frames, name, place, "goes one way in every recording")
    if CLOCK.fullmatch(name):
        if is_monotone(columns):
            return "time"
        _ask(frames, name, place, "has the name of a clock and runs back")
    longer = [of for of in columns if len(of) > 1]
    constant = longer and all(np.ptp(of) == 0 for of in longer)
    if constant and len(frames) > 1 and np.ptp(every) > 0:
        _ask(frames, name, place, "has one value in each recording")
    return None


def _is_date(column):
    try:
        return pd.to_datetime(column.head(3), format="ISO8601").notna().all()
    except (TypeError, ValueError):
        return False


def _ask(frames, name, place, what):
    others = ",".join(
        column
        for column in frames[0].columns
        if column != name and not is_text(frames[0][column])
    )
    raise ValueError(
        f'{place}: column "{name}" {what}: leave it out by --time={name}, or '
        f"name the channels, such as --channels={others}"
    )
