"""From the runs of a protocol to what they say of its claims.

A model is all settings but the tuned hyperparameters and the seed. Its
hyperparameters are those with the lowest median loss on validation data, the
smaller of two that tie; its losses are the test losses of these, one per seed.
Two models are compared seed by seed. All losses are normalized: divided by that
of a constant prediction, the baseline.
"""

import dataclasses
import itertools
import operator

import numpy as np
from scipy import stats

from experiments import protocols

LEVEL = 0.95
SOLVED = 0.5  # normalized validation loss below which a run solved its task


@dataclasses.dataclass
class Outcome:
    """One model: its runs, and its best hyperparameters."""

    tuned: dict
    groups: dict  # {values of the hyperparameters: their runs}

    @property
    def best(self):
        """The runs at the best hyperparameters, one per seed."""
        return self.groups[tuple(self.tuned.values())]

    @property
    def runs(self):
        return list(itertools.chain.from_iterable(self.groups.values()))

    @property
    def losses(self):
        """{seed: normalized test loss} at the best hyperparameters."""
        return {run["seed"]: normalized(run, "test") for run in self.best}

    @property
    def tried(self):
        """{hyperparameter: its values, in order}."""
        return {
            name: sorted({run[name] for run in self.runs})
            for name in self.tuned
        }

    @property
    def unsolved(self):
        """{seed: share of the runs, at all hyperparameters, not solved}."""
        failures = {}
        for run in self.runs:
            failures.setdefault(run["seed"], []).append(not _solved(run))
        return {seed: np.mean(failed) for seed, failed in failures.items()}

    @property
    def departures(self):
        """{matrix: Henrici departures before, and after}, one per seed.

        A run that diverged has none.
        """
        key = "henrici_departure"
        made = [run[key] for run in self.best if key in run]
        names = made[0]["after"] if made else {}
        return {
            name: tuple(
                [run[when][name] for run in made]
                for when in ("before", "after")
            )
            for name in names
        }

    @property
    def diverged(self):
        return diverged(self.runs)

    @property
    def median(self):
        return float(np.median(list(self.losses.values())))

    @property
    def interval(self):
        return interval(np.median, list(self.losses.values()))


@dataclasses.dataclass
class Difference:
    """Mean over the seeds of one model's value minus the other's."""

    mean: float
    low: float
    high: float

    def says(self, expect, within):
        """Is the one "better" or "equal"? yes, no or inconclusive."""
        if expect == "better":
            if self.high < 0:
                return "yes"
            return "no" if self.low > -within else "inconclusive"
        if -within < self.low and self.high < within:
            return "yes"
        return "no" if self.low > 0 or self.high < 0 else "inconclusive"


def model(settings):
    """What stands for a model: its settings, in one order."""
    return tuple(sorted(settings.items()))


def outcomes(protocol, runs):
    """{model: Outcome}, of the models whose runs are complete."""
    names = protocols.of_models(protocol)
    tuned, asked = protocol["tuned"], protocols.all_settings(protocol)
    wanted, made = (_by_model(some, names) for some in (asked, runs))
    found = {}
    for one in wanted:
        mine = made.get(one, [])
        values = {_of(run, [*tuned, "seed"]) for run in mine}
        if values >= {_of(run, [*tuned, "seed"]) for run in wanted[one]}:
            found[one] = _best(mine, tuned)
    return found


def _by_model(runs, names):
    groups = {}
    for run in runs:
        settings = {name: run[name] for name in names if name in run}
        groups.setdefault(model(settings), []).append(run)
    return groups


def _of(run, names):
    return tuple(run[name] for name in names)


def _best(runs, tuned):
    groups = {}
    for run in sorted(runs, key=operator.itemgetter("seed")):
        groups.setdefault(_of(run, tuned), []).append(run)
    values = min(groups, key=lambda values: (median(groups[values]), values))
    return Outcome(dict(zip(tuned, values, strict=True)), groups)


def median(runs):
    """Of the normalized losses on validation data."""
    return np.median([normalized(run, "validation") for run in runs])


def solved(runs):
    """How many runs solved their task, by their validation loss."""
    return sum(map(_solved, runs))


def diverged(runs):
    """How many ended with a loss or weights that are not finite."""
    return sum("error" in run for run in runs)


def _solved(run):
    return normalized(run, "validation") < SOLVED


def normalized(run, split):
    """Loss over the baseline; 1, the baseline, for a run that diverged."""
    return 1.0 if "error" in run else run[split] / run["baseline"]


def difference(one, other):
    """Of two {seed: number}, over the seeds in both."""
    seeds = sorted(one.keys() & other.keys())
    differences = [one[seed] - other[seed] for seed in seeds]
    return Difference(
        float(np.mean(differences)), *interval(np.mean, differences)
    )


def interval(statistic, values):
    if len(set(values)) < 2:
        return values[0], values[0]
    found = stats.bootstrap(
        (values,),
        statistic,
        confidence_level=LEVEL,
        method="percentile",
        rng=np.random.default_rng(0),
    )
    return tuple(map(float, found.confidence_interval))


def verdict(answers):
    """Of a claim, from what each of its comparisons says."""
    answers = set(answers)
    if answers == {"yes"}:
        return "holds"
    if "yes" in answers:
        return "holds in part"
    return "inconclusive" if "inconclusive" in answers else "does not hold"
