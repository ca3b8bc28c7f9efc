"""From the runs of a protocol to what they say of its claims.

A model is all settings but the tuned hyperparameters and the seed. Its
hyperparameters are those with the lowest median loss on validation data; its
losses are the test losses of these, one per seed. Two models are compared seed
by seed. All losses are normalized, divided by that of a constant prediction,
the baseline, and at most 1: a loss above the baseline is no worse than it.
"""

import dataclasses
import functools
import itertools
import operator

import numpy as np
from scipy import stats

from experiments import protocols

ALPHA = 0.05  # of a comparison
SOLVED = 0.5  # normalized validation loss below which a run solved its task
MATTERS = 0.25  # largest margin, as a share of the larger of two losses
LEARNED = 0.95  # normalized loss below which a model has learned something
UNSOLVED = "inconclusive: neither solved the task"
UNTESTED = "not tested"  # runs are missing
MEASURES = ("losses", "curve_means", "unsolved")  # of an outcome, by seed


@dataclasses.dataclass
class Study:
    """A protocol with the records of its runs and of what they would take.

    Each is `None` before it is stored.
    """

    protocol: dict
    record: dict | None = None
    estimate: dict | None = None

    @property
    def runs(self):
        return self.record["runs"] if self.record else []

    @functools.cached_property
    def outcomes(self):
        """{model: Outcome}, of the models whose runs are complete."""
        return outcomes(self.protocol, self.runs)


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
    def accuracies(self):
        """Test accuracies of a classifier, one per seed.

        A run that diverged in its first epoch has that of a constant
        prediction.
        """
        return [1 - run.get("test", run["baseline"]) for run in self.best]

    @property
    def curves(self):
        """{seed: normalized validation loss after each epoch}."""
        return {
            run["seed"]: [
                min(1.0, loss / run["baseline"])
                for loss in run.get("curve", [])
            ]
            for run in self.best
        }

    @property
    def curve_means(self):
        """{seed: mean of its curve}; 1 for the epochs that a run lacks."""
        epochs = max(1, *map(len, self.curves.values()))
        return {
            seed: (sum(curve) + epochs - len(curve)) / epochs
            for seed, curve in self.curves.items()
        }

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
            failures.setdefault(run["seed"], []).append(not solved([run]))
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
    def median(self):
        return float(np.median(list(self.losses.values())))


@dataclasses.dataclass
class Comparison:
    """Two models, seed by seed: `ones` and `others` are their losses."""

    ones: np.ndarray
    others: np.ndarray

    @property
    def mean(self):
        """Mean difference of the losses, the first minus the second."""
        return float(np.mean(self.ones - self.others))

    def interval(self):
        """Paired t interval of the mean difference."""
        return mean_interval(self.ones - self.others)

    def margin(self, within):
        """A difference that matters: `within`, at most a share of the loss."""
        share = MATTERS * max(np.mean(self.ones), np.mean(self.others))
        return min(within, share)

    def p_value(self, expect, within):
        """Paired t test of "better", or two one-sided ones of "equal"."""
        differences = self.ones - self.others
        if expect == "better":
            return min(1.0, 2 * _below(differences, 0))  # two-sided
        margin = self.margin(within)
        return max(_below(differences, margin), _below(-differences, margin))

    def says(self, expect, within):
        """Is the first "better", or are both "equal"?

        yes or no where a test says so at the level ALPHA, else inconclusive.
        No for "better" if an advantage as large as the margin is excluded.
        """
        if min(np.median(self.ones), np.median(self.others)) > LEARNED:
            return UNSOLVED
        low, high = self.interval()
        if expect == "better":
            if high < 0:
                return "yes"
            return "no" if low > -self.margin(within) else "inconclusive"
        if self.p_value(expect, within) < ALPHA:
            return "yes"
        return "no" if low > 0 or high < 0 else "inconclusive"


def mean_interval(values):
    """t interval of a mean, at the level 1 - ALPHA; one value excludes none."""
    values = np.asarray(values, "float64")
    if len(values) < 2:
        return -np.inf, np.inf
    if np.ptp(values) == 0:
        return float(values[0]), float(values[0])
    found = stats.ttest_1samp(values, 0).confidence_interval(1 - ALPHA)
    return float(found.low), float(found.high)


def _below(values, bound):
    """p value of the mean of values not being below a bound."""
    if len(values) < 2:
        return 1.0
    if np.ptp(values) == 0:
        return float(values[0] >= bound)
    return float(stats.ttest_1samp(values, bound, alternative="less").pvalue)


def model(settings):
    """What stands for a model: its settings, in one order."""
    return tuple(sorted(settings.items()))


def model_of(protocol, settings):
    """The model that a run is of."""
    names = protocols.of_models(protocol)
    return model({name: settings[name] for name in names if name in settings})


def outcomes(protocol, runs):
    """{model: Outcome}, of the models whose runs are complete."""
    wanted, made = {}, {}
    for some, of in ((protocols.all_settings(protocol), wanted), (runs, made)):
        for run in some:
            of.setdefault(model_of(protocol, run), []).append(run)
    tuned, found = protocol["tuned"], {}
    for one in wanted:
        asked, groups = (
            _groups(of.get(one, []), tuned) for of in (wanted, made)
        )
        seeds = max(map(len, asked.values()))
        complete = {v: runs for v, runs in groups.items() if len(runs) >= seeds}
        if complete.keys() >= asked.keys():
            found[one] = Outcome(_best(complete, tuned), complete)
    return found


def _groups(runs, tuned):
    """{values of the hyperparameters: their runs, seed after seed}"""
    groups = {}
    for run in sorted(runs, key=operator.itemgetter("seed")):
        groups.setdefault(tuple(run[name] for name in tuned), []).append(run)
    return groups


def _best(groups, tuned):
    """{hyperparameter: its best value}; of a tie of medians, by the mean."""

    def rank(values):
        losses = validation_losses(groups[values])
        return np.median(losses), np.mean(losses), values

    return dict(zip(tuned, min(groups, key=rank), strict=True))


def validation_losses(runs):
    return [normalized(run, "validation") for run in runs]


def solved(runs):
    """How many runs solved their task, by their validation loss."""
    return sum(loss < SOLVED for loss in validation_losses(runs))


def diverged(runs):
    """How many ended with a loss or weights that are not finite."""
    return sum("error" in run for run in runs)


def normalized(run, split):
    """Loss over the baseline, at most 1; 1 for a run without a loss.

    A run that diverged has the loss of its best weights before, unless its
    first epoch was its last.
    """
    return min(1.0, run[split] / run["baseline"]) if split in run else 1.0


def compare(one, other):
    """The comparison of two {seed: number}, over the seeds in both."""
    seeds = sorted(one.keys() & other.keys())
    return Comparison(
        *(np.array([of[seed] for seed in seeds]) for of in (one, other))
    )


def verdict(answers):
    """Of a claim, from what each of its comparisons says."""
    answers = set(answers)
    if answers == {"yes"}:
        return "holds"
    if "yes" in answers:
        return "holds in part"
    if answers == {UNSOLVED}:
        return UNSOLVED
    return "does not hold" if answers == {"no"} else "inconclusive"
