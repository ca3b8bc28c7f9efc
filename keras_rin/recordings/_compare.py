"""Layers and baselines on the same recordings: a table and a verdict."""

import os
import time
import typing

import keras
import numpy as np
import pandas as pd
from scipy import stats
from sklearn.model_selection import KFold
from sklearn.model_selection import StratifiedKFold
from tqdm import tqdm

from keras_rin.recordings import _baselines
from keras_rin.recordings import _report
from keras_rin.recordings._networks import LAYERS
from keras_rin.recordings._networks import Network
from keras_rin.recordings._networks import preparations
from keras_rin.recordings._read import Recordings
from keras_rin.recordings._read import read
from keras_rin.recordings._verdict import RECURRENT
from keras_rin.recordings._verdict import finite_scores
from keras_rin.recordings._verdict import score
from keras_rin.recordings._verdict import verdict

PARTS = 4  # of which one is held out, and one of the rest validates
COMPILING = 0.25  # of the time, after which no other preparation is tried


class Comparison(typing.NamedTuple):
    """What `compare` returns, which prints table and verdict.

    Attributes:
        table: DataFrame, a row for each model and baseline.
        verdict: String, which is ahead and by how much.
        model: The best layer as a Keras model, which reads raw recordings
            `(batch, steps, channels)`; `None` if none was trained.
        outputs: Dict of the number of each test recording and the outputs of
            the model that were scored.
        output: String, the folder, or `None`.
    """

    table: pd.DataFrame
    verdict: str
    model: keras.Model | None
    outputs: dict
    output: str | None

    def __repr__(self) -> str:
        text = self.table.to_string(index=False, float_format="{:.3f}".format)
        end = f"\n{self.output} has report.md, model.keras and predict.py."
        return f"{text}\n\n{self.verdict}{end if self.output else ''}"


def compare(
    data: typing.Any,
    *,
    minutes: float = 5.0,
    seeds: int = 5,
    seed: int = 0,
    units: int = 64,
    output: str | os.PathLike | None = "runs/recordings",
) -> Comparison:
    """Compares RIN, GRU, LSTM and baselines on recordings.

    A quarter of the recordings is the test set, unless the data name one, and
    a quarter of the others validates: there RIN, the fastest, chooses the
    scale and the front, and each layer its learning rate. Then all learn from
    all but the test set. Ctrl-C ends the training and keeps what is done.

    Args:
        data: `Recordings`, or what `read` takes.
        minutes: Float, the minutes after which training ends.
            Defaults to 5.0.
        seeds: Integer, the number of seeds. Defaults to 5.
        seed: Integer, the first seed. Defaults to 0.
        units: Integer, the units of RIN; the others have about as many
            weights. Defaults to 64.
        output: Folder for report, model and results, or `None`. Defaults to
            `"runs/recordings"`.

    Returns:
        `Comparison`, which prints table and verdict.

    Raises:
        ValueError: Too few recordings, or what `read` raises.
    """
    end = time.monotonic() + 60 * minutes
    if not isinstance(data, Recordings):
        data = read(data)
    print(data, flush=True)
    rows = split(data, seed)
    baselines = _baselines.scores(data, rows, seed)
    job = Job(data, rows, units, range(seed, seed + seeds), end)
    message = job.run()
    entries = baselines | job.scores()
    text = verdict(entries, data)
    if not _baselines.has_numba():
        text += "\nMiniRocket is not in the table: pip install numba"
    if message:
        text += f"\n{message}"
    best = job.best()
    table = pd.DataFrame([job.row(*entry) for entry in entries.items()])
    table = table.convert_dtypes()
    result = Comparison(table, text, None, {}, None)
    if best is not None:
        best.restore()
        result = result._replace(model=best.raw_model, outputs=best.scored)
    if output is not None:
        result = result._replace(output=str(output))
        _report.write(result, data, rows, entries, best)
    return result


def split(data, seed):
    """The rows to train on and those to test on, with classes in both."""
    if data.y is None:
        raise ValueError(f"{data.source} has no labels to learn.")
    if data.is_test is not None:
        rows = [np.flatnonzero(data.is_test == of) for of in (False, True)]
    else:
        rows = _parts(data, np.arange(len(data.y)), seed)
    train, test = (data.y[part] for part in rows)
    if not data.classes:
        if np.ptp(train) == 0 or np.ptp(test) == 0:
            raise ValueError(f"{data.source}: the targets do not vary.")
        return rows
    counts = np.bincount(train, minlength=len(data.classes))
    if len(data.classes) < 2:
        raise ValueError(
            f"{data.source}: all recordings have the class {data.classes[0]}."
        )
    if min(counts) < 2:
        name = data.classes[np.argmin(counts)]
        raise ValueError(
            f"{data.source}: the class {name} has {min(counts)} recordings to "
            "train on, of which it takes 2, one of them to validate."
        )
    return rows


def _parts(data, rows, seed):
    """All rows but a quarter of each class, and that quarter."""
    least = len(rows)
    if data.classes:
        least = min(np.bincount(data.y[rows], minlength=len(data.classes)))
    if least < 2:
        raise ValueError(
            f"{data.source}: each class, and a regression, takes at least 4 "
            "recordings."
        )
    folds = StratifiedKFold if data.classes else KFold
    folds = folds(min(PARTS, least), shuffle=True, random_state=seed)
    first = next(iter(folds.split(rows, data.y[rows])))
    return [rows[part] for part in first]


