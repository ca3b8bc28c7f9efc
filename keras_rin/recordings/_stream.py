"""What follows an endless stream, from a log with a label in each row."""

import dataclasses
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
    unknown: float = 0.0,
    output: str = "runs/stream",
    **columns: typing.Any,
) -> _report.Result:
    """Trains what follows an endless stream, and writes it in C.

    A MinGRU with and without `StreamFeatures` and a RIN with them, as large as
    `flash` permits, are trained on joined windows with a loss at every step.
    The best on the validation is trained longer and tested. A regression on
    the last rows is what `rin.h` is where it is better on the validation.

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
        unknown: Float, the share of the validation that is not answered, as
            two classes are too close. Defaults to 0.0.
        output: Folder to write to. Defaults to `"runs/stream"`.
        **columns: Those of `read`, such as `channels` and `label`.

    Returns:
        `Result`, which prints what was tried and tested.

    Raises:
        ValueError: Nothing fits into the flash, or what `read` raises.
    """
    if not 0 <= unknown < 1:
        raise ValueError(
            f"`unknown` must be a share below 1. Received: unknown={unknown}"
        )
    data = recordings_of(data, columns)
    parts = parts_of(data, True, join)
    folder = pathlib.Path(output)
    with Store(output, data, join, window) as store:
        _report.draw_data(data, folder / "data.png")
        stream = _Stream(parts, window, device, unknown)
        count, networks = updates or UPDATES, _stream_networks.networks(layer)
        search = Search(
            stream.candidates(networks, flash),
            store,
            stream.validated,
            range(seed, seed + seeds),
            (count, LONGER * count),
            None if updates else 60 * minutes * TRAINING,
        )
        search.run()
        return stream.result(search, layer, folder)


@dataclasses.dataclass
class Follower:
    """What may follow the stream: its outputs, and how it is written in C."""

    name: str
    rule: _scores.Rule
    tested: list  # outputs `(rows, classes)` of each seed
    write: typing.Callable  # writes `rin.h` into a folder

    @functools.cached_property
    def answers(self):
        """Without and with evidence, to the test of each seed."""
        evidence = 0, self.rule.evidence
        return [_scores.followed(y, *evidence)[0] for y in self.tested]


