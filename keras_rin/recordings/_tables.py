"""A table whose columns are numbers, text or a time, as a person said."""

import csv
import typing

import numpy as np
import pandas as pd

FILE, FOLDER = "file", "folder"  # columns of what is no table of one file
UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
# Numbers since 1970 have 10 digits in seconds, 13 in milliseconds and so on.
EPOCHS = {0: "s", 1e11: "ms", 1e14: "us", 1e17: "ns"}


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
        if path.lower().endswith(".csv"):
            place = f"row {label + 1} (line {self._line(path, label + 1)})"
        return ValueError(f'{path}, {place}, column "{column}": {problem}')

    def _line(self, path, row):
        with open(path, newline="", encoding="utf-8") as file:
            reader = csv.reader(file, delimiter=self.separator)
            lines = [reader.line_num for cells in reader if cells]
        return lines[row]

    def check(self, names):
        """Refuses names that no column has, or several."""
        columns = [*self.frame.columns]
        for name in names:
            if columns.count(name) != 1:
                number = "two columns" if name in columns else "no column"
                listed = ", ".join(map(str, columns))
                raise ValueError(
                    f"{self.source} has {number} {name!r}: {listed}"
                )

    def codes(self, name):
        """The number of the text in each row, and the texts in order."""
        texts = self.frame[name].astype(str)
        is_missing = (self.frame[name].isna() | (texts == "")).to_numpy()
        if is_missing.any():
            raise self.error(is_missing.argmax(), name, "no value")
        numbers, names = pd.factorize(texts, sort=True)
        return numbers, names.tolist()

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
            if kind in "iu":
                is_wrong |= abs(x[:, number]) > 2**53
            if is_wrong.any():
                row = int(is_wrong.argmax())
                problem = f"{column.iloc[row]!r} is no finite number"
                raise self.error(row, name, problem)
        return x

    def clock(self, name):
        """The time in each row, and its unit in seconds."""
        name, _, unit = name.partition(":")
        column = self.frame[name]
        if pd.api.types.is_numeric_dtype(column):
            self.numbers([name])
            size = abs(column).max()
            epoch = [EPOCHS[least] for least in EPOCHS if size >= least][-1]
            return column.to_numpy(), UNITS[unit or epoch]
        times = pd.to_datetime(
            column, format="ISO8601", errors="coerce", utc=True
        )
        if times.isna().any():
            row = int(times.isna().to_numpy().argmax())
            problem = f"{column.iloc[row]!r} is no time in ISO 8601"
            raise self.error(row, name, problem)
        return times.dt.as_unit("ns").astype("int64").to_numpy(), 1e-9
