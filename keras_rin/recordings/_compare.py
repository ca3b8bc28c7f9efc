"""Layers and baselines on the same recordings: a table and a verdict."""

import os
import time
import typing
import zlib

import keras
import numpy as np
import pandas as pd
from scipy import stats
from sklearn.model_selection import KFold
from sklearn.model_selection import StratifiedKFold
from tqdm import tqdm

from keras_rin._version import __version__
from keras_rin.recordings import _baselines
from keras_rin.recordings import _report
from keras_rin.recordings._networks import LAYERS
from keras_rin.recordings._networks import Network
from keras_rin.recordings._networks import preparations
from keras_rin.recordings._read import Recordings
from keras_rin.recordings._read import read
from keras_rin.recordings._runs import Runs
from keras_rin.recordings._verdict import RECURRENT
from keras_rin.recordings._verdict import finite_scores
from keras_rin.recordings._verdict import score
from keras_rin.recordings._verdict import verdict

PARTS = 4  # of which one is held out, and one of the rest validates
COMPILING = 0.25  # of the time, after which no other preparation is tried
FOR_STREAMS = (
    "There is no C header: what learned whole recordings is wrong in an "
    "endless stream, for which keras-rin stream DATA --join trains a network."
)


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
    all but the test set. Ctrl-C ends the training and keeps what is done, from
    which the same call resumes.

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
    entries = _baselines.scores(data, rows, seed)
    values = np.concatenate([*data.x, data.y], axis=None)
    content = zlib.crc32(values.tobytes())
    options = minutes, units, seed, __version__
    runs = Runs(output, [repr(data), content, *options])
    job = Job(data, rows, units, range(seed, seed + seeds), end, runs)
    message = job.run()
    entries |= job.scores()
    text = verdict(entries, data)
    if not _baselines.has_numba():
        text += "\nMiniRocket is not in the table: pip install numba"
    if message:
        text += f"\n{message}"
    best = job.best()
    if best is not None and data.classes:
        text += f"\n{FOR_STREAMS}"
    table = pd.DataFrame([job.row(*entry) for entry in entries.items()])
    table = table.convert_dtypes()
    folder = None if output is None else str(output)
    result = Comparison(table, text, None, {}, folder)
    if best is not None:
        best.raw_model.load_weights(best.weights)
        result = result._replace(model=best.raw_model, outputs=best.scored)
    if output is not None:
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
    """The trainings of a comparison, until all are done or the time is over."""

    def __init__(self, data, rows, units, seeds, end, runs):
        self.data, self.rows, self.units = data, rows, units
        self.seeds, self.start, self.end = seeds, time.monotonic(), end
        self.runs, self.networks = runs, {}
        self.validation = _parts(data, rows[0], seeds[0])
        self.preparations = preparations([len(x) for x in data.x])
        trainings = len(self.preparations) + len(LAYERS) * len(seeds)
        trainings += sum(len(rates) for _, _, rates in LAYERS.values())
        self.bar = tqdm(total=trainings - 1, unit="run")  # RIN's first rate

    def run(self):
        """Trains until all is done or the time is over; says what is not."""
        reason = "--minutes"
        with self.bar:
            try:
                self._choose()
                for seed in self.seeds:
                    for network in self.networks.values():
                        if not (self._is_over() and network.runs):
                            self._test(network, seed)
            except KeyboardInterrupt:
                reason = "Ctrl-C"
        done = [len(network.runs) for network in self.networks.values()]
        if len(done) == len(LAYERS) and min(done) == len(self.seeds):
            return None
        return (
            f"{reason} ended the training after {self.bar.n} of "
            f"{self.bar.total} runs, which the table has. The same command "
            "resumes from them."
        )

    def _is_over(self, share=1.0):
        """Whether a share of the time is over."""
        return time.monotonic() > self.start + share * (self.end - self.start)

    def _choose(self):
        """The preparation with RIN, and the rate of each layer."""
        usual = LAYERS["RIN"][2][0]
        rins: dict = {}
        for preparation in self.preparations:
            if rins and self._is_over(COMPILING):
                self.bar.total -= 1
            else:
                network = self._network("RIN", preparation)
                rins[network] = self._validate(network, usual)
        rin = _first_of_the_best(rins)
        for name, (_, _, rates) in LAYERS.items():
            scores, network = {usual: rins[rin]}, rin
            if name != "RIN":
                if self._is_over():
                    break  # before XLA compiles it
                scores, network = {}, self._network(name, rin.preparation)
            for rate in rates:
                if not scores or rate not in scores and not self._is_over():
                    scores[rate] = self._validate(network, rate)
            network.rate = _first_of_the_best(scores)
            self.networks[name] = network

    def _network(self, name, preparation):
        return Network(name, self.data, self.rows[0], preparation, self.units)

    def _validate(self, network, rate):
        """The scores `(recordings,)` of the validation, finite ones."""
        outputs, _ = self._train(network, rate, self.seeds[0], False)
        scores = score(outputs, self.data, self.validation[1])
        return np.nan_to_num(scores, nan=-1e9)

    def _test(self, network, seed):
        outputs, seconds = self._train(network, network.rate, seed, True)
        scores = score(outputs, self.data, self.rows[1])
        network.runs.append((scores, seconds))
        if not (network.scored or np.isnan(scores).any()):
            numbers = self.rows[1].tolist()
            network.scored = dict(zip(numbers, outputs, strict=True))
            network.weights = self.runs.weights(network.name, seed)

    def _train(self, network, rate, seed, is_test):
        """Outputs and seconds of a training, which may have been kept."""

        def train(*_):
            left = max(1, self.bar.total - self.bar.n)
            limit = max(1e-9, (self.end - time.monotonic()) / left)
            train, test = self.rows if is_test else self.validation
            seconds = network.train(train, rate, seed, limit)
            if is_test:
                path = self.runs.weights(network.name, seed)
                network.raw_model.save_weights(path)
            return network.outputs(test).tolist(), seconds

        self.bar.set_description(f"{network.name}, rate {rate:g}")
        key = network.name, network.preparation, rate, seed, is_test
        outputs, seconds = self.runs.make(train, *key)
        self.bar.update()
        return np.array(outputs), seconds

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


def _first_of_the_best(scores):
    """The first one within a standard error of the best one."""
    names, values = [*scores], np.array([*scores.values()])
    behind = values[values.mean(axis=1).argmax()] - values
    if behind.shape[1] == 1:
        return names[behind.argmin()]
    ties = behind.mean(axis=1) <= stats.sem(behind, axis=1)
    return names[ties.argmax()]
