"""From runs to verdicts: chosen hyperparameters, intervals, claims."""

import numpy as np
import pytest
from scipy import stats
from studies import PROTOCOL
from studies import UNDER_TENSORFLOW
from studies import A
from studies import runs_of

from experiments import verdicts

pytestmark = UNDER_TENSORFLOW


def test_the_rate_is_chosen_on_validation_data_and_its_loss_is_of_test_data():
    runs = runs_of("a", 1, 0.5, [1.0, 1.2, 1.4])
    runs += runs_of("a", 2, 0.9, [0.1, 0.1, 0.1])
    outcome = verdicts.outcomes(PROTOCOL, runs)[A]
    assert outcome.tuned == {"learning_rate": 1}
    assert outcome.losses == {0: 0.5, 1: 0.6, 2: 0.7}
    assert outcome.median == 0.6


def test_a_model_with_missing_runs_has_no_outcome():
    runs = runs_of("a", 1, 0.5, [1.0, 1.2, 1.4])
    runs += runs_of("a", 2, 0.9, [0.1, 0.1])
    assert verdicts.outcomes(PROTOCOL, runs) == {}


def test_the_order_in_which_runs_ended_changes_nothing():
    runs = [
        *runs_of("a", 1, 0.5, [0.1, 0.2, 0.4]),
        *runs_of("a", 2, 0.5, [0.3] * 3),  # on validation data a tie
    ]
    found = [
        verdicts.outcomes(PROTOCOL, made)[A] for made in (runs, runs[::-1])
    ]
    for outcome in found:
        assert outcome.tuned == {"learning_rate": 1}
    assert found[0].losses == found[1].losses


def test_a_diverged_run_is_counted_and_gets_the_baseline_loss():
    runs = runs_of("a", 1, 0.5, [1.0, 1.2, 1.4])
    runs += runs_of("a", 2, 0.9, [0.1, 0.1, 0.1])
    del runs[0]["validation"], runs[0]["test"], runs[0]["baseline"]
    runs[0]["error"] = "The loss is not finite."
    outcome = verdicts.outcomes(PROTOCOL, runs)[A]
    assert outcome.losses[0] == 1.0
    assert (verdicts.diverged(outcome.runs), len(outcome.runs)) == (1, 6)


def test_below_half_of_the_baseline_a_run_has_solved_its_task():
    runs = runs_of("a", 1, 0.9, [2.0] * 3) + runs_of("a", 2, 1.0, [0.1] * 3)
    runs[2] = {**runs[2], "error": "The loss is not finite."}
    del runs[2]["validation"], runs[2]["test"], runs[2]["baseline"]
    outcome = verdicts.outcomes(PROTOCOL, runs)[A]
    assert outcome.unsolved == {0: 0.5, 1: 0.5, 2: 1.0}
    assert verdicts.solved(outcome.runs) == 2


def test_a_curve_that_ends_early_counts_as_the_baseline_from_there():
    runs = runs_of("a", 1, 0.5, [1.0, 1.2, 1.4])
    runs += runs_of("a", 2, 0.9, [0.1, 0.1, 0.1])
    runs[0]["curve"], runs[1]["curve"] = [3.0, 1.0, 0.4, 0.2], [0.6]
    outcome = verdicts.outcomes(PROTOCOL, runs)[A]
    assert outcome.curves == {0: [1.0, 0.5, 0.2, 0.1], 1: [0.3], 2: []}
    expected = {0: 1.8 / 4, 1: 3.3 / 4, 2: 1.0}
    assert outcome.curve_means == pytest.approx(expected)


def test_departures_are_those_of_the_settings_that_won():
    runs = runs_of("a", 1, 0.5, [1.0, 1.2, 1.4])
    runs += runs_of("a", 2, 0.9, [0.1, 0.1, 0.1])
    for before, run in enumerate(runs):
        after = {"recurrent": before + 0.5}
        before = {"recurrent": before}
        run["henrici_departure"] = {"before": before, "after": after}
    del runs[1]["henrici_departure"]
    outcome = verdicts.outcomes(PROTOCOL, runs)[A]
    assert outcome.departures == {"recurrent": ([0, 2], [0.5, 2.5])}


def compared(ones, others):
    return verdicts.compare(dict(enumerate(ones)), dict(enumerate(others)))


