"""From stored runs to the losses of a model."""

import json

import pytest
import small
from mnist.findings import changes_average_to_zero
from permuted_mnist.findings import reaches_95_percent

from engine import models
from engine import protocol as protocols
from engine.study import Study
from engine.study import load
from keras_rin.initializers import ChainIdentity

ERROR = {"error": "The loss is not finite."}


def test_a_tie_of_medians_goes_to_the_lower_mean_in_any_order(tmp_path):
    def outcome(setting):
        learned = setting["learning_rate"] == 0.01 and setting["seed"] == 1
        return {"validation": 0.2 if learned else 1.0}

    study = small.study(tmp_path, outcome)
    for runs in (study.runs, study.runs[::-1]):
        best = Study(study.protocol, runs).outcomes[0].best
        assert best.values == (0.01,)
        assert list(best.test_losses) == [0, 1, 2]


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


@pytest.mark.parametrize(
    "what, remaining", [("name", 6), ("layer", 6), ("run", 0)]
)
def test_runs_of_what_is_another_now_are_none_of_the_protocol(
    tmp_path, monkeypatch, what, remaining
):
    """Another layer of a name, default of a layer or of a hyperparameter."""
    text = small.TOML.replace('"RIN"', '"RIN, chain + identity"')
    stored(tmp_path, lambda setting: {"test": 0.1}, text)
    if what == "name":
        text = text.replace("[claims", NARROW + "[claims", 1)
    elif what == "layer":
        gains = ChainIdentity.__init__
        monkeypatch.setattr(gains, "__defaults__", (0.8, 0.1, False))
    else:
        monkeypatch.setitem(protocols.HYPERPARAMETERS, "clip", "none")
    models.config.cache_clear()
    study = load(small.read(tmp_path, text))
    models.config.cache_clear()
    assert len(study.missing(study.protocol.settings)) == 12 - remaining
    assert len(study.runs) == (12 if what == "run" else remaining)


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
        error = value + (setting["seed"] - 1) / 1000
        return {"estimation_error": {"mean": error}, "test": error}

    study, where = small.study(tmp_path, outcome), {"layer": "RIN"}
    (part,) = changes_average_to_zero(study, where)
    assert part.answer == steady
    (part,) = reaches_95_percent(study, where)
    assert part.answer == accurate
