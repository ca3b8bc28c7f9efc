"""From stored runs to the losses of a model, and to findings."""

import dataclasses
import json

import numpy as np
import pytest
import small
from scipy import stats

from engine import findings
from engine.study import Study
from engine.study import load
from engine.verdicts import UNTESTED

ERROR = {"error": "The loss is not finite."}
LOST = ERROR | dict.fromkeys(("validation", "test", "baseline"))


def test_the_rate_is_chosen_on_validation_data_and_the_loss_is_of_test_data(
    tmp_path,
):
    def outcome(setting):
        low = setting.learning_rate == 0.001
        if setting.layer == "IRNN" and setting.seed == 2:
            return None  # a model with missing runs has no outcome
        return {"validation": 0.5 - 0.1 * low, "test": 0.1 + 0.3 * low}

    study = small.study(tmp_path, outcome)
    (rin,) = study.outcomes
    assert (rin.variant.layer, rin.best.values) == ("RIN", (0.001,))
    assert rin.test_losses == {0: 0.4, 1: 0.4, 2: 0.4}
    assert len(study.missing(study.protocol.settings)) == 2


def test_a_tie_of_medians_goes_to_the_lower_mean_in_any_order(tmp_path):
    def outcome(setting):
        learned = setting.learning_rate == 0.01 and setting.seed == 1
        return {"validation": 0.2 if learned else 1.0}

    study = small.study(tmp_path, outcome)
    for runs in (study.runs, study.runs[::-1]):
        best = Study(study.protocol, runs).outcomes[0].best
        assert best.values == (0.01,)
        assert list(best.test_losses) == [0, 1, 2]


def test_losses_are_at_most_the_baseline_which_a_lost_run_has(tmp_path):
    outcomes = {"baseline": 2.0, "test": 3.0}, {"test": 0.4}, LOST
    study = small.study(tmp_path, lambda setting: outcomes[setting.seed])
    rin = study.outcomes[0]
    assert rin.test_losses == {0: 1.0, 1: 0.4, 2: 1.0}
    assert rin.unsolved == {0: 0.0, 1: 1.0, 2: 1.0}  # 0.25 and 0.5
    assert [run.diverged for run in rin.best.runs] == [False, False, True]


def test_a_curve_that_ends_early_counts_as_the_baseline_from_there(tmp_path):
    curves = [1.5, 0.5, 0.2, 0.1], [0.3], None
    study = small.study(tmp_path, lambda s: {"curve": curves[s.seed]})
    expected = {0: 1.8 / 4, 1: 3.3 / 4, 2: 1.0}
    assert study.outcomes[0].curve_means == pytest.approx(expected)


def test_a_run_comes_back_as_it_was_stored(tmp_path):
    study = small.study(tmp_path, lambda s: ERROR if s.seed else {"test": 0.1})
    lines = [{"command": "?"}, *(run.as_dict() for run in study.runs)]
    text = "\n".join(map(json.dumps, lines))
    (tmp_path / "runs.jsonl").write_text(text)
    assert load(study.protocol, tmp_path).runs == study.runs
    assert "clip" not in lines[1]  # the default


def test_hours_are_those_of_the_cores_that_were_used(tmp_path):
    study = small.study(tmp_path, lambda setting: {})
    took = {"runs": 6, "seconds": 3600}  # on two cores; 12 runs are stored
    assert dataclasses.replace(study, metadata={"took": took}).hours_taken == 2
    took["core_seconds"] = 3600  # of --jobs=1
    assert dataclasses.replace(study, metadata={"took": took}).hours_taken == 1


@pytest.mark.parametrize("lost", [False, True])
def test_solving_a_length_means_every_run_of_the_best_rate(tmp_path, lost):
    def outcome(setting):
        return LOST if lost and setting.seed == 1 else {"validation": 0.2}

    text = small.TOML.replace('["RIN", "IRNN"], l', '["RIN"], l')
    study = small.study(tmp_path, outcome, text.split("[claims")[0])
    (part,) = findings.solves_every_length(study, {"length": [5]})
    solved = "2 of 3 solved, 1" if lost else "3 of 3 solved, 0"
    assert part.summary == f"{solved} diverged, median loss 0.5"
    assert (part.condition, part.answer) == ("5 steps", "no" if lost else "yes")
    assert findings.solves_every_length(study, {"length": [5, 6]}) == []
    (part,) = findings.never_diverges(study, {"layer": "RIN"})
    assert part.summary == f"{2 if lost else 0} of 6 runs diverged"


@pytest.mark.parametrize(
    "value, steady, accurate",
    [
        (0.04, "yes", "yes"),
        (0.06, "no", "no"),
        (0.05, "inconclusive", "inconclusive"),
        (-0.06, "no", "yes"),
    ],
)
def test_means_of_the_seeds_are_compared_with_a_limit(
    tmp_path, value, steady, accurate
):
    """A change of the hidden state with 5 %, an accuracy with 95 %."""

    def outcome(setting):
        error = value + (setting.seed - 1) / 1000
        measured = {"estimation_error": {"mean": error}, "test": error}
        return None if setting.layer == "IRNN" else measured

    study = small.study(tmp_path, outcome)
    rin, irnn = findings.changes_average_to_zero(study, {})
    assert (rin.condition, rin.answer) == ("RIN", steady)
    assert (irnn.condition, irnn.answer) == ("IRNN", UNTESTED)
    part, _ = findings.reaches_95_percent(study, {})
    ends = stats.t.interval(0.95, 2, 1 - value, 0.001 / np.sqrt(3))
    low, high = (f"{bound:.1%}" for bound in ends)
    assert part.summary == f"{1 - value:.1%} ({low} to {high})"
    assert part.answer == accurate


@pytest.mark.parametrize("gain", [0.1, -0.1])
def test_layers_are_compared_over_tasks(tmp_path, gain):
    losses = 0.2, 0.5, 0.8, 0.6
    shift = -0.01, 0.01, -0.01, 0.01

    def outcome(setting):
        lower = (gain + shift[setting.number]) * (setting.layer == "RIN")
        worse = setting.learning_rate == 0.01
        test = losses[setting.number] - lower
        return {"validation": 0.1 + worse, "test": test * (1 - worse / 2)}

    text = small.TOML.replace("grid = [{", "grid = [{ number = [0, 1, 2, 3],")
    study = small.study(tmp_path, outcome, text.replace("adding", "babi"))
    (part,) = findings.lower_over_tasks(study, {"layer": ["RIN", "IRNN"]})
    test = stats.ttest_1samp(gain + np.array(shift), 0)
    low, high = test.confidence_interval()
    assert part.summary == f"{gain:+.2g} ({low:.2g} to {high:.2g})"
    assert part.answer == ("yes" if gain > 0 else "no")
    accuracies = f"4 tasks, mean accuracy {0.475 + gain:.1%} vs. "
    assert part.condition == accuracies + "47.5%"