def test_the_interval_is_that_of_the_paired_t_test():
    rng = np.random.default_rng(7)
    ones, others = rng.random((2, 5))
    found = compared(ones, others)
    differences = ones - others
    error = np.std(differences, ddof=1) / np.sqrt(5)
    low, high = found.mean + 2.7764451 * error * np.array([-1, 1])
    assert found.mean == pytest.approx(np.mean(differences))
    assert found.interval() == pytest.approx((low, high))
    witness = stats.ttest_rel(ones, others)
    if found.mean < 0:
        assert found.p_value("better", 0) == pytest.approx(witness.pvalue)


def test_nineteen_of_twenty_intervals_of_five_seeds_hold_the_truth():
    draws = np.random.default_rng(0).normal(0.3, 1, size=(2_000, 5))
    ends = np.array([verdicts.mean_interval(draw) for draw in draws])
    covered = np.mean((ends[:, 0] < 0.3) & (0.3 < ends[:, 1]))
    assert covered == pytest.approx(0.95, abs=0.015)


SPREAD = np.array([-2.0, -1.0, 0.0, 1.0, 2.0])


@pytest.mark.parametrize(
    "one, other, spread, better, equal",
    [
        (0.2, 0.5, 0.01, "yes", "no"),
        (0.48, 0.5, 0.001, "yes", "yes"),  # less, and by no more than 0.05
        (0.5, 0.5, 0.001, "no", "yes"),
        (0.5, 0.5, 0.2, "inconclusive", "inconclusive"),
        (0.6, 0.5, 0.01, "no", "no"),
        (0.001, 0.028, 0.0001, "yes", "no"),  # 28 times less is not equal
        (0.99, 1.0, 0.0, verdicts.UNSOLVED, verdicts.UNSOLVED),
    ],
)
def test_what_a_comparison_says(one, other, spread, better, equal):
    found = compared(one + spread * SPREAD, np.full(5, other))
    assert found.says("better", within=0.05) == better
    assert found.says("equal", within=0.05) == equal
    for expect, said in (("better", better), ("equal", equal)):
        if said != verdicts.UNSOLVED:
            assert (found.p_value(expect, 0.05) < 0.05) == (said == "yes")


@pytest.mark.parametrize("other", [0.2, 0.5])
def test_one_seed_is_no_evidence(other):
    found = compared([0.2], [other])
    assert found.interval() == (-np.inf, np.inf)
    for expect in ("better", "equal"):
        assert found.says(expect, within=0.05) == "inconclusive"


def test_a_loss_above_the_baseline_counts_as_the_baseline():
    run = {"validation": 3.0, "test": 0.5, "baseline": 2.0}
    assert verdicts.normalized(run, "validation") == 1
    assert verdicts.normalized(run, "test") == 0.25
    assert verdicts.normalized({"error": "diverged"}, "test") == 1


def test_a_tie_does_not_go_to_the_rate_at_which_less_was_learned():
    runs = runs_of("a", 1, 2.0, [2.0] * 3) + runs_of("a", 2, 2.0, [1.0] * 3)
    runs[3]["validation"] = 0.2  # of rate 2; the medians are equal
    outcome = verdicts.outcomes(PROTOCOL, runs)[A]
    assert outcome.tuned == {"learning_rate": 2}


@pytest.mark.parametrize(
    "answers, verdict",
    [
        (["yes", "yes"], "holds"),
        (["yes", "inconclusive"], "holds in part"),
        (["no", "yes"], "holds in part"),
        (["yes", verdicts.UNTESTED], "holds in part"),
        (["no", verdicts.UNTESTED], "inconclusive"),
        (["no", "inconclusive"], "inconclusive"),
        ([verdicts.UNSOLVED, verdicts.UNSOLVED], verdicts.UNSOLVED),
        ([verdicts.UNSOLVED, "no"], "inconclusive"),
        (["no", "no"], "does not hold"),
    ],
)
def test_a_claim_of_several_comparisons(answers, verdict):
    assert verdicts.verdict(answers) == verdict


def test_the_margin_is_at_most_a_quarter_of_the_larger_loss():
    found = verdicts.compare(
        dict.fromkeys("abc", 0.4), dict.fromkeys("abc", 0.04)
    )
    assert found.margin(1.0) == pytest.approx(0.1)


def test_one_model_that_learned_is_enough_for_a_verdict():
    ones, others = {0: 0.2, 1: 0.21, 2: 0.22}, dict.fromkeys(range(3), 1.0)
    assert verdicts.compare(ones, others).says("better", 0.05) == "yes"
