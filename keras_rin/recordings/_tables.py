"""A table whose columns are numbers, text or a time, as a person said."""

import csv
import typing

import numpy as np
import pandas as pd

FILE, FOLDER = "file", "folder"  # columns of a folder of tables
UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
# Numbers since 1970 have 10 digits in seconds, 13 in milliseconds and so on.
EPOCHS = {0: "s", 1e11: "ms", 1e14: "us", 1e17: "ns"}


def split_unit(name):
    """The column of the time and its unit, which may stand behind it."""
    column, _, unit = name.rpartition(":")
    return (column, unit) if unit in UNITS else (name, None)


class Table(typing.NamedTuple):
    """A data frame, what it was read from, and how its text was read."""

    frame: pd.DataFrame
    source: str
    separator: str = ","
    decimal: str = "."

    def error(self, row, column, problem):
        """The error of a cell, which says where it is."""
        path, label = self.source, self.frame.index[row]
        if FILE in self.frame:
            path = str(self.frame[FILE].iloc[row])
        place = f"row {label}"
        if isinstance(label, tuple):
            place = "{} {}".format(*label)
        elif path.lower().endswith(".csv"):
            with open(path, newline="", encoding="utf-8") as file:
                reader = csv.reader(file, delimiter=self.separator)
                lines = [reader.line_num for cells in reader if cells]
            place = f"row {label + 1} (line {lines[label + 1]})"
        return ValueError(f'{path}, {place}, column "{column}": {problem}')

    def check(self, names):
        """Refuses names that no column has, or several."""
        columns = [*self.frame.columns]
        for name in names:
            if columns.count(name) != 1:
                number = "two columns" if name in columns else "no column"
                listed = ", ".join(map(str, columns))
                text = f"{self.source} has {number} {name!r}: {listed}"
                raise ValueError(text)

    def codes(self, name):
        """The number of the text in each row, and the texts in order."""
        places, values = pd.factorize(self.frame[name])
        numbers, names = pd.factorize(values.astype(str), sort=True)
        is_missing = np.append(values == "", True)[places]  # the place -1
        if is_missing.any():
            raise self.error(int(is_missing.argmax()), name, "no value")
        return numbers.astype("int32")[places], names.tolist()

    def numbers(self, names):
        """Values `(rows, names)` in float64, all of them finite."""
        x = np.empty((len(self.frame), len(names)))
        for number, name in enumerate(names):
            column = self.frame[name]
            kind = getattr(column.dtype, "kind", "O")
            if kind in "iuf":
                x[:, number] = column.to_numpy("float64", na_value=np.nan)
            else:
                texts = column.astype(str).str.replace(self.decimal, ".")
                x[:, number] = pd.to_numeric(texts, errors="coerce")
            is_wrong = ~np.isfinite(x[:, number])
            if is_wrong.any():
                row = int(is_wrong.argmax())
                problem = f'"{column.iloc[row]}" is no finite number'
                raise self.error(row, name, problem)
        return x

    def clock(self, name):
        """Seconds since the first row, of each row."""
        name, unit = split_unit(name)
        column = self.frame[name]
        if pd.api.types.is_numeric_dtype(column):
            times = self.numbers([name])[:, 0]
            size = abs(times).max()
            epoch = [EPOCHS[least] for least in EPOCHS if size >= least][-1]
            return (times - times[0]) * UNITS[unit or epoch]
        times = pd.to_datetime(
            column, format="ISO8601", errors="coerce", utc=True
        )
        if times.isna().any():
            row = int(times.isna().to_numpy().argmax())
            problem = f'"{column.iloc[row]}" is no time in ISO 8601'
            raise self.error(row, name, problem)
        return (times - times.iloc[0]).dt.total_seconds().to_numpy()
