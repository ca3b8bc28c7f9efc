"""From stored runs to the losses of a model, and to findings."""

import dataclasses
import json

import numpy as np
import pytest
import small
from babi.findings import lower_over_tasks
from mnist.findings import changes_average_to_zero
from permuted_mnist.findings import reaches_95_percent
from scipy import stats

from engine import findings
from engine import models
from engine import protocol
from engine.study import Study
from engine.study import load
from keras_rin.initializers import ChainIdentity

ERROR = {"error": "The loss is not finite."}
LOST = ERROR | dict.fromkeys(("validation", "test", "baseline"))


def test_the_rate_is_chosen_on_validation_data_and_the_loss_is_of_test_data(
    tmp_path,
):
    def outcome(setting):
        low = setting["learning_rate"] == 0.001
        if setting["layer"] == "IRNN" and setting.seed == 2:
            return None  # a model with missing runs has no outcome
        return {"validation": 0.5 - 0.1 * low, "test": 0.1 + 0.3 * low}

    study = small.study(tmp_path, outcome)
    (rin,) = study.outcomes
    assert (rin.variant["layer"], rin.best.values) == ("RIN", (0.001,))
    assert rin.test_losses == {0: 0.4, 1: 0.4, 2: 0.4}
    assert len(study.missing(study.protocol.settings)) == 2


def test_a_tie_of_medians_goes_to_the_lower_mean_in_any_order(tmp_path):
    def outcome(setting):
        learned = setting["learning_rate"] == 0.01 and setting.seed == 1
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


def stored(folder, outcome, text=small.TOML):
    """A study whose runs are stored in its folder."""
    study = small.study(folder, outcome, text)
    lines = [{"command": "?"}, *(run.as_dict() for run in study.runs)]
    text = "\n".join(map(json.dumps, lines))
    study.protocol.file("runs.jsonl").write_text(text)
    return study


def test_a_run_comes_back_as_it_was_stored(tmp_path):
    study = stored(tmp_path, lambda s: ERROR if s.seed else {"test": 0.1})
    assert load(study.protocol).runs == study.runs
    line = json.loads((tmp_path / "runs.jsonl").read_text().splitlines()[1])
    assert line["training"]["clip"] == "norm 1"  # the default, too
    initializer = line["model"]["config"]["config"]["recurrent_initializer"]
    assert initializer["config"] == {"stddev": 0.001}


NARROW = """[layers]
RIN = "RIN(recurrent_initializer=keras.RandomNormal(stddev=0.002))"
"""


def test_runs_of_a_layer_that_is_another_now_are_none_of_the_protocol(tmp_path):
    stored(tmp_path, lambda setting: {"test": 0.1})
    text = small.TOML.replace("[claims", NARROW + "[claims", 1)
    study = load(small.read(tmp_path, text))
    assert {run.setting["layer"] for run in study.runs} == {"IRNN"}
    assert len(study.missing(study.protocol.settings)) == 6


def test_runs_of_another_default_are_none_of_the_protocol(
    tmp_path, monkeypatch
):
    """Of a layer, and of a hyperparameter."""
    chain = small.TOML.replace('"RIN"', '"RIN, chain + identity"')
    stored(tmp_path, lambda setting: {"test": 0.1}, chain)
    gains = ChainIdentity.__init__
    for function, others, kept in (
        (gains, (0.8, 0.1), 6),
        (protocol.Training.__init__, ("constant", "none", 0.999), 0),
    ):
        with monkeypatch.context() as patched:
            patched.setattr(function, "__defaults__", others)
            models.config.cache_clear()
            study = load(small.read(tmp_path, chain))
            missing = study.missing(study.protocol.settings)
            assert len(missing) == 12 - kept
    models.config.cache_clear()


def test_hours_are_those_of_the_cores_that_were_used(tmp_path):
    study = small.study(tmp_path, lambda setting: {})
    took = {"runs": 6, "seconds": 3600}  # on two cores; 12 runs are stored
    assert dataclasses.replace(study, metadata={"took": took}).hours_taken == 2
    took["core_seconds"] = 3600  # of --jobs=1
    assert dataclasses.replace(study, metadata={"took": took}).hours_taken == 1


def test_a_diverged_run_is_counted(tmp_path):
    study = small.study(tmp_path, lambda s: LOST if s.seed == 1 else {})
    (part,) = findings.never_diverges(study, {"layer": "RIN"})
    assert (part.summary, part.answer) == ("2 of 6 runs diverged", "no")


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
        return None if setting["layer"] == "IRNN" else measured

    study = small.study(tmp_path, outcome)
    (part,) = changes_average_to_zero(study, {})
    assert (part.condition, part.answer) == ("RIN", steady)
    (part,) = reaches_95_percent(study, {})
    ends = stats.t.interval(0.95, 2, 1 - value, 0.001 / np.sqrt(3))
    low, high = (f"{bound:.1%}" for bound in ends)
    assert part.summary == f"{1 - value:.1%} ({low} to {high})"
    assert part.answer == accurate


@pytest.mark.parametrize("gain", [0.1, -0.1])
def test_layers_are_compared_over_tasks(tmp_path, gain):
    losses = 0.2, 0.5, 0.8, 0.6
    shift = -0.01, 0.01, -0.01, 0.01

    def outcome(setting):
        lower = (gain + shift[setting["number"]]) * (setting["layer"] == "RIN")
        worse = setting["learning_rate"] == 0.01
        test = losses[setting["number"]] - lower
        return {"validation": 0.1 + worse, "test": test * (1 - worse / 2)}

    text = small.TOML.replace("grid = [{", "grid = [{ number = [0, 1, 2, 3],")
    study = small.study(tmp_path, outcome, text.replace("adding", "babi"))
    (part,) = lower_over_tasks(study, {"layer": ["RIN", "IRNN"]})
    test = stats.ttest_1samp(gain + np.array(shift), 0)
    low, high = test.confidence_interval()
    assert part.summary == f"{gain:+.2g} ({low:.2g} to {high:.2g})"
    assert part.answer == ("yes" if gain > 0 else "no")
    accuracies = f"4 tasks, mean accuracy {0.475 + gain:.1%} vs. "
    assert part.condition == accuracies + "47.5%"