class _Stream:
    """Parts of a log, and what is made of them."""

    def __init__(self, parts, window, device, unknown):
        self.parts, self.device, self.unknown = parts, device, unknown
        self.y = [np.concatenate(part.y) for part in parts]
        self.windows = _stream_networks.Windows(parts, window)
        self.counts = _headers.Counts.fitted([*parts[0].x, *parts[1].x])
        self.x = [self.counts.of(part.x) for part in parts]
        self.sizes = sorted({max(2, window // 2**n) for n in range(4)})

    def candidates(self, networks, flash):
        """Each of them, as large as the flash permits where it is measured."""
        candidates, least = [], []
        classes = len(self.parts[0].classes)
        for layer, has_features, sizes, rates in networks:
            for units in sizes:
                arguments = layer, has_features, units, self.windows, classes
                build = functools.partial(_stream_networks.Network, *arguments)
                with tempfile.TemporaryDirectory() as folder:
                    self._write_network(build().layers, folder)
                    cost = _headers.cost(folder, self.device)
                least.append(cost.flash or 0)
                if least[-1] <= flash:
                    name = f"{layer}({units})"
                    name += " with features" if has_features else ""
                    candidates.append(Candidate("network", name, build, rates))
                    break
        if not candidates:
            raise ValueError(
                f"No network takes at most {flash} bytes of flash: "
                f"--flash={min(least)}"
            )
        return candidates

    def _write_network(self, layers, folder):
        learned = np.concatenate(self.x[:2])
        scale = self.windows.normalization
        _headers.write_network(layers, scale, self.counts, learned, folder)

    def network(self, search):
        """The best network, with the final trainings that did not diverge."""
        best = search.best("network")
        finals = [
            training
            for training in search.tested("network")
            if np.isfinite(training.outputs).all()
        ]
        if not finals:
            raise ValueError("Every training diverged: try another --seed.")
        self.loaded = search.loaded(finals[0])
        return Follower(
            best.candidate.name,
            self._rule(best.outputs),
            [training.outputs for training in finals],
            functools.partial(self._write_network, self.loaded.layers),
        )

    def regression(self):
        """The regression with the window that the validation chooses."""
        train, validation, test = zip(self.x, self.y, strict=True)
        outputs = {
            size: _baselines.window_outputs([train], validation[0], size)[1]
            for size in self.sizes
        }
        size = max(outputs, key=lambda size: self.validated(outputs[size]))
        learned = [train, validation]
        model, tested = _baselines.window_outputs(learned, test[0], size)
        return Follower(
            f"regression on {size} rows",
            self._rule(outputs[size]),
            [tested],
            functools.partial(_headers.write_regression, model, size),
        )

    def _rule(self, outputs):
        return _scores.choose_rule(outputs, self.y[1], self.unknown)

    def validated(self, outputs):
        """The accuracy on the validation; no output that is not finite."""
        is_right = outputs.argmax(axis=1) == self.y[1]
        return np.mean(is_right & np.isfinite(outputs).all(axis=1))

    def _write(self, follower, folder):
        follower.write(folder)
        _headers.finish(folder, self.parts[0], self.counts, follower.rule)

    def _header(self, follower):
        """A row of the table, and answers to the test where it can be run."""
        row, answers = {"name": f"rin.h, {follower.name}"}, None
        test, rate = self.parts[2], self.parts[2].rate
        with tempfile.TemporaryDirectory() as folder:
            self._write(follower, folder)
            if _headers.can_compile():
                answers = _headers.answers(folder, test)
                row |= _scores.stream_scores(answers, self.y[2], rate)
            cost = _headers.cost(folder, self.device)
        cycles = cost.per_step
        busy = cycles and rate and cycles * rate / (1e6 * cost.megahertz)
        costs = {"flash": cost.flash, "RAM": cost.ram}
        costs |= {"cycles": cycles, "busy": busy}
        missing = {name: "not measured" for name in costs if not costs[name]}
        return row | costs | missing, answers

    def result(self, search, layer, folder):
        """What was found, and its folder."""
        followers = [self.network(search), self.regression()]
        chosen = max(
            followers[: 1 if layer else None],
            key=lambda follower: follower.rule.accuracy,
        )
        headers = {
            follower.name: self._header(follower) for follower in followers
        }
        self._write(chosen, folder)
        row, answers = headers[chosen.name]
        test = self.parts[2]
        scores = {
            follower.name: [
                _scores.unit_scores(last, test) for _, last in follower.answers
            ]
            for follower in followers
        }
        units = "stretches" if test.groups is None else "groups"
        compared = *scores, scores, units, search.missing()
        answers = chosen.answers[0][1] if answers is None else answers
        rows = [*self._rows(followers), *(row for row, _ in headers.values())]
        run = "not run, without a C compiler"
        if "accuracy" in row:
            run = f"compiled and run: {row['accuracy']:.4f} on the test"
        known = answers >= 0
        result = _report.Result(
            pd.DataFrame(rows, dtype=object),  # integers stay
            search.table(),
            _scores.verdict("network", *compared),
            self.loaded.raw_model,
            answers,
            _scores.recalls(answers, test),
            [
                f"rin.h is the {chosen.name}, {run}.",
                "The answer changes when the sum of another class's outputs "
                f"has gained {chosen.rule.evidence}.",
                f"Unknown is {np.mean(~known):.1%} of the test; of the others "
                f"{np.mean(self.y[2][known] == answers[known]):.4f} are right.",
                f"Its cost is that of {self.device}.",
            ],
            str(folder),
        )
        _report.write(result, self.parts)
        return result

    def _rows(self, followers):
        """Rows of a table: the truth, a constant, and each training."""
        y, rate = self.y[2], self.parts[2].rate
        most = np.bincount(np.concatenate(self.y[:2])).argmax()
        named = {"the truth": y, "most frequent class": np.full(len(y), most)}
        for follower in followers:
            for n, pair in enumerate(follower.answers, 1):
                for evidence, answers in zip(
                    (0, follower.rule.evidence), pair, strict=True
                ):
                    name = f"{follower.name}, training {n}, evidence {evidence}"
                    named[name] = answers
        return [
            {"name": name} | _scores.stream_scores(answers, y, rate)
            for name, answers in named.items()
        ]