class Job:
    """The networks, and the runs that are left until the end."""

    def __init__(self, data, rows, units, seeds, end):
        self.data, self.rows, self.units = data, rows, units
        self.seeds, self.start, self.end = seeds, time.monotonic(), end
        self.validation = _parts(data, rows[0], seeds[0])
        self.preparations = preparations([len(x) for x in data.x])
        self.networks = {}
        rates = sum(len(rates) for _, _, rates in LAYERS.values())
        self.left = len(self.preparations) + rates + len(LAYERS) * len(seeds)
        self.bar = tqdm(total=self.left, unit="run")

    def run(self):
        """Trains until all is done or the time is over; says what is not."""
        with self.bar:
            try:
                self._choose()
                for seed in self.seeds:
                    for network in self.networks.values():
                        if self._is_over() and network.runs:
                            break
                        self._test(network, seed)
                return self._unfinished("--minutes ended the training")
            except KeyboardInterrupt:
                return self._unfinished("Ctrl-C ended the training")

    def _unfinished(self, reason):
        done = [len(of.runs) for of in self.networks.values()]
        if len(done) == len(LAYERS) and min(done) == len(self.seeds):
            return None
        return (
            f"{reason} after {self.bar.n} of {self.bar.total} runs, which the "
            "table has. The same command with more --minutes or fewer --seeds "
            "completes it."
        )

    def _is_over(self, share=1.0):
        """Whether a share of the time is over."""
        return time.monotonic() > self.start + share * (self.end - self.start)

    def _limit(self):
        """The share of the time left that a run may take."""
        self.left -= 1
        return max(1e-9, (self.end - time.monotonic()) / (self.left + 1))

    def _choose(self):
        rins: list = []
        for preparation in self.preparations:
            if rins and self._is_over(COMPILING):
                self.left, self.bar.total = self.left - 1, self.bar.total - 1
            else:
                rins.append(self._network("RIN", preparation))
        rates = LAYERS["RIN"][2]
        rin, _ = self._best([(network, rates[0]) for network in rins])
        self.networks = {"RIN": rin}
        for name in [*LAYERS][1:]:
            if not self._is_over():
                self.networks[name] = self._network(name, rin.preparation)
        for network in self.networks.values():
            rates = LAYERS[network.name][2]
            _, network.rate = self._best([(network, rate) for rate in rates])

    def _network(self, name, preparation):
        self.bar.set_description(f"compiling {name}")
        rows = self.rows[0]
        return Network(name, self.data, rows, preparation, self.units)

    def _best(self, candidates):
        """The first one within a standard error of the best one."""
        if self._is_over():
            return candidates[0]
        scores = []
        for network, rate in candidates:
            seed = self.seeds[0]
            network.train(*self._next(network, rate, seed, self.validation[0]))
            self.bar.update()
            outputs = network.outputs(self.validation[1])
            scores.append(score(outputs, self.data, self.validation[1]))
        scores = np.nan_to_num(scores, nan=-1e9)
        behind = scores[scores.mean(axis=1).argmax()] - scores
        if behind.shape[1] == 1:
            return candidates[behind.argmin()]
        ties = behind.mean(axis=1) <= stats.sem(behind, axis=1)
        return candidates[ties.argmax()]

    def _next(self, network, rate, seed, rows):
        self.bar.set_description(f"{network.name}, rate {rate:g}, seed {seed}")
        return rows, rate, seed, self._limit()

    def _test(self, network, seed):
        arguments = self._next(network, network.rate, seed, self.rows[0])
        seconds = network.train(*arguments)
        self.bar.update()
        outputs = network.outputs(self.rows[1])
        scores = score(outputs, self.data, self.rows[1])
        network.runs.append((scores, seconds))
        if not (network.scored or np.isnan(scores).any()):
            network.keep(dict(zip(self.rows[1].tolist(), outputs, strict=True)))

    def scores(self):
        """The scores `(seeds, recordings)` of each network."""
        return {
            name: [scores for scores, _ in network.runs]
            for name, network in self.networks.items()
        }

    def best(self):
        """The layer with the highest mean score, which has a finite run."""
        scores = finite_scores(self.scores())
        layers = [
            network
            for name, network in self.networks.items()
            if name in RECURRENT and name in scores and network.scored
        ]
        return max(layers, key=lambda of: scores[of.name].mean(), default=None)

    def row(self, name, scores):
        """A row of the table: median and range over seeds."""
        means = np.mean(scores, axis=1) if len(scores) else [np.nan]
        low, middle, high = np.quantile(np.nan_to_num(means), [0, 0.5, 1])
        row = {"name": name, "score": middle, "lowest": low, "highest": high}
        if network := self.networks.get(name):
            seconds = [seconds for _, seconds in network.runs]
            row |= {
                "weights": network.raw_model.count_params(),
                "rate": network.rate,
                "seconds": np.median(seconds) if seconds else np.nan,
                "diverged": int(np.isnan(means).sum()),
            }
        return row
