"""Statistics, against SciPy and closed forms."""

import numpy as np
import pytest
from scipy import stats

from engine import verdicts


def compared(first, second, expect="better", within=0.05):
    first, second = (dict(enumerate(losses)) for losses in (first, second))
    return verdicts.compare(first, second, expect, within)


def test_the_interval_and_p_value_are_those_of_the_paired_t_test():
    first, second = np.random.default_rng(7).random((2, 5))
    second += 0.5
    error = np.std(first - second, ddof=1) / np.sqrt(5)
    ends = np.mean(first - second) + 2.7764451 * error * np.array([-1, 1])
    interval = verdicts.mean_interval(first - second)
    assert interval == pytest.approx(tuple(ends))
    part, reference = compared(first, second), stats.ttest_rel(first, second)
    assert part.p_value == pytest.approx(reference.pvalue)
    mean = np.mean(first - second)
    assert part.summary == f"{mean:+.2g} ({ends[0]:.2g} to {ends[1]:.2g})"


def test_equal_is_two_one_sided_tests_against_the_margin():
    first, second = np.random.default_rng(1).random((2, 6)) / 50 + 0.5
    p_values = [
        stats.ttest_1samp(first - second + shift, 0, alternative=side).pvalue
        for shift, side in ((0.02, "greater"), (-0.02, "less"))
    ]
    part = compared(first, second, "equal", 0.02)
    assert part.p_value == pytest.approx(max(p_values))


@pytest.mark.parametrize(
    "first, second, expect, answer",
    [
        ([0.10, 0.11, 0.12], [0.3, 0.31, 0.33], "better", "yes"),
        ([0.30, 0.31, 0.33], [0.1, 0.11, 0.12], "better", "no"),
        ([0.30, 0.31, 0.32], [0.3, 0.31, 0.32], "better", "no"),  # no margin
        ([0.10, 0.50, 0.90], [0.3, 0.31, 0.32], "better", "inconclusive"),
        ([0.30, 0.31, 0.32], [0.3, 0.31, 0.32], "equal", "yes"),
        # A margin of 0.05 is more than a quarter of these losses.
        ([0.01, 0.011, 0.012], [0.04, 0.041, 0.043], "equal", "no"),
        ([0.10, 0.50, 0.90], [0.3, 0.31, 0.32], "equal", "inconclusive"),
        ([0.96, 0.97, 0.98], [1.0, 1.00, 1.00], "better", verdicts.UNSOLVED),
        ([0.20, 0.21, 0.22], [1.0, 1.00, 1.00], "better", "yes"),
        ([0.1], [0.9], "better", "inconclusive"),  # one seed is no evidence
        ([0.1], [0.1], "equal", "inconclusive"),
    ],
)
def test_an_answer_follows_from_the_interval(first, second, expect, answer):
    assert compared(first, second, expect).answer == answer


@pytest.mark.parametrize(
    "answers, verdict",
    [
        (["yes", "yes"], "holds"),
        (["yes", "inconclusive"], "holds in 1 of 2 comparisons"),
        (["no", "yes"], "holds in 1 of 2 comparisons"),
        (["yes", verdicts.UNTESTED], "holds in 1 of 2 comparisons"),
        (["no", verdicts.UNTESTED], "inconclusive"),
        (["no", "inconclusive"], "inconclusive"),
        ([verdicts.UNSOLVED, verdicts.UNSOLVED], verdicts.UNSOLVED),
        ([verdicts.UNSOLVED, "no"], "inconclusive"),
        (["no", "no"], "does not hold"),
        ([], "not tested"),
    ],
)
def test_a_claim_of_several_parts(answers, verdict):
    assert verdicts.verdict(answers) == verdict
