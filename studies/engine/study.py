"""A study: a protocol, its stored runs, and what they say of each model.

A model's hyperparameters are those with the lowest median loss on validation
data; its losses are the test losses of these, one per seed.
"""

import dataclasses
import functools
import itertools
import json
import pathlib

import numpy as np

from engine import protocol as protocols
from engine import record as records

SOLVED = 0.5  # normalized validation loss below which a run solved its task


@dataclasses.dataclass(frozen=True)
class Run:
    """A setting and its outcome.

    A run that diverged has an `error`, and the losses of its best weights
    before that; those are None if it diverged in its first epoch.
    """

    setting: protocols.Setting
    processor: str | None = None
    error: str | None = None
    validation: float | None = None
    test: float | None = None
    baseline: float | None = None
    curve: list | None = None  # validation loss after each epoch
    training_curve: list | None = None
    estimation_error: dict | None = None
    henrici_departure: dict | None = None  # {"before": ..., "after": ...}

    @classmethod
    def from_record(cls, protocol, record):
        measured = {
            field.name: record[field.name]
            for field in dataclasses.fields(cls)
            if field.name in record
        }
        return cls(protocol.setting(record), **measured)

    def record(self):
        """As it is stored: the setting, and what was measured."""
        measured = vars(self).items()
        return self.setting.record() | {
            name: value
            for name, value in measured
            if name != "setting" and value is not None
        }

    def normalized(self, loss):
        """A loss over the baseline, at most 1; 1 for a run without a loss."""
        return 1.0 if loss is None else min(1.0, loss / self.baseline)

    @property
    def validation_loss(self):
        return self.normalized(self.validation)

    @property
    def test_loss(self):
        return self.normalized(self.test)

    @property
    def solved(self):
        return self.validation_loss < SOLVED

    @property
    def diverged(self):
        return self.error is not None


def solved(runs):
    return sum(run.solved for run in runs)


def diverged(runs):
    return sum(run.diverged for run in runs)


@dataclasses.dataclass(frozen=True)
class Trial:
    """The runs of a model at one value of each tuned hyperparameter."""

    values: tuple
    runs: tuple[Run, ...]  # by seed

    @property
    def rank(self):
        """The least is the best; of a tie of medians, by the mean."""
        losses = [run.validation_loss for run in self.runs]
        return np.median(losses), np.mean(losses), self.values

    @property
    def losses(self):
        """{seed: normalized test loss}"""
        return {run.setting.seed: run.test_loss for run in self.runs}

    @property
    def median(self):
        return float(np.median(list(self.losses.values())))

    @property
    def accuracies(self):
        """Test accuracies; a run without a loss has that of the baseline."""
        return [
            1 - (run.baseline if run.test is None else run.test)
            for run in self.runs
        ]

    @property
    def curves(self):
        """{seed: normalized validation loss after each epoch}"""
        return {
            run.setting.seed: list(map(run.normalized, run.curve or []))
            for run in self.runs
        }

    @property
    def curve_means(self):
        """{seed: mean of its curve}; 1 for the epochs that a run lacks."""
        epochs = max(1, *map(len, self.curves.values()))
        return {
            seed: (sum(curve) + epochs - len(curve)) / epochs
            for seed, curve in self.curves.items()
        }

    def departures(self, matrix):
        """Henrici departures before training, and after; one per seed."""
        measured = [
            run.henrici_departure
            for run in self.runs
            if run.henrici_departure is not None
        ]
        return [
            [each[when][matrix] for each in measured]
            for when in ("before", "after")
        ]

    @property
    def matrices(self):
        for run in self.runs:
            if run.henrici_departure is not None:
                return list(run.henrici_departure["after"])
        return []


@dataclasses.dataclass(frozen=True)
class Outcome:
    """A model at all hyperparameters that were tried."""

    model: protocols.Setting
    trials: tuple[Trial, ...]

    @property
    def best(self):
        return min(self.trials, key=lambda trial: trial.rank)

    @property
    def runs(self):
        return [run for trial in self.trials for run in trial.runs]

    @property
    def tried(self):
        """The values of each tuned hyperparameter, in order."""
        values = zip(*(trial.values for trial in self.trials), strict=True)
        return [sorted(set(each)) for each in values]

    @property
    def losses(self):
        return self.best.losses

    @property
    def curve_means(self):
        return self.best.curve_means

    @property
    def unsolved(self):
        """{seed: share of the runs, at all hyperparameters, not solved}"""
        runs = sorted(self.runs, key=_seed)
        return {
            seed: np.mean([not run.solved for run in of_seed])
            for seed, of_seed in itertools.groupby(runs, _seed)
        }


def _seed(run):
    return run.setting.seed


@dataclasses.dataclass(frozen=True)
class Study:
    """A protocol with its stored runs; `stored` reads one.

    `record` says what made the runs, `estimate` how long others would take;
    both are empty before anything is stored.
    """

    protocol: protocols.Protocol
    runs: tuple[Run, ...] = ()
    record: dict = dataclasses.field(default_factory=dict)
    estimate: dict = dataclasses.field(default_factory=dict)

    @functools.cached_property
    def outcomes(self):
        """Of the models whose runs are complete."""
        wanted = self._by_model(map(Run, self.protocol.settings))
        stored, outcomes = self._by_model(self.runs), []
        for model, runs in wanted.items():
            asked = _trials(runs, self.protocol.tuned)
            seeds = max(len(trial.runs) for trial in asked)
            trials = tuple(
                trial
                for trial in _trials(stored.get(model, []), self.protocol.tuned)
                if len(trial.runs) >= seeds
            )
            tried = {trial.values for trial in trials}
            if tried >= {trial.values for trial in asked}:
                outcomes.append(Outcome(model, trials))
        return outcomes

    def _by_model(self, runs):
        by_model = {}
        for run in runs:
            model = self.protocol.model(run.setting)
            by_model.setdefault(model, []).append(run)
        return by_model

    def outcome(self, model):
        """Of one model, None if its runs are not complete."""
        for outcome in self.outcomes:
            if outcome.model == model:
                return outcome
        return None

    def missing(self, settings):
        stored = {run.setting for run in self.runs}
        return [setting for setting in settings if setting not in stored]

    def hours(self, settings):
        """What the missing runs would take two cores; None if not estimated."""
        model = self.protocol.model
        seconds = {
            model(self.protocol.setting(timed)): timed["seconds"]
            for timed in self.estimate.get("models", [])
        }
        missing = list(map(model, self.missing(settings)))
        if not missing or not seconds.keys() >= set(missing):
            return None
        return sum(map(seconds.get, missing)) / 2 / 3600

    @property
    def hours_taken(self):
        """Of all runs on two cores; None if no time was recorded."""
        took = self.record.get("took", {"runs": 0})
        if not took["runs"]:
            return None
        return took["seconds"] / took["runs"] * len(self.runs) / 3600


def _trials(runs, tuned):
    by_values = {}
    for run in sorted(runs, key=_seed):
        values = tuple(getattr(run.setting, name) for name in tuned)
        by_values.setdefault(values, []).append(run)
    return [Trial(values, tuple(by_values[values])) for values in by_values]


def stored(protocol, folder):
    """The study of a protocol with what its folder holds by now."""
    folder = pathlib.Path(folder)
    record, *runs = read_lines(folder) or [{}]
    return Study(
        protocol,
        tuple(Run.from_record(protocol, run) for run in runs),
        record,
        records.read(folder / "estimate.json") or {},
    )


def read_lines(folder):
    path = pathlib.Path(folder) / "runs.jsonl"
    if not path.exists():
        return []
    return list(map(json.loads, path.read_text().splitlines()))
