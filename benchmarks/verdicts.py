"""From the runs of a protocol to what they say of its claims.

A contender is all settings but the tuned ones and the seed. Its tuned settings
are those whose median on validation data is best; its scores are the test
scores of these, one a seed. Two contenders are compared seed by seed.
"""

import dataclasses
import itertools
import math

import numpy as np
from scipy import stats

LEVEL = 0.95


@dataclasses.dataclass
class Outcome:
    """One contender at its best: the tuned settings and a score a seed."""

    tuned: dict
    scores: dict  # of each seed, as a share of knowing nothing
    failed: int  # runs of all settings that ended with an error
    runs: int

    @property
    def median(self):
        return float(np.median(list(self.scores.values())))

    @property
    def interval(self):
        return interval(np.median, list(self.scores.values()))


@dataclasses.dataclass
class Difference:
    """Mean over the seeds of the score of the one less that of the other."""

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
    for run in runs:
        groups.setdefault(tuple(run[name] for name in tuned), []).append(run)
    values, best = min(
        groups.items(),
        key=lambda item: np.median([_share(r, "validation") for r in item[1]]),
    )
    return Outcome(
        dict(zip(tuned, values, strict=True)),
        {run["seed"]: _share(run, "test") for run in best},
        sum("error" in run for run in runs),
        len(runs),
    )


def _share(run, split):
    """The score over that of knowing nothing, which a failed run gets."""
    return 1.0 if "error" in run else run[split] / run["baseline"]


def difference(one, other):
    """Of two outcomes, over the seeds that both have."""
    seeds = sorted(one.scores.keys() & other.scores.keys())
    differences = [one.scores[seed] - other.scores[seed] for seed in seeds]
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
