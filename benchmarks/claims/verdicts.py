"""From the runs of a protocol to what they say of its claims.

A contender is all settings but the tuned ones and the seed. Its tuned settings
are those whose median on validation data is best, the smaller of two that tie;
its scores are the test scores of these, one a seed. Two contenders are compared
seed by seed.
"""

import dataclasses
import itertools
import math
import operator

import numpy as np
from scipy import stats

LEVEL = 0.95
HALF = 0.5  # of knowing nothing: what counts as learned


@dataclasses.dataclass
class Outcome:
    """One contender: its runs, and the tuned settings that won."""

    tuned: dict
    groups: dict  # {values of the tuned settings: their runs}

    @property
    def best(self):
        """The runs at the tuned settings that won, one a seed."""
        return self.groups[tuple(self.tuned.values())]

    @property
    def runs(self):
        return list(itertools.chain.from_iterable(self.groups.values()))

    @property
    def scores(self):
        """{seed: score as a share of knowing nothing}."""
        return {run["seed"]: share(run, "test") for run in self.best}

    @property
    def tried(self):
        """{tuned setting: its values, in order}."""
        return {
            name: sorted({run[name] for run in self.runs})
            for name in self.tuned
        }

    @property
    def unlearned(self):
        """{seed: share of all settings that got nowhere below a half}."""
        failures = {}
        for run in self.runs:
            failures.setdefault(run["seed"], []).append(not _learned(run))
        return {seed: np.mean(failed) for seed, failed in failures.items()}

    @property
    def departures(self):
        """{matrix: Henrici departures before, and after}, one a seed.

        A run that failed has none.
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
    def failed(self):
        return diverged(self.runs)

    @property
    def median(self):
        return float(np.median(list(self.scores.values())))

    @property
    def interval(self):
        return interval(np.median, list(self.scores.values()))


@dataclasses.dataclass
class Difference:
    """Mean over the seeds of what one has less what the other has."""

    mean: float
    low: float
    high: float

    def says(self, expect, within):
        """Whether the one is "better" or "equal": yes, no, undecided."""
        if expect == "better":
            if self.high < 0:
                return "yes"
            return "no" if self.low > -within else "undecided"
        if -within < self.low and self.high < within:
            return "yes"
        return "no" if self.low > 0 or self.high < 0 else "undecided"


def contender(settings):
    """What stands for a contender: its settings, in one order."""
    return tuple(sorted(settings.items()))


def outcomes(protocol, runs):
    """{contender: Outcome} of all whose runs are all made."""
    tuned, found = protocol["tuned"], {}
    for grid in protocol["grid"]:
        names = [name for name in grid if name not in tuned]
        for values in itertools.product(*(grid[name] for name in names)):
            settings = dict(zip(names, values, strict=True))
            mine = [run for run in runs if settings.items() <= run.items()]
            settings_each = math.prod(len(grid[name]) for name in tuned)
            if len(mine) == settings_each * len(protocol["seeds"]):
                found[contender(settings)] = _best(mine, tuned)
    return found


def _best(runs, tuned):
    groups = {}
    for run in sorted(runs, key=operator.itemgetter("seed")):
        values = tuple(run[name] for name in tuned)
        groups.setdefault(values, []).append(run)
    values = min(groups, key=lambda values: (median(groups[values]), values))
    return Outcome(dict(zip(tuned, values, strict=True)), groups)


def median(runs):
    """Of the scores on validation data, over that of knowing nothing."""
    return np.median([share(run, "validation") for run in runs])


def learned(runs):
    """How many are below half of knowing nothing on validation data."""
    return sum(map(_learned, runs))


def diverged(runs):
    """How many ended with a loss or weights that are not finite."""
    return sum("error" in run for run in runs)


def _learned(run):
    return share(run, "validation") < HALF


def share(run, split):
    """The score over that of knowing nothing, which a failed run gets."""
    return 1.0 if "error" in run else run[split] / run["baseline"]


def difference(one, other):
    """Of two {seed: number}, over the seeds that both have."""
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
    return "undecided" if "undecided" in answers else "does not hold"
