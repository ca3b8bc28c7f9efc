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
from keras_rin.recordings._forms import said_of
from keras_rin.recordings._networks import STREAM_LAYERS
from keras_rin.recordings._networks import StreamNetwork
from keras_rin.recordings._networks import Windows
from keras_rin.recordings._read import load
from keras_rin.recordings._recordings import Recordings
from keras_rin.recordings._scores import choose_hold
from keras_rin.recordings._scores import held
from keras_rin.recordings._scores import recalls
from keras_rin.recordings._scores import stream_scores
from keras_rin.recordings._scores import unit_scores
from keras_rin.recordings._scores import verdict
from keras_rin.recordings._search import Candidate
from keras_rin.recordings._search import Search
from keras_rin.recordings._split import described
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
        minutes: Float, minutes for training, headers and tests. Defaults to 5.0.
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
    if not isinstance(data, Recordings):
        data = load(data, said_of(**columns))
    parts = parts_of(data, True, join)
    print(f"{data}\n{described(parts)}", flush=True)
    store = Store(output, *data.content(), join, window)
    folder = pathlib.Path(output)
    _report.draw_data(data, folder / "data.png")
    job = Job(parts, window, device)
    count = updates or UPDATES
    try:
        search = Search(
            job.candidates(flash, [layer] if layer else [*STREAM_LAYERS]),
            store,
            lambda answers: np.mean(answers == job.y[1]),
            range(seed, seed + seeds),
            (count, LONGER * count),
            None if updates else 60 * minutes * TRAINING,
        )
        search.run()
        return job.result(search, flash, layer, data, folder)
    finally:
        store.close()


class Follower(typing.NamedTuple):
    """What may follow the stream: how its header is written, and its hold."""

    name: str
    form: str
    write: typing.Callable
    hold: int


