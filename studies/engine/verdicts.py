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
    p_value: float | None = None  # of a comparison


def compare(first, second, expect, within, condition=""):
    """Of two models, {seed: loss}: is the first "better", or both "equal"?

    "better" is a paired t test, "equal" are two one-sided ones against the
    margin: `within`, but at most a share of the larger loss. No for "better" if
    an advantage as large as the margin is excluded.
    """
    seeds = sorted(first.keys() & second.keys())
    first, second = (
        np.array([values[s] for s in seeds]) for values in (first, second)
    )
    differences = first - second
    low, high = mean_interval(differences)
    margin = min(within, MATTERS * max(np.mean(first), np.mean(second)))
    if expect == "better":
        p_value = min(1.0, 2 * _p_below(differences, 0))  # two-sided
        answered = answer(yes=high < 0, no=low > -margin)
    else:
        both = differences, -differences
        p_value = max(_p_below(values, margin) for values in both)
        answered = answer(yes=p_value < ALPHA, no=low > 0 or high < 0)
    if min(np.median(first), np.median(second)) > LEARNED:
        p_value, answered = 1.0, UNSOLVED
    return Part(condition, mean_of(differences), answered, p_value)


def answer(yes, no):
    return "yes" if yes else "no" if no else "inconclusive"


def verdict(answers, universal=False, unit="comparisons"):
    """Of a claim, from the answer of each of its parts.

    A universal claim, which names no exception, is refuted by one "no".
    """
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


def difference(first, second, condition=""):
    """Whether the first values are larger, in the mean of the pairs."""
    differences = np.subtract(first, second)
    low, high = mean_interval(differences)
    return Part(condition, mean_of(differences), answer(low > 0, high < 0))


def mean_of(values, mean="+.2g", ends=".2g"):
    """The mean and its interval, as a page shows them in these formats."""
    low, high = mean_interval(values)
    return f"{np.mean(values):{mean}} ({low:{ends}} to {high:{ends}})"


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
    return int(np.sum(stats.false_discovery_control(p_values) < ALPHA))


def _p_below(values, bound):
    """p value of the mean of values not being below a bound."""
    if len(values) < 2:
        return 1.0
    if np.ptp(values) == 0:
        return float(values[0] >= bound)
    return float(stats.ttest_1samp(values, bound, alternative="less").pvalue)
