"""The statistics: paired comparisons of losses, and verdicts on claims.

Losses are normalized, divided by that of a constant prediction, the baseline,
and at most 1: a loss above the baseline is no worse than it.
"""

import dataclasses

import numpy as np
from scipy import stats

ALPHA = 0.05  # of a comparison
MATTERS = 0.25  # largest margin, as a share of the larger of two losses
LEARNED = 0.95  # normalized loss below which a model has learned something
UNSOLVED = "inconclusive: neither solved the task"
UNTESTED = "not tested"  # runs are missing


@dataclasses.dataclass(frozen=True)
class Part:
    """One of the findings that a claim rests on.

    `answer` is "yes", "no", "inconclusive", UNSOLVED or UNTESTED.
    """

    condition: str
    summary: str  # what was measured, in a few words
    answer: str


@dataclasses.dataclass(frozen=True)
class Comparison:
    """Of two models, seed by seed: is the first "better", or both "equal"?"""

    first: np.ndarray
    second: np.ndarray
    expect: str
    within: float

    @property
    def mean(self):
        """Mean difference of the losses, the first minus the second."""
        return float(np.mean(self.first - self.second))

    @property
    def interval(self):
        """Paired t interval of the mean difference."""
        return mean_interval(self.first - self.second)

    @property
    def margin(self):
        """A difference that matters: `within`, at most a share of the loss."""
        larger = max(np.mean(self.first), np.mean(self.second))
        return min(self.within, MATTERS * larger)

    @property
    def p_value(self):
        """Paired t test of "better", or two one-sided ones of "equal"."""
        differences = self.first - self.second
        if self.expect == "better":
            return min(1.0, 2 * _p_below(differences, 0))  # two-sided
        both = differences, -differences
        return max(_p_below(values, self.margin) for values in both)

    @property
    def answer(self):
        """Yes or no where a test says so at the level ALPHA.

        No for "better" if an advantage as large as the margin is excluded.
        """
        if min(np.median(self.first), np.median(self.second)) > LEARNED:
            return UNSOLVED
        low, high = self.interval
        if self.expect == "better":
            return answer(yes=high < 0, no=low > -self.margin)
        return answer(yes=self.p_value < ALPHA, no=low > 0 or high < 0)


def compare(first, second, expect="better", within=0.0):
    """The comparison of two {seed: loss}, over the seeds in both."""
    seeds = sorted(first.keys() & second.keys())
    losses = (np.array([of[seed] for seed in seeds]) for of in (first, second))
    return Comparison(*losses, expect, within)


def answer(yes, no):
    return "yes" if yes else "no" if no else "inconclusive"


def verdict(answers, universal=False, unit="comparisons"):
    """Of a claim, from the answer of each of its parts.

    A universal claim, which names no exception, is refuted by one "no".
    """
    answers = list(answers)
    yes, different = answers.count("yes"), set(answers)
    if different == {"yes"}:
        return "holds"
    if different == {"no"} or universal and "no" in answers:
        return "does not hold"
    if yes:
        return f"holds in {yes} of {len(answers)} {unit}"
    if different <= {UNTESTED}:
        return UNTESTED
    return UNSOLVED if different == {UNSOLVED} else "inconclusive"


def part(condition, comparison):
    """Of a comparison, None where runs are missing."""
    if comparison is None:
        return Part(condition, "", UNTESTED)
    summary = _mean_in(comparison.mean, comparison.interval)
    return Part(condition, summary, comparison.answer)


def difference(first, second, condition=""):
    """Whether the first values are larger, in the mean of the pairs."""
    differences = np.subtract(first, second)
    low, high = interval = mean_interval(differences)
    summary = _mean_in(differences.mean(), interval)
    return Part(condition, summary, answer(yes=low > 0, no=high < 0))


def _mean_in(mean, interval):
    return f"{mean:+.2g} ({interval[0]:.2g} to {interval[1]:.2g})"


def mean_interval(values):
    """t interval of a mean, at the level 1 - ALPHA; one value excludes none."""
    values = np.asarray(values, "float64")
    if len(values) < 2:
        return -np.inf, np.inf
    if np.ptp(values) == 0:
        return float(values[0]), float(values[0])
    ends = stats.ttest_1samp(values, 0).confidence_interval(1 - ALPHA)
    return float(ends.low), float(ends.high)


def discoveries(p_values):
    """How many hold at a false discovery rate of ALPHA."""
    if not p_values:
        return 0
    return int(np.sum(stats.false_discovery_control(p_values) < ALPHA))


def _p_below(values, bound):
    """p value of the mean of values not being below a bound."""
    if len(values) < 2:
        return 1.0
    if np.ptp(values) == 0:
        return float(values[0] >= bound)
    return float(stats.ttest_1samp(values, bound, alternative="less").pvalue)
