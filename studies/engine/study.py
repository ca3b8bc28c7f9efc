"""A study: a protocol, its stored runs, and the outcome of each variant.

The hyperparameters of a variant are those with the lowest median loss on
validation data; its losses are the test losses of these, one per seed. A `Run`
has raw losses and curves, as they are stored. All others are normalized: they
are divided by the baseline and at most 1.
"""

import dataclasses
import functools
import json

import numpy as np

from engine import protocol as protocols

WHEN = "before", "after"  # training
SOLVED = 0.5  # normalized validation loss below which a run solved its task


@dataclasses.dataclass(frozen=True)
class Run:
    """A setting and what was measured of it, by the names in runs.jsonl.

    Those of a classifier are error rates. A run that diverged has an `error`,
    and the losses of its best weights before that, or none.
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
    def from_dict(cls, values):
        names = {field.name for field in dataclasses.fields(cls)}
        measured = {n: values[n] for n in names & values.keys()}
        return cls(protocols.Setting.from_dict(values), **measured)

    def as_dict(self):
        """The setting and what was measured, as a line of runs.jsonl."""
        measured = dict(vars(self))
        setting = measured.pop("setting").as_dict()
        return setting | {n: v for n, v in measured.items() if v is not None}

    @property
    def seed(self):
        return self.setting["seed"]

    def normalized(self, loss):
        """A loss over the baseline, at most 1; 1 for a run without a loss."""
        return 1.0 if loss is None else min(1.0, loss / self.baseline)


def grouped(items, key):
    """{key of an item: the items that have it}, in the order of the items."""
    groups = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


def count_solved(runs):
    return sum(run.normalized(run.validation) < SOLVED for run in runs)


def count_diverged(runs):
    return sum(run.error is not None for run in runs)


@dataclasses.dataclass(frozen=True)
class Trial:
    """The runs of a variant at one value of each tuned hyperparameter."""

    values: tuple
    runs: list[Run]  # by seed

    @property
    def rank(self):
        """The least is the best: median validation loss, then the mean."""
        losses = [run.normalized(run.validation) for run in self.runs]
        return float(np.median(losses)), np.mean(losses), self.values

    @property
    def test_losses(self):
        """{seed: loss}"""
        return {run.seed: run.normalized(run.test) for run in self.runs}

    @property
    def median_test_loss(self):
        return float(np.median(list(self.test_losses.values())))

    @property
    def accuracies(self):
        """Of a classifier; a lost run has that of the baseline."""
        errors = ((run.test, run.baseline) for run in self.runs)
        return [1 - (other if test is None else test) for test, other in errors]

    @property
    def validation_curves(self):
        """{seed: validation loss after each epoch}"""
        return {
            run.seed: list(map(run.normalized, run.curve or []))
            for run in self.runs
        }

    @property
    def curve_means(self):
        """{seed: mean of its curve}; 1 for the epochs that a run lacks."""
        curves = self.validation_curves
        epochs = max(1, *map(len, curves.values()))
        return {
            seed: (sum(curve) + epochs - len(curve)) / epochs
            for seed, curve in curves.items()
        }

    @property
    def departures(self):
        """{matrix: its Henrici departures before training, and after}"""
        stored = [r.henrici_departure for r in self.runs if r.henrici_departure]
        return {
            matrix: [[run[when][matrix] for run in stored] for when in WHEN]
            for matrix in (stored[0]["after"] if stored else [])
        }


@dataclasses.dataclass(frozen=True)
class Outcome:
    """A variant at all values of its tuned hyperparameters."""

    variant: protocols.Setting
    trials: list[Trial]

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
        return [sorted(set(column)) for column in values]

    @property
    def test_losses(self):
        return self.best.test_losses

    @property
    def curve_means(self):
        return self.best.curve_means

    @property
    def unsolved(self):
        """{seed: share of the runs, at all hyperparameters, not solved}"""
        by_seed = grouped(self.runs, lambda run: run.seed)
        return {
            seed: 1 - count_solved(runs) / len(runs)
            for seed, runs in by_seed.items()
        }


@dataclasses.dataclass(frozen=True)
class Study:
    """A protocol with its stored runs, and what made them; `load` reads one."""

    protocol: protocols.Protocol
    runs: tuple[Run, ...] = ()
    metadata: dict = dataclasses.field(default_factory=dict)

    @functools.cached_property
    def outcomes(self):
        """Of the variants whose runs are complete."""
        variant_of = self.protocol.variant
        stored = grouped(self.runs, lambda run: variant_of(run.setting))
        missing = set(map(variant_of, self.missing(self.protocol.settings)))
        return [
            Outcome(variant, self._trials(stored[variant]))
            for variant in self.protocol.variants
            if variant not in missing
        ]

    def _trials(self, runs):
        """Those with all seeds, also at values that the protocol lacks."""

        def values(run):
            return tuple(run.setting[name] for name in self.protocol["tuned"])

        trials = grouped(sorted(runs, key=lambda run: run.seed), values)
        seeds = len(self.protocol["seeds"])
        return [
            Trial(*trial) for trial in trials.items() if len(trial[1]) >= seeds
        ]

    def outcome(self, variant):
        """Of one variant, None if its runs are not complete."""
        by_variant = {outcome.variant: outcome for outcome in self.outcomes}
        return by_variant.get(variant)

    def missing(self, settings):
        stored = {run.setting for run in self.runs}
        return [setting for setting in settings if setting not in stored]


def total_core_seconds(cost):
    """How long all runs took on one core; before, two were made at a time."""
    return cost.get("core_seconds", 2 * cost.get("seconds", 0))


def load(protocol):
    """The study of a protocol with what its folder holds by now.

    A run of a layer that its name no longer means is none of the protocol.
    """
    metadata, *lines = read_lines(protocol) or [{}]
    runs = []
    for run in map(Run.from_dict, lines):
        setting = protocol.with_layer(run.setting)
        if setting == run.setting.at(call=setting["call"]):
            runs.append(dataclasses.replace(run, setting=setting))
    return Study(protocol, tuple(runs), metadata)


def read_lines(protocol):
    """What made the runs of a protocol, then the values of each run."""
    path = protocol.file("runs.jsonl")
    if not path.exists():
        return []
    return list(map(json.loads, path.read_text().splitlines()))
