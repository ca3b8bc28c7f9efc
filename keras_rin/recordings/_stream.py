"""What follows an endless stream, from a log with a label in each row."""

import functools
import pathlib
import tempfile
import typing

import numpy as np
import pandas as pd

from keras_rin.recordings import _baselines
from keras_rin.recordings import _headers
from keras_rin.recordings import _report
from keras_rin.recordings import _scores
from keras_rin.recordings import _stream_networks
from keras_rin.recordings._read import recordings_of
from keras_rin.recordings._search import Candidate
from keras_rin.recordings._search import Search
from keras_rin.recordings._split import parts_of
from keras_rin.recordings._store import Store

UPDATES, LONGER = 600, 4  # of a trial, and times as many of the best network
TRAINING = 0.8  # of the minutes; the rest is for headers and tests
LOSS = 0.01  # of accuracy on the validation, that a smaller form may cost


def train_stream(
    data: typing.Any,
    *,
    join: bool = False,
    window: int = 128,
    flash: int = 4096,
    device: str = "m0plus",
    layer: str | None = None,
    minutes: float = 5.0,
    updates: int | None = None,
    seeds: int = 3,
    seed: int = 0,
    output: str = "runs/stream",
    **columns: typing.Any,
) -> _report.Result:
    """Trains what follows an endless stream, and writes it in C.

    A MinGRU, a GRU and a RIN, as large as `flash` permits, are trained on
    joined windows with a loss at every step. The best on the validation is
    trained longer and tested. A regression on the last rows is what `rin.h` is
    where it is better on the validation.

    Args:
        data: A log: `Recordings`, or what `read` takes.
        join: Boolean, whether the data are recordings of one class each, to be
            joined. Defaults to `False`.
        window: Integer, rows of a window; two are joined to train on. Defaults
            to 128.
        flash: Integer, bytes of flash of the device. Defaults to 4096.
        device: String, `"uno"`, `"m0plus"` or `"m4f"`. Defaults to `"m0plus"`.
        layer: String, `"MinGRU"`, `"GRU"` or `"RIN"`, of which `rin.h` is made
            in any case. Defaults to `None`.
        minutes: Float, minutes for training, headers and tests. Defaults to
            5.0.
        updates: Integer, updates of a trial, of which all are made whatever
            they take. Defaults to `None`: 600, in `minutes`.
        seeds: Integer, trainings of the best network. Defaults to 3.
        seed: Integer, the first seed. Defaults to 0.
        output: Folder to write to. Defaults to `"runs/stream"`.
        **columns: Those of `read`, such as `channels` and `label`.

    Returns:
        `Result`, which prints what was tried and tested.

    Raises:
        ValueError: Nothing fits into the flash, or what `read` raises.
    """
    data = recordings_of(data, columns)
    parts = parts_of(data, True, join)
    folder = pathlib.Path(output)
    with Store(output, data, join, window) as store:
        _report.draw_data(data, folder / "data.png")
        stream = _Stream(parts, window, device, flash)
        count = updates or UPDATES
        search = Search(
            stream.candidates([layer] if layer else _stream_networks.LAYERS),
            store,
            lambda answers: np.mean(answers == stream.y[1]),
            range(seed, seed + seeds),
            (count, LONGER * count),
            None if updates else 60 * minutes * TRAINING,
        )
        search.run()
        return stream.result(search, layer, folder)


class Follower(typing.NamedTuple):
    """What may follow the stream: its answers, and how it is written in C."""

    name: str
    validated: np.ndarray  # answers without hold
    tested: list  # answers of each seed
    hold: int
    writers: dict  # of each form of `rin.h`, into a folder

    def forms(self):
        return [(self, form) for form in self.writers]

    def held(self):
        """Answers to the test of each seed."""
        return [_scores.held(answers, self.hold) for answers in self.tested]


class Header(typing.NamedTuple):
    """A header that was measured, and what it answered where it was run."""

    follower: Follower
    write: typing.Callable
    row: dict
    answers: list  # to validation and test


