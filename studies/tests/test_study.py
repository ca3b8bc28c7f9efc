"""From stored runs to the losses of a model."""

import dataclasses
import json

import pytest
import small

from engine import models
from engine import protocol as protocols
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
        if setting["layer"] == "IRNN" and setting["seed"] == 2:
            return None  # a model with missing runs has no outcome
        return {"validation": 0.5 - 0.1 * low, "test": 0.1 + 0.3 * low}

    study = small.study(tmp_path, outcome)
    (rin,) = study.outcomes
    assert (rin.variant["layer"], rin.best.values) == ("RIN", (0.001,))
    assert rin.test_losses == {0: 0.4, 1: 0.4, 2: 0.4}
    assert len(study.missing(study.protocol.settings)) == 2


def test_a_tie_of_medians_goes_to_the_lower_mean_in_any_order(tmp_path):
    def outcome(setting):
        learned = setting["learning_rate"] == 0.01 and setting["seed"] == 1
        return {"validation": 0.2 if learned else 1.0}

    study = small.study(tmp_path, outcome)
    for runs in (study.runs, study.runs[::-1]):
        best = Study(study.protocol, runs).outcomes[0].best
        assert best.values == (0.01,)
        assert list(best.test_losses) == [0, 1, 2]


def test_a_lost_run_has_the_baseline_and_so_have_the_epochs_it_lacks(tmp_path):
    outcomes = [
        {"baseline": 2.0, "test": 3.0, "curve": [3.0, 1.0, 0.4, 0.2]},
        {"test": 0.4, "curve": [0.3]},
        LOST,
    ]
    study = small.study(tmp_path, lambda setting: outcomes[setting["seed"]])
    rin = study.outcomes[0]
    assert rin.test_losses == {0: 1.0, 1: 0.4, 2: 1.0}
    assert rin.unsolved == {0: 0.0, 1: 1.0, 2: 1.0}  # 0.25 and 0.5
    expected = {0: 1.8 / 4, 1: 3.3 / 4, 2: 1.0}
    assert rin.curve_means == pytest.approx(expected)


def stored(folder, outcome, text=small.TOML):
    """A study whose runs are stored in its folder."""
    study = small.study(folder, outcome, text)
    lines = [{"command": "?"}, *(run.as_dict() for run in study.runs)]
    text = "\n".join(map(json.dumps, lines))
    study.protocol.file("runs.jsonl").write_text(text)
    return study


def test_a_run_comes_back_as_it_was_stored(tmp_path):
    study = stored(tmp_path, lambda s: ERROR if s["seed"] else {"test": 0.1})
    assert load(study.protocol).runs == study.runs
    line = json.loads((tmp_path / "runs.jsonl").read_text().splitlines()[1])
    assert line["training"]["clip"] == "norm 1"  # the default, too
    initializer = line["model"]["config"]["config"]["recurrent_initializer"]
    assert initializer["config"] == {"stddev": 0.001}


NARROW = """[layers]
"RIN, chain + identity" = "RIN(recurrent_initializer='zeros')"
"""


@pytest.mark.parametrize("what, kept", [("name", 6), ("layer", 6), ("run", 0)])
def test_runs_of_what_is_another_now_are_none_of_the_protocol(
    tmp_path, monkeypatch, what, kept
):
    """Another layer of a name, default of a layer or of a hyperparameter."""
    text = small.TOML.replace('"RIN"', '"RIN, chain + identity"')
    stored(tmp_path, lambda setting: {"test": 0.1}, text)
    if what == "name":
        text = text.replace("[claims", NARROW + "[claims", 1)
    elif what == "layer":
        gains = ChainIdentity.__init__
        monkeypatch.setattr(gains, "__defaults__", (0.8, 0.1))
    else:
        monkeypatch.setitem(protocols.HYPERPARAMETERS, "clip", "none")
    models.config.cache_clear()
    study = load(small.read(tmp_path, text))
    models.config.cache_clear()
    assert len(study.missing(study.protocol.settings)) == 12 - kept
    assert len(study.runs) == (12 if what == "run" else kept)


def test_hours_are_those_of_the_cores_that_were_used(tmp_path):
    study = small.study(tmp_path, lambda setting: {})
    took = {"runs": 6, "seconds": 3600}  # on two cores; 12 runs are stored
    assert dataclasses.replace(study, metadata={"took": took}).hours_taken == 2
    took["core_seconds"] = 3600  # of --jobs=1
    assert dataclasses.replace(study, metadata={"took": took}).hours_taken == 1