class Job:
    """Parts of a log, and what is made of them in C."""

    def __init__(self, parts, window, device):
        self.parts, self.device = parts, device
        self.y = [np.concatenate(part.y) for part in parts]
        self.windows = Windows(parts, window)
        self.learned = np.concatenate([part.rows()[0] for part in parts[:2]])
        self.counts = _headers.Counts.fitted(self.learned)
        self.sizes = sorted({max(2, window // 2**n) for n in range(4)})

    def candidates(self, flash, layers):
        """Each layer, as large as the flash permits where that is measured."""
        candidates, least = [], []
        for layer in layers:
            _, sizes, rates = STREAM_LAYERS[layer]
            for units in sizes:
                classes = len(self.parts[0].classes)
                arguments = layer, units, self.windows, classes
                build = functools.partial(StreamNetwork, *arguments)
                with tempfile.TemporaryDirectory() as folder:
                    self._network(build().model, "integers")(folder)
                    cost = _headers.cost(folder, self.device)
                least.append(cost.flash if cost else 0)
                if least[-1] <= flash:
                    name = f"{layer}({units})"
                    candidates.append(Candidate("network", name, build, rates))
                    break
        if not candidates:
            raise ValueError(
                f"No network takes at most {flash} bytes of flash; the smallest "
                f"takes {min(least)}: --flash={min(least)}"
            )
        return candidates

    def _network(self, model, form):
        scale = self.windows.normalization
        arguments = model, scale, self.counts, self.learned, form
        return functools.partial(_headers.write_network, *arguments)

    def regression(self):
        """The regression with the window that the validation chooses."""
        x = [self.counts.of(part.rows()[0]) for part in self.parts]
        answers = {}
        for size in self.sizes:
            model = _baselines.window_regression(x[0], self.y[0], size)
            answers[size] = model.predict(
                _baselines.window_features(x[1], size)
            )
        size = max(
            answers, key=lambda size: np.mean(answers[size] == self.y[1])
        )
        y = np.concatenate(self.y[:2])
        model = _baselines.window_regression(np.concatenate(x[:2]), y, size)
        tested = model.predict(_baselines.window_features(x[2], size))
        write = functools.partial(_headers.write_regression, model, size)
        return f"regression on {size} rows", answers[size], tested, write

    def measured(self, follower, folder):
        """The row of a header, and its answers to validation and test."""
        follower.write(folder)
        _headers.finish(folder, self.parts[0], self.counts, follower.hold)
        row = {"name": f"rin.h, {follower.name}, {follower.form}"}
        answers: list = [None, None]
        if _headers.can_compile():
            answers = [
                _headers.answers(folder, part) for part in self.parts[1:]
            ]
            row |= stream_scores(answers[1], self.y[2], self.parts[0].rate)
        cost = _headers.cost(folder, self.device)
        return row | _cost_cells(cost, self.parts[0].rate), answers

    def fitting(self, headers, flash):
        """The first header that fits, and is as accurate as the best of them."""
        fit = [
            of for of in headers if (of[1]["flash"] or 0) <= flash
        ] or headers[:1]
        if not _headers.can_compile():
            return fit[0]
        accuracies = [np.mean(answers[0] == self.y[1]) for *_, answers in fit]
        return fit[
            int(np.argmax(np.array(accuracies) >= max(accuracies) - LOSS))
        ]

    def result(self, search, flash, layer, data, folder):
        """What the trainings show, and the folder of it."""
        best, y, rate = search.best("network"), self.y[2], data.rate
        finals = [
            of
            for of in search.tested("network")
            if np.isfinite(of.outputs).all()
        ]
        if not finals:
            raise ValueError("Every training diverged: try another --seed.")
        network, (regression, validated, tested, write) = (
            best.candidate.name,
            self.regression(),
        )
        holds = (
            choose_hold(best.outputs, self.y[1]),
            choose_hold(validated, self.y[1]),
        )
        loaded = search.loaded(finals[0])
        followers = [
            Follower(network, form, self._network(loaded.model, form), holds[0])
            for form in _headers.FORMS
        ] + [Follower(regression, "integers", write, holds[1])]
        headers = []
        for follower in followers:
            with tempfile.TemporaryDirectory() as temporary:
                headers.append((follower, *self.measured(follower, temporary)))
        scores = [
            np.mean(held(answers, hold) == self.y[1])
            for answers, hold in zip(
                (best.outputs, validated), holds, strict=True
            )
        ]
        is_network = bool(layer) or scores[0] > scores[1]
        chosen = headers[-1]
        if is_network:
            chosen = self.fitting(headers[:-1], flash)
        follower, row, (_, answers) = chosen
        follower.write(folder)
        _headers.finish(folder, data, self.counts, follower.hold)
        given = {network: [held(of.outputs, holds[0]) for of in finals]}
        given[regression] = [held(tested, holds[1])]
        most = np.full(len(y), np.bincount(np.concatenate(self.y[:2])).argmax())
        named = [("the truth", y), ("most frequent class", most)]
        named += [(f"{regression}, without hold", tested)]
        named += [(f"{regression}, hold {holds[1]}", given[regression][0])]
        for n, of in enumerate(finals):
            named.append(
                (f"{network}, seed {search.seeds[n]}, without hold", of.outputs)
            )
            named.append(
                (
                    f"{network}, seed {search.seeds[n]}, hold {holds[0]}",
                    given[network][n],
                )
            )
        table = [
            {"name": name} | stream_scores(of, y, rate) for name, of in named
        ]
        table += [row for _, row, _ in headers]
        if answers is None:
            answers = given[network if is_network else regression][0].astype(
                int
            )
        units = "stretches" if data.groups is None else "groups"
        shares = {
            name: [unit_scores(of, self.parts[2]) for of in runs]
            for name, runs in given.items()
        }
        compared = network, regression, shares, units, search.missing()
        text = f"rin.h is {follower.name}, {follower.form}: "
        text += "better on the validation" if not layer else "as asked for"
        result = _report.Result(
            pd.DataFrame(table),
            pd.DataFrame(search.table()),
            verdict("network", *compared),
            loaded.raw_model,
            answers,
            pd.DataFrame(recalls(answers, self.parts[2])),
            [f"{text}; an answer is given after {follower.hold} equal ones."]
            + _cost_lines(row, self.device, rate),
            str(folder),
        )
        _report.draw_answers(data.classes, y, answers, folder / "stream.png")
        matrix = _report.confusion(data.classes, y, answers)
        _report.write(result, data, ["![Answers](stream.png)", matrix])
        return result


def _cost_cells(cost, rate):
    """Cells of a table; None stands for what was not measured."""
    row = {"flash": cost and cost.flash, "RAM": cost and cost.ram}
    cycles = cost and cost.per_step
    busy = cycles and rate and cycles * rate / (1e6 * cost.megahertz)
    return row | {"cycles": cycles, "busy": busy}


def _cost_lines(row, device, rate):
    words = {
        "flash": "{:,} bytes",
        "RAM": "{:,} bytes",
        "cycles": "{:,} a step",
    }
    words["busy"] = "{:.2%} of the time" if rate else "unknown without a time"
    costs = [
        f"{name} {'not measured' if row[name] is None else text.format(row[name])}"
        for name, text in words.items()
    ]
    lines = [f"On {device}: {', '.join(costs)}."]
    if "accuracy" in row:
        return [
            *lines,
            f"Compiled and run over the test: {row['accuracy']:.4f}.",
        ]
    return [*lines, "The header was not run: there is no C compiler."]