class _Stream:
    """Parts of a log, and what is made of them."""

    def __init__(self, parts, window, device, flash):
        self.parts, self.device, self.flash = parts, device, flash
        self.y = [np.concatenate(part.y) for part in parts]
        self.windows = _stream_networks.Windows(parts, window)
        self.counts = _headers.Counts.fitted([*parts[0].x, *parts[1].x])
        self.x = [self.counts.of(part.x) for part in parts]
        self.sizes = sorted({max(2, window // 2**n) for n in range(4)})

    def candidates(self, layers):
        """Each layer, as large as the flash permits where that is measured."""
        candidates, least = [], []
        for layer in layers:
            _, sizes, rates = _stream_networks.LAYERS[layer]
            for units in sizes:
                classes = len(self.parts[0].classes)
                arguments = layer, units, self.windows, classes
                build = functools.partial(_stream_networks.Network, *arguments)
                with tempfile.TemporaryDirectory() as folder:
                    self._writer(build().model, "integers")(folder)
                    cost = _headers.cost(folder, self.device)
                least.append(cost.flash or 0)
                if least[-1] <= self.flash:
                    name = f"{layer}({units})"
                    candidates.append(Candidate("network", name, build, rates))
                    break
        if not candidates:
            raise ValueError(
                f"No network takes at most {self.flash} bytes of flash: "
                f"--flash={min(least)}"
            )
        return candidates

    def _writer(self, model, form):
        scale = self.windows.normalization
        counts = np.concatenate(self.x[:2])
        arguments = model, scale, self.counts, counts, form
        return functools.partial(_headers.write_network, *arguments)

    def network(self, search):
        """The best network, with the final trainings that did not diverge."""
        best = search.best("network")
        finals = search.tested("network")
        finals = [
            training
            for training in finals
            if np.isfinite(training.outputs).all()
        ]
        if not finals:
            raise ValueError("Every training diverged: try another --seed.")
        self.loaded = search.loaded(finals[0])
        return Follower(
            best.candidate.name,
            best.outputs,
            [training.outputs for training in finals],
            _scores.choose_hold(best.outputs, self.y[1]),
            {
                form: self._writer(self.loaded.model, form)
                for form in _headers.FORMS
            },
        )

    def regression(self):
        """The regression with the window that the validation chooses."""
        answers = {
            size: _baselines.window_answers(
                self.x[:1], self.y[:1], self.x[1], size
            )[1]
            for size in self.sizes
        }
        size = max(
            answers, key=lambda size: np.mean(answers[size] == self.y[1])
        )
        learned = self.x[:2], self.y[:2], self.x[2]
        model, tested = _baselines.window_answers(*learned, size)
        write = functools.partial(_headers.write_regression, model, size)
        hold = _scores.choose_hold(answers[size], self.y[1])
        name = f"regression on {size} rows"
        return Follower(
            name, answers[size], [tested], hold, {"integers": write}
        )

    def validated(self, follower):
        """The accuracy of held answers on the validation."""
        answers = _scores.held(follower.validated, follower.hold)
        return np.mean(answers == self.y[1])

    def header(self, follower, form):
        """A header that is compiled, run and measured where possible."""

        def write(folder):
            follower.writers[form](folder)
            _headers.finish(folder, self.parts[0], self.counts, follower.hold)

        row = {"name": f"rin.h, {follower.name}, {form}"}
        answers, rate = [], self.parts[0].rate
        with tempfile.TemporaryDirectory() as folder:
            write(folder)
            if _headers.can_compile():
                answers = [
                    _headers.answers(folder, part) for part in self.parts[1:]
                ]
                row |= _scores.stream_scores(answers[1], self.y[2], rate)
            cost = _headers.cost(folder, self.device)
        cycles = cost.per_step
        row |= {"flash": cost.flash, "RAM": cost.ram}
        busy = cycles and rate and cycles * rate / (1e6 * cost.megahertz)
        return Header(
            follower, write, row | {"cycles": cycles, "busy": busy}, answers
        )

    def fitting(self, headers):
        """The first header that fits and is as accurate as others that fit."""
        fit = [
            header
            for header in headers
            if (header.row["flash"] or 0) <= self.flash
        ]
        fit = fit or headers[:1]
        if not fit[0].answers:
            return fit[0]
        accuracies = np.array(
            [np.mean(header.answers[0] == self.y[1]) for header in fit]
        )
        return fit[int(np.argmax(accuracies >= max(accuracies) - LOSS))]

    def result(self, search, layer, folder):
        """What was found, and its folder."""
        followers = [self.network(search), self.regression()]
        chosen = followers[0] if layer else max(followers, key=self.validated)
        headers = [
            self.header(*form)
            for follower in followers
            for form in follower.forms()
        ]
        header = self.fitting(
            [header for header in headers if header.follower is chosen]
        )
        header.write(folder)
        test, y = self.parts[2], self.y[2]
        answers = header.answers[1] if header.answers else chosen.held()[0]
        scores = {
            follower.name: [
                _scores.unit_scores(held, test) for held in follower.held()
            ]
            for follower in followers
        }
        units = "stretches" if test.groups is None else "groups"
        compared = *scores, scores, units, search.missing()
        result = _report.Result(
            pd.DataFrame(
                [*self._rows(followers), *(header.row for header in headers)]
            ),
            pd.DataFrame(search.table()),
            _scores.verdict("network", *compared),
            self.loaded.raw_model,
            answers.astype(int),
            pd.DataFrame(_scores.recalls(answers, test)),
            self._lines(header),
            str(folder),
        )
        _report.draw_answers(test.classes, y, answers, folder / "stream.png")
        _report.write(result, self.parts, "stream.png")
        return result

    def _rows(self, followers):
        """Rows of a table: the truth, a constant, and each training."""
        y, rate = self.y[2], self.parts[2].rate
        most = np.bincount(np.concatenate(self.y[:2])).argmax()
        named = {"the truth": y, "most frequent class": np.full(len(y), most)}
        for follower in followers:
            for n, answers in enumerate(follower.tested):
                for hold in (1, follower.hold):
                    name = f"{follower.name}, training {n + 1}, hold {hold}"
                    named[name] = _scores.held(answers, hold)
        return [
            {"name": name} | _scores.stream_scores(answers, y, rate)
            for name, answers in named.items()
        ]

    def _lines(self, header):
        """What an engineer has to know of the header."""
        row, hold = header.row, header.follower.hold
        texts = {
            "flash": "{:,} bytes",
            "RAM": "{:,} bytes",
            "cycles": "{:,} a step",
        }
        texts["busy"] = "{:.2%} of the time"
        costs = [
            f"{name} {text.format(row[name]) if row[name] else 'not measured'}"
            for name, text in texts.items()
        ]
        run = "not run, without a C compiler"
        if header.answers:
            run = f"compiled and run, {row['accuracy']:.4f} on the test"
        return [
            f"{row['name']}: {run}.",
            f"An answer is given after {hold} equal ones.",
            f"On {self.device}: {', '.join(costs)}.",
        ]
