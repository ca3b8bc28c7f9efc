"""Recordings with a class or a number each, or a class in each row."""

import typing
from collections.abc import Sequence

import numpy as np


class MissingArguments(ValueError):
    """What only a person can say is asked for, with a proposal to copy.

    Args:
        question: String, what is asked for.
        data: String, what is read.
        arguments: Dict, a proposal of arguments of `read`.
    """

    def __init__(self, question: str, data: str, arguments: dict) -> None:
        super().__init__(question, data, arguments)
        self.question, self.data = question, data
        self.arguments = arguments

    def __str__(self) -> str:
        items = (f", {key}={value!r}" for key, value in self.arguments.items())
        return f"{self.question}\n  read({self.data!r}{''.join(items)})"


class Recordings(typing.NamedTuple):
    """Recordings with their labels, which prints what was read.

    A log has a label in each row: its recordings are the stretches of rows that
    belong together.

    Attributes:
        x: List of arrays `(steps, channels)` in float64.
        y: Array `(recordings,)`, the number of the class or the target; of a
            log a list of arrays `(steps,)`.
        classes: List of strings, the names of the classes in order; empty if
            `y` are targets.
        channels: List of strings, the names of the channels.
        names: List of strings, where each recording is from.
        groups: Array `(recordings,)` of strings, or `None`.
        rate: Float, rows in a second, or `None` without a time.
        source: String, what was read.
        notes: List of strings, such as what was left out.
        text: Pair of strings, separator and decimal mark of the table.
    """

    x: list
    y: typing.Any
    classes: list
    channels: list
    names: list
    groups: np.ndarray | None = None
    rate: float | None = None
    source: str = "The arrays"
    notes: Sequence[str] = ()
    text: tuple[str, str] = (",", ".")

    @property
    def is_log(self) -> bool:
        """Whether each row has a label."""
        return isinstance(self.y, list)

    def take(self, rows: Sequence[int]) -> "Recordings":
        """Some of the recordings, in this order."""
        is_log, groups = self.is_log, self.groups
        return self._replace(
            x=[self.x[row] for row in rows],
            y=[self.y[row] for row in rows] if is_log else self.y[rows],
            names=[self.names[row] for row in rows],
            groups=None if groups is None else groups[rows],
        )

    def rows(self) -> tuple[np.ndarray, np.ndarray]:
        """x `(rows, channels)` and y `(rows,)` of a log, joined."""
        return np.concatenate(self.x), np.concatenate(self.y)

    def __repr__(self) -> str:
        lengths = [len(x) for x in self.x]
        kind = "stretches" if self.is_log else "recordings"
        lines = [
            f"{self.source}: {len(lengths):,} {kind} of {min(lengths):,} to "
            f"{max(lengths):,} steps, {sum(lengths):,} in all"
            + (f", {self.rate:.4g} a second." if self.rate else "."),
            f"Channels: {', '.join(self.channels)}.",
        ]
        y = np.concatenate(self.y) if self.is_log else self.y
        if self.classes:
            counts = np.bincount(y, minlength=len(self.classes))
            items = zip(self.classes, counts, strict=True)
            texts = (f"{name} ({count:,})" for name, count in items)
            lines.append(f"Classes: {', '.join(texts)}.")
        else:
            lines.append(f"Targets: {y.min():g} to {y.max():g}.")
        if self.groups is not None:
            lines.append(f"Groups: {', '.join(sorted({*self.groups}))}.")
        return "\n".join([*lines, *self.notes])


def joined(recordings: Recordings) -> Recordings:
    """A log of recordings of one class each, in random order."""
    rng = np.random.default_rng(0)
    log = recordings.take(rng.permutation(len(recordings.x)).tolist())
    steps = [
        np.full(len(x), label) for x, label in zip(log.x, log.y, strict=True)
    ]
    return log._replace(y=steps)
