"""Protocols, runs, statistics and tables of the experiments."""

import json
import os
import pathlib
import re
import signal
import subprocess
import time
import types

import keras
import numpy as np
import pytest
import scripts
from scipy import stats

import keras_rin

pytestmark = pytest.mark.skipif(
    keras.backend.backend() != "tensorflow",
    reason="the experiments train under TensorFlow",
)

from experiments import __main__ as main  # noqa: E402
from experiments import data as tasks  # noqa: E402
from experiments import findings  # noqa: E402
from experiments import layers  # noqa: E402
from experiments import models  # noqa: E402
from experiments import pages  # noqa: E402
from experiments import pictures  # noqa: E402
from experiments import protocols  # noqa: E402
from experiments import results  # noqa: E402
from experiments import runner  # noqa: E402
from experiments import summary  # noqa: E402
from experiments import tables  # noqa: E402
from experiments import training  # noqa: E402
from experiments import verdicts  # noqa: E402

RESULTS = results.RESULTS / "claims"
PROTOCOLS = protocols.read_all()
TRAINED = {n: p for n, p in PROTOCOLS.items() if p["grid"]}
MADE = sorted(RESULTS.glob("*/results.json"))
TINY = {
    "tier": "core",
    "tuned": ["learning_rate"],
    "seeds": [0, 1],
    "fixed": {
        "task": "adding",
        "length": 5,
        "train": 12,
        "units": 3,
        "updates": 4,
        "batch_size": 6,
    },
    "grid": [{"layer": ["RIN"], "learning_rate": [0.001, 0.1]}],
}


def runs_of(layer, rate, validation, test):
    return [
        {
            "layer": layer,
            "learning_rate": rate,
            "seed": seed,
            "validation": validation,
            "test": score,
            "baseline": 2.0,
        }
        for seed, score in enumerate(test)
    ]


def missing_runs(protocol, folder):
    asked = protocols.all_settings(protocol)
    return runner.missing(runner.stored(protocol, folder), asked)


PROTOCOL = {
    "tier": "core",
    "tuned": ["learning_rate"],
    "seeds": [0, 1, 2],
    "grid": [{"layer": ["a", "b"], "learning_rate": [1, 2]}],
}
A, B = ((("layer", name),) for name in "ab")


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


def test_the_table_of_settings_has_all_of_them_on_validation_data():
    runs = runs_of("a", 1, 0.5, [1.0] * 3) + runs_of("a", 2, 0.9, [0.1] * 3)
    del runs[1]["validation"], runs[1]["test"]
    runs[1]["error"] = "The loss is not finite."
    runs += runs_of("b", 1, 1.5, [1.0] * 3) + runs_of("b", 2, 3.0, [0.1] * 3)
    table = tables.of_settings(verdicts.Study(PROTOCOL, {"runs": runs}))
    rows = [line.split("|")[1:-1] for line in table.splitlines()[2:]]
    assert [[cell.strip() for cell in row] for row in rows] == [
        ["a", "0.25, 2 of 3", "0.45, 3 of 3"],
        ["b", "0.75, 0 of 3", "1, 0 of 3"],
    ]


def test_the_table_of_rates_counts_divergence_apart():
    runs = runs_of("a", 1, 0.5, [0.2, 0.4, 0.6])
    runs += runs_of("a", 2, 1.5, [0.1, 0.3, 0.5])
    del runs[1]["validation"], runs[1]["test"], runs[1]["baseline"]
    runs[1]["error"] = "The loss is not finite."
    table = tables.of_rates(verdicts.Study(PROTOCOL, {"runs": runs}))
    cells = [
        [cell.strip() for cell in line.split("|")[1:-1]]
        for line in table.splitlines()[2:]
    ]
    assert cells == [
        ["a", "1", "2 of 3", "1", "0.3 (0.1 to 1)"],
        ["a", "2", "0 of 3", "0", "0.15 (0.05 to 0.25)"],
    ]


@pytest.mark.parametrize("diverged", [False, True])
def test_solving_every_length_means_every_run_of_the_best_rate(diverged):
    runs = [
        {**run, "length": length, "layer": "a"}
        for length in (10, 20)
        for run in runs_of("a", 1, 0.5, [0.2, 0.4, 0.6])
    ]
    if diverged:
        del runs[4]["validation"], runs[4]["test"], runs[4]["baseline"]
        runs[4]["error"] = "The loss is not finite."
    grid = [{"length": [10, 20], "learning_rate": [1]}]
    study = verdicts.Study({**PROTOCOL, "grid": grid}, {"runs": runs})
    first, second = findings.learns_at_every_length(
        study, where={"length": [10, 20]}
    )
    told = "3 of 3 solved, 0 diverged, median loss 0.2"
    assert first == ("10 steps", told, "yes")
    assert second[::2] == ("20 steps", "no" if diverged else "yes")
    if diverged:
        assert second[1].startswith("2 of 3 solved, 1 diverged")


def test_normalized_inputs_have_the_mean_and_variance_of_training_data():
    rng = np.random.default_rng(0)
    raw = tasks.adding_data(rng, length=20, train=500)
    made = tasks.normalized(raw)
    x = raw.splits[0][0].astype("float64")
    mean, deviation = x.mean(axis=(0, 1)), x.std(axis=(0, 1))
    for (before, _), (after, _) in zip(raw.splits, made.splits, strict=True):
        expected = (before - mean) / deviation
        np.testing.assert_allclose(after, expected, atol=1e-4)


def test_adding_can_be_trained_on_shorter_sequences_than_it_is_tested_on(rng):
    made = tasks.adding_data(rng, length=20, train=7, train_length=5)
    shapes = [x.shape for x, _ in made.splits]
    assert shapes == [(7, 5, 2), (1_000, 20, 2), (1_000, 20, 2)]


def test_a_run_adapts_the_network_to_the_data_it_trains_on(monkeypatch):
    seen = []
    monkeypatch.setattr(
        training.keras_rin, "adapt", lambda model, x: seen.append(x)
    )
    settings = protocols.all_settings(TINY)[0]
    found = training.run({**settings, "inputs": "adapted"})
    assert "error" not in found
    assert [x.shape for x in seen] == [(12, 5, 2)]


def test_a_schedule_warms_up_and_falls_to_zero():
    settings = protocols.all_settings(TINY)[0]
    settings = {**settings, "schedule": "cosine", "clip": "global norm 1"}
    settings |= {"updates": 1_000, "recurrent_multiplier": 0.1}
    optimizer = training.optimizer(settings)
    config = optimizer.get_config()
    rate = keras.optimizers.schedules.deserialize(config["learning_rate"])
    rates = [float(rate(n)) for n in (0, training.WARM_UP, 1_000)]
    expected = [0, settings["learning_rate"], 0]
    np.testing.assert_allclose(rates, expected, atol=1e-9)
    assert config["multipliers"] == {"recurrent_kernel": 0.1}
    assert (config["beta_2"], config["global_clipnorm"]) == (0.99, 1.0)


def test_averaged_weights_are_validated_and_tested():
    """Keras too puts the average into the model when a training ends."""
    settings = {**protocols.all_settings(TINY)[0], "averaging": 0.5}
    found = training.run({**settings, "updates": 2})  # one epoch
    keras.utils.set_random_seed(settings["seed"])
    data = tasks.draw(settings, np.random.default_rng(settings["seed"]))
    model = models.build(settings, data)
    model.compile(training.optimizer(settings), data.loss)
    train, validation, test = data.splits
    size = settings["batch_size"]
    model.fit(
        training.batches(train, size, settings["seed"], 1),
        steps_per_epoch=2,
        shuffle=False,
        verbose=0,
    )
    assert found["curve"] == [pytest.approx(found["validation"], rel=1e-3)]
    for split, part in (("validation", validation), ("test", test)):
        expected = model.evaluate(*part, verbose=0)
        assert found[split] == pytest.approx(expected, rel=1e-4)
    last = training.run({**settings, "updates": 2, "averaging": 0})
    assert last["test"] != pytest.approx(found["test"], rel=1e-3)


@pytest.mark.parametrize("layer", ["RIN", "LSTM", "RIN-DT"])
def test_estimation_errors_are_changes_of_hidden_states(layer, rng):
    """Their sum over the steps is the last hidden state."""
    x = rng.normal(size=(200, 9, 1)).astype("float32")
    settings = {"task": "pixels", "layer": layer, "units": 4}
    model = keras.Sequential([layers.build(settings), keras.layers.Dense(3)])
    model(x[:1])
    found = training.estimation_error(settings, model, x)["estimation_error"]
    states = keras.Sequential([model.layers[0]]).predict(x[:128], verbose=0)
    model.layers[0].return_sequences = True
    steps = model.layers[0](x[:128]).numpy()
    change = np.diff(steps, axis=1, prepend=0)
    rms = np.sqrt(np.mean(change**2))
    assert found["mean"] == pytest.approx(states.mean() / 9 / rms, rel=1e-4)
    largest = max(abs(step.mean()) for step in np.rollaxis(change, 1))
    assert found["largest"] == pytest.approx(largest / rms, rel=1e-4)


def test_without_pixels_there_is_no_estimation_error():
    assert training.estimation_error({"task": "babi"}, None, None) == {}


def test_a_curve_that_ends_early_counts_as_the_baseline_from_there():
    runs = runs_of("a", 1, 0.5, [1.0, 1.2, 1.4])
    runs += runs_of("a", 2, 0.9, [0.1, 0.1, 0.1])
    runs[0]["curve"], runs[1]["curve"] = [3.0, 1.0, 0.4, 0.2], [0.6]
    outcome = verdicts.outcomes(PROTOCOL, runs)[A]
    assert outcome.curves == {0: [1.0, 0.5, 0.2, 0.1], 1: [0.3], 2: []}
    expected = {0: 1.8 / 4, 1: 3.3 / 4, 2: 1.0}
    assert outcome.curve_means == pytest.approx(expected)


def test_of_a_protocol_the_first_grid_is_made_first():
    grids = [
        {"layer": ["a", "b"], "learning_rate": [1]},
        {"layer": ["c"], "learning_rate": [1]},
    ]
    made = protocols.all_settings({**PROTOCOL, "grid": grids, "seeds": [0, 1]})
    order = [(run["layer"], run["seed"]) for run in made]
    assert order == [
        *zip("abab", (0, 0, 1, 1), strict=True),
        ("c", 0),
        ("c", 1),
    ]


@pytest.mark.parametrize(
    "mean, answer",
    [(0.01, "yes"), (-0.2, "no"), (0.2, "no"), (0.05, "inconclusive")],
)
def test_mean_changes_are_compared_with_their_root_mean_square(mean, answer):
    runs = runs_of("a", 1, 0.5, [1.0] * 3) + runs_of("a", 2, 0.9, [1.0] * 3)
    for run, noise in zip(runs[:2], (-0.001, 0.001), strict=True):
        run["estimation_error"] = {"mean": mean + noise}

    def parts(where):
        study = verdicts.Study(PROTOCOL, {"runs": runs})
        return findings.changes_average_to_zero(study, where)

    ((condition, found, said),) = parts({"layer": ["a"]})
    assert (condition, said) == ("a", answer)
    assert found.startswith(f"{mean:+.2g} (")
    assert parts({"layer": ["a", "b"]}) == []  # b has no runs


@pytest.mark.parametrize(
    "end, answer", [(0.5, "yes"), (0.6, "no"), (0.52, "inconclusive")]
)
def test_overfitting_is_a_validation_error_that_rises_again(end, answer):
    runs = runs_of("a", 1, 0.5, [1.0] * 3) + runs_of("a", 2, 0.9, [1.0] * 3)
    for run, noise in zip(runs, (0, 0.001, 0.002) * 2, strict=True):
        run["curve"] = [0.9, 0.5, end + noise]
        run["training_curve"] = [0.8, 0.3, 0.125]
    study = verdicts.Study({**PROTOCOL, "within": 0.02}, {"runs": runs})
    ((_, found, said),) = findings.does_not_overfit(study, {"layer": "a"})
    assert said == answer
    assert found.endswith("training error 0.12, test error 1")
    assert findings.does_not_overfit(study, {"layer": "b"}) == []


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


def test_a_run_that_diverges_is_scored_by_its_best_weights(monkeypatch):
    settings = {**protocols.all_settings(TINY)[0], "updates": 8}

    class Diverge(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            if epoch == 2:
                raise FloatingPointError("the loss is nan")

    with monkeypatch.context() as here:
        here.setattr(training, "RestoreOnNaN", Diverge)
        diverged = training.run(settings)
    whole = training.run({**settings, "updates": 4})  # two epochs of two
    assert diverged["error"] == "the loss is nan"
    assert diverged["test"] == pytest.approx(whole["test"], rel=1e-6)
    assert diverged["best_update"] == whole["best_update"]


def test_the_time_of_a_run_is_that_of_its_updates_and_validations(monkeypatch):
    """Two epochs of two updates of 1 s, and 0.5 s of validation in each."""
    compiled, update, validation = 100.0, 1.0, 0.5
    epoch = update * training.TIMED
    ends = np.cumsum([compiled, epoch, epoch, epoch, 0.0, validation])
    clock = types.SimpleNamespace(perf_counter=iter(ends.tolist()).__next__)
    monkeypatch.setattr(training, "time", clock)
    settings = protocols.all_settings(TINY)[0]
    seconds = 2 * (2 * update + validation)
    assert training.estimate(settings) == {**settings, "seconds": seconds}


def test_the_hours_of_a_protocol_are_those_of_its_missing_runs(
    tmp_path, monkeypatch
):
    run_here(monkeypatch)
    monkeypatch.setattr(results, "processor", lambda: "A processor")
    asked = protocols.all_settings(TINY)

    def took_an_hour(settings, own):
        return {**settings, "seconds": 3600}

    monkeypatch.setattr(training, "estimate", took_an_hour)
    runner.estimate(TINY, tmp_path, asked, jobs=1)
    estimate = results.read(tmp_path / "estimate")
    assert len(estimate["models"]) == 1  # of four runs
    monkeypatch.setattr(training, "estimate", None)  # each is timed once
    runner.estimate(TINY, tmp_path, asked, jobs=1)
    assert results.read(tmp_path / "estimate") == estimate
    study = verdicts.Study(TINY, {"runs": asked[:1]}, estimate)
    assert runner.hours(study, asked) == 1.5  # of three runs, on two cores
    assert pages._not_run(study, asked) == (
        "Not run yet, but for 1 of 4 runs: 3 runs would take about 1.5 hours "
        "on two cores (A processor)."
    )
    grid = [{"layer": ["RIN", "LSTM"], "learning_rate": [0.001, 0.1]}]
    study = verdicts.Study({**TINY, "grid": grid}, None, estimate)
    asked = protocols.all_settings(study.protocol)
    assert runner.hours(study, asked) is None  # LSTM was not timed
    assert pages._not_run(study, asked) == "Not run yet."


@pytest.mark.parametrize(
    "claim, layers, permuted",
    [
        ({"compare": [["a", "b"]], "where": {"permuted": True}}, "ab", {True}),
        ({"finding": "x", "where": {"layer": ["a", "c"]}}, "ac", {True, False}),
        ({"finding": "x"}, "abc", {True, False}),
    ],
)
def test_a_claim_needs_the_runs_of_its_models(claim, layers, permuted):
    grid = {"layer": ["a", "b", "c"], "permuted": [True, False]}
    protocol = {**PROTOCOL, "grid": [grid | {"learning_rate": [1, 2]}]}
    needed = protocols.settings_of(claim, protocol)
    assert {settings["layer"] for settings in needed} == set(layers)
    assert {settings["permuted"] for settings in needed} == permuted
    assert len(needed) == len(layers) * len(permuted) * 2 * 3  # rates, seeds


def test_the_table_of_texts_tells_hours_and_processors():
    claim = {"about": "nonnormal", "source": "Orhan", "statement": "A."}
    claim |= {"compare": [["a", "b"]], "expect": "better", "within": 0.05}
    protocol = {**PROTOCOL, "claims": [claim]}
    runs = [
        {**run, "processor": "Fast"} if name == "a" else run
        for name in "ab"
        for rate in (1, 2)
        for run in runs_of(name, rate, 1.0, [1.0, 0.9, 1.1])
    ]
    took = {"runs": 3, "seconds": 1800.0}  # of twelve runs
    models = [{"layer": name, "seconds": 1200} for name in "ab"]
    estimate = {"models": models, "processor": "Slow"}
    rows = []
    for record in ({"runs": runs, "took": took}, None):
        study = verdicts.Study(protocol, record, estimate)
        table = pages.of_texts({"p": study})["texts.md"].splitlines()[2]
        rows.append([cell.strip() for cell in table.split("|")[4:-1]])
    hours = "2", "2 (estimated)"  # twelve runs of 20 minutes, two at a time
    assert rows[0][1:] == [hours[0], "Fast; other runs: not recorded"]
    assert rows[1] == ["not tested", hours[1], "Slow"]


@pytest.mark.parametrize(
    "best, rates", [(0.001, [0.0003]), (0.003, []), (0.01, [0.03])]
)
def test_rates_are_tried_beyond_the_edge_where_the_best_is(
    best, rates, tmp_path
):
    grid = [{"layer": ["a"], "learning_rate": [0.001, 0.003, 0.01]}]
    protocol = {**PROTOCOL, "grid": grid, "fixed": {"units": 3}}
    runs = [
        {**settings, "validation": 1 - (settings["learning_rate"] == best) / 2}
        | {"test": 0.5, "baseline": 1.0}
        for settings in protocols.all_settings(protocol)
    ]
    record = {"protocol": protocol, "runs": runs}
    (tmp_path / "results.json").write_text(json.dumps(record))
    assert runner.beyond_the_edges(runner.stored(protocol, tmp_path)) == [
        {"units": 3, "layer": "a", "learning_rate": rate, "seed": seed}
        for rate in rates
        for seed in (0, 1, 2)
    ]
    more = [
        {**run, "learning_rate": 0.03, "validation": 0.9}
        for run in runs
        if run["learning_rate"] == 0.01
    ]
    for stored in (more[:2], more[2:]):  # interrupted, and made
        record["runs"] += stored
        (tmp_path / "results.json").write_text(json.dumps(record))
        beyond = runner.beyond_the_edges(runner.stored(protocol, tmp_path))
        if best == 0.01:
            left = [] if stored == more[2:] else [2]
            assert [settings["seed"] for settings in beyond] == left


def test_a_rate_that_is_given_has_no_edges():
    grid = [{"layer": ["a"], "learning_rate": [1]}]
    runs = runs_of("a", 1, 0.5, [1.0] * 3)
    study = verdicts.Study({**PROTOCOL, "grid": grid}, {"runs": runs})
    assert study.outcomes
    assert runner.beyond_the_edges(study) == []


def test_complete_models_are_extended_before_others_are_made(monkeypatch):
    runs = runs_of("a", 1, 0.5, [1.0] * 3) + runs_of("a", 2, 0.9, [1.0] * 3)
    study = verdicts.Study(PROTOCOL, {"runs": runs})
    settings = protocols.all_settings(PROTOCOL)
    for extend, layer, rates in ((True, "a", {0.3}), (False, "b", {1, 2})):
        monkeypatch.setattr(main, "FLAGS", types.SimpleNamespace(extend=extend))
        wanted = main.wanted_runs(study, settings)
        assert {one["layer"] for one in wanted} == {layer}
        assert {one["learning_rate"] for one in wanted} == rates


@pytest.mark.parametrize(
    "answers, verdict",
    [
        (["yes", "yes"], "holds"),
        (["yes", "inconclusive"], "holds in part"),
        (["no", "yes"], "holds in part"),
        (["yes", pages.UNTESTED], "holds in part"),
        (["no", pages.UNTESTED], "inconclusive"),
        (["no", "inconclusive"], "inconclusive"),
        ([verdicts.UNSOLVED, verdicts.UNSOLVED], verdicts.UNSOLVED),
        ([verdicts.UNSOLVED, "no"], "inconclusive"),
        (["no", "no"], "does not hold"),
    ],
)
def test_a_claim_of_several_comparisons(answers, verdict):
    assert verdicts.verdict(answers) == verdict


@pytest.mark.parametrize("name", TRAINED)
def test_every_layer_of_a_protocol_is_one_of_keras(name):
    protocol = TRAINED[name]
    seen = set()
    for one in protocols.all_settings(protocol):
        if "layer" in one and one["layer"] not in seen:
            seen.add(one["layer"])
            assert layers.build(one, protocol.get("layers")).built is False


def test_a_layer_is_its_class_with_its_config():
    settings = {"layer": "mine", "units": 3, "noise": 0.25}
    cell = {"class_name": "keras_rin>RINCell", "config": {"units": "$units"}}
    own = {"mine": {"class_name": "keras_rin>NoisyRNN"}}
    own["mine"] |= {"cell": cell, "stddev": "$noise"}
    layer = layers.build(settings, own, return_sequences=True)
    assert isinstance(layer, keras_rin.layers.NoisyRNN)
    assert (layer.stddev, layer.return_sequences) == (0.25, True)
    layer = layers.build({"layer": "LSTM mixed", "units": 5})
    layer.build((None, None, 2))
    gates = np.split(layer.cell.recurrent_kernel.numpy(), 4, axis=1)
    np.testing.assert_allclose(gates[2], 1.02 * np.eye(5, k=1), rtol=1e-6)
    np.testing.assert_array_equal(gates[0], gates[3])


def test_the_noisy_irnn_has_the_initialization_of_a_rin():
    matrix = layers.IdentityAndNoise()((200, 200)) - np.eye(200)
    assert np.std(matrix) == pytest.approx(0.001, rel=0.02)
    assert abs(np.mean(matrix)) < 2e-5


BAD = {
    "unknown layer: LSTN": ("LSTM", "LSTN"),
    "unknown hyperparameter: unit": ("units =", "unit ="),
    "unknown task: coping": ('"copying"', '"coping"'),
    "unknown tier: soon": ('tier = "core"', 'tier = "soon"'),
    "unknown value of `clip`: all": ("units =", 'clip = "all"\nunits ='),
    "`setting` is missing": ("setting", "sitting"),
    "no two models to compare": ('{ layer = "RIN" }', '{ layer = "GRU" }'),
    "Expected": ("[fixed]", "[fixed"),
}
GOOD = """
question = "Which?"
setting = "Small."
tier = "core"
tuned = ["learning_rate"]
seeds = [0]
[fixed]
task = "copying"
units = 3
[[grid]]
layer = ["RIN", "LSTM"]
learning_rate = [1e-3, 1e-2]
[[claims]]
compare = [[{ layer = "RIN" }, { layer = "LSTM" }]]
statement = "Better."
"""


@pytest.mark.parametrize("said", BAD)
def test_what_is_wrong_in_a_protocol_is_said_before_it_trains(said, tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(GOOD)
    assert len(protocols.all_settings(protocols.read(path))) == 4
    path.write_text(GOOD.replace(*BAD[said]))
    with pytest.raises(ValueError, match=f"mine.toml: .*{said}"):
        protocols.read(path)


def test_models_are_compared_that_are_equal_in_all_else():
    models = [
        {"layer": layer, "length": length}
        for layer in ("a", "b", "c")
        for length in (1, 2, 3)
    ]
    a, b, c = ({"layer": name} for name in "abc")
    claim = {"compare": [[a, b], [a, c]], "where": {"length": [1, 3]}}
    assert protocols.comparisons(claim, models) == [
        ({"layer": "a", "length": n}, {"layer": other, "length": n})
        for other in ("b", "c")
        for n in (1, 3)
    ]
    claim = {"compare": [[{"length": 2}, {"length": 1}]], "where": b}
    one, other = models[4], models[3]
    assert protocols.comparisons(claim, models) == [(one, other)]


@pytest.mark.parametrize(
    "gain, answer", [(0.1, "yes"), (-0.1, "no"), (0, "inconclusive")]
)
def test_layers_are_compared_over_tasks(gain, answer):
    losses = [0.2, 0.5, 0.8, 0.6]
    noise = [0.01, -0.01, 0.01, -0.01]
    runs = [
        {"layer": layer, "number": number, "learning_rate": 0.1, "seed": 0}
        | {"validation": loss, "test": loss, "baseline": 1.0}
        for number, both in enumerate(zip(losses, noise, strict=True))
        for layer, loss in (
            ("a", both[0] - gain + both[1]),
            ("b", both[0]),
            ("c", 0),
        )
    ]
    grid = [{"layer": [*"abc"], "number": [*range(4)], "learning_rate": [0.1]}]
    protocol = {**PROTOCOL, "grid": grid, "fixed": {}, "seeds": [0]}
    where = {"layer": ["a", "b"]}

    def parts(runs):
        study = verdicts.Study(protocol, {"runs": runs})
        return findings.lower_over_tasks(study, where)

    ((condition, found, said),) = parts(runs)
    low, high = stats.ttest_1samp(
        gain - np.array(noise), 0
    ).confidence_interval()
    assert (condition, said) == ("4 tasks", answer)
    assert found == f"{gain:+.2g} ({low:.2g} to {high:.2g})"
    assert parts(runs[:-3]) == []


def test_every_finding_has_a_claim():
    claimed = {
        claim["finding"]
        for protocol in PROTOCOLS.values()
        for claim in protocol["claims"]
        if "finding" in claim
    }
    assert claimed == {
        name
        for name, found in vars(findings).items()
        if getattr(found, "__module__", "") == findings.__name__
        and not name.startswith("_")
    }


@pytest.mark.parametrize("path", MADE, ids=lambda path: path.parent.name)
def test_runs_are_those_of_the_protocol_and_made_once(path):
    """Those beyond the grid differ from one of its runs in the rate alone."""
    record, protocol = results.read(path.parent), TRAINED[path.parent.name]
    asked = protocols.all_settings(protocol)
    names = set().union(*asked)
    made = [
        {name: run[name] for name in run if name in names}
        for run in record["runs"]
    ]
    assert all(made.count(settings) == 1 for settings in made)
    beyond = [settings for settings in made if settings not in asked]
    missing = missing_runs(protocol, path.parent)
    assert len(made) - len(beyond) + len(missing) == len(asked)
    asked = [{**settings, "learning_rate": None} for settings in asked]
    assert all({**one, "learning_rate": None} in asked for one in beyond)


def test_the_tables_are_those_of_the_records():
    studies = {n: runner.stored(p, RESULTS / n) for n, p in PROTOCOLS.items()}
    for made in (
        pages.of_tiers,
        pages.of_comparisons,
        pages.of_texts,
        pages.of_claims,
        pages.of_protocols,
    ):
        for name, text in made(studies).items():
            assert (RESULTS / name).read_text() == text


def test_a_star_says_that_the_best_may_lie_beyond():
    runs = runs_of("a", 1, 0.9, [1.0] * 3) + runs_of("a", 2, 0.5, [1.0] * 3)
    outcome = verdicts.outcomes(PROTOCOL, runs)[A]
    assert list(tables._chosen(outcome)) == ["2*"]
    runs += runs_of("a", 3, 0.7, [1.0] * 3)
    outcome = verdicts.outcomes(PROTOCOL, runs)[A]
    assert list(tables._chosen(outcome)) == ["2"]


def gains_study():
    grid = {"layer": ["both"], "gain": [0.0, 0.5], "other": [1.0, 2.0, 3.0]}
    protocol = {"tuned": ["gain", "other"], "seeds": [0], "fixed": {}}
    protocol["tier"] = "night"
    protocol["grid"] = [grid]
    runs = [
        {"layer": "both", "gain": gain, "other": other, "seed": 0}
        | {"validation": gain + other / 10, "test": 0.5, "baseline": 1.0}
        for gain in grid["gain"]
        for other in grid["other"]
    ]
    return verdicts.Study(protocol, {"protocol": protocol, "runs": runs})


def test_two_hyperparameters_are_drawn_as_a_map():
    study = gains_study()
    drawn = pictures.of(study)
    assert drawn.keys() == {"models.png", "settings.png"}
    axes, _ = drawn["settings.png"](study).axes
    assert [text.get_text() for text in axes.texts] == [
        *("0.10", "0.60"),  # other = 1, gain = 0 and 0.5
        *("0.20", "0.70"),
        *("0.30", "0.80"),
    ]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("gain", "other")


def test_curves_are_drawn_if_a_protocol_asks_for_them():
    runs = runs_of("a", 1, 0.5, [1.0, 1.2, 1.4])
    for run in runs:
        run["curve"] = [run["baseline"] * 0.9, run["baseline"] * 0.5]
    protocol = {**PROTOCOL, "grid": [{"layer": ["a"], "learning_rate": [1]}]}
    study = verdicts.Study({**protocol, "curves": True}, {"runs": runs})
    figure = pictures.of(study)["curves.png"](study)
    line = figure.axes[0].lines[0]
    np.testing.assert_allclose(line.get_ydata(), [0.9, 0.5])
    assert figure.axes[0].get_yscale() == "linear"
    quiet = verdicts.Study(protocol, {"runs": runs})
    assert "curves.png" not in pictures.of(quiet)


def test_curves_of_each_length_have_a_panel_logarithmic_if_one_is_low():
    grid = {"length": [1, 2], "layer": ["a", "b"]}
    protocol = {"tier": "core", "tuned": [], "seeds": [0], "grid": [grid]}
    protocol |= {"curves": True, "panels": "length"}
    runs = [
        {"length": length, "layer": layer, "seed": 0, "baseline": 1.0}
        | {"curve": [0.9, end], "validation": end, "test": end}
        for length, layer, end in [
            *((1, "a", 0.01), (1, "b", 0.5)),
            *((2, "a", 0.7), (2, "b", 0.8)),
        ]
    ]
    study = verdicts.Study(protocol, {"runs": runs})
    figure = pictures.of(study)["curves.png"](study)
    (legend,), panels = figure.legends, figure.axes
    assert [text.get_text() for text in legend.get_texts()] == ["a", "b"]
    assert [axes.get_title("left") for axes in panels] == [
        *("length 1", "length 2"),
    ]
    ends = [[*axes.lines[n].get_ydata()][-1] for axes in panels for n in (0, 1)]
    assert ends == [0.01, 0.5, 0.7, 0.8]
    assert {axes.get_yscale() for axes in panels} == {"log"}


def test_each_task_has_a_panel_with_the_best_model_on_top():
    grid = {"task": ["add", "copy"], "layer": ["a", "b"]}
    protocol = {"tier": "core", "tuned": [], "seeds": [0], "grid": [grid]}
    protocol["panels"] = "task"
    scores = {("add", "a"): 0.2, ("add", "b"): 0.1}
    scores |= {("copy", "a"): 0.3, ("copy", "b"): 0.4}
    runs = [
        {"task": task, "layer": layer, "seed": 0, "baseline": 1.0}
        | {"test": score, "validation": score}
        for (task, layer), score in scores.items()
    ]
    study = verdicts.Study(protocol, {"runs": runs})
    panels = pictures.of(study)["models.png"](study).axes
    assert [axes.get_title("left") for axes in panels] == ["add", "copy"]
    names = [[text.get_text() for text in a.get_yticklabels()] for a in panels]
    assert names == [["b", "a"], ["a", "b"]]  # the best first
    assert all(axes.get_xlim()[1] >= 0.4 for axes in panels)


def test_a_section_tells_how_its_runs_were_made_or_that_they_were_not(tmp_path):
    words = {"question": "Who?", "setting": "Where.", "differs": "From what."}
    study = gains_study()
    protocol = {**words, **study.protocol}

    def section(record):
        made = {"a_b": verdicts.Study(protocol, record)}
        return pages.of_protocols(made)["protocols.md"]

    text = section(None)
    assert text.startswith("### a b\n\n**Who?**\n\nWhere. From what.\n")
    assert "--run=night --protocol=a_b\n" in text
    assert text.endswith("\n\nNot run yet.\n")
    took = {"runs": 6, "seconds": 300}
    versions = {"keras": "3", "tensorflow": "2"}
    record = {**study.record, "took": took, "versions": versions}
    record["machine"] = "a machine"
    text = section({**record, "runs": record["runs"][:4]})
    assert "Not run yet, but for 4 of 6 runs.\n" in text
    text = section(record)
    told = "6 of 6 runs, 1 seeds; keras 3, tensorflow 2; 5 minutes, a machine."
    assert told in text
    assert tables.of_models(study).strip() in text


def test_the_runs_of_a_tier_are_counted():
    study = gains_study()
    study.runs.pop()
    night = study.protocol
    others = {"b": {**night, "tier": "core"}, "c": night}
    studies = {n: verdicts.Study(one) for n, one in others.items()}
    text = pages.of_tiers({"a": study, **studies})["tiers.md"]
    rows = [line.replace("|", " ").split() for line in text.splitlines()]
    assert ["core", "1", "6", "0"] in rows
    assert ["night", "2", "12", "5"] in rows


def test_comparisons_of_a_claim_are_told_apart():
    one, two = {"train": 1, "layer": "a"}, {"train": 2, "layer": "a"}
    with_b = [(case, {**case, "layer": "b"}) for case in (one, two)]
    told = [pages.condition(pair, with_b) for pair in with_b]
    assert told == ["training samples 1", "training samples 2"]
    with_c = [*with_b[:1], (one, {**one, "layer": "c"})]
    told = [pages.condition(pair, with_c) for pair in with_c]
    assert told == ["vs. b", "vs. c"]
    with_a = [(other, one) for one, other in with_c]
    told = [pages.condition(pair, with_a) for pair in with_a]
    assert told == ["b", "c"]
    assert pages.condition(with_b[0], with_b[:1]) == ""


def test_a_claim_has_a_row_for_its_source_and_one_for_each_comparison():
    claim = {"statement": "A.", "source": "us", "published": "none"}
    one = ("", "-1 (-2 to 0)", "yes")
    first, source = ["A.", "-1 (-2 to 0)", "**holds**"], ["*us*", "*none*", ""]
    assert pages._rows(claim, [one], "holds") == [first, source]
    late = {**claim, "after": "the runs"}
    (_, (said, *_)) = pages._rows(late, [one], "holds")
    assert said == "*us; defined after the runs*"
    two = [("task 1", "-1", "yes"), ("task 2", "+1", "inconclusive")]
    assert pages._rows(claim, two, "holds in part") == [
        ["A.", "", "**holds in part**"],
        source,
        ["– task 1", "-1", "holds"],
        ["– task 2", "+1", "inconclusive"],
    ]


def test_a_claim_is_answered_where_its_runs_are_made():
    claim = {"about": "mine", "statement": "A.", "source": "Orhan"}
    claim |= {"compare": [["a", "b"]], "expect": "better", "within": 0.05}
    claim["published"] = "none"
    grid = {"length": [1, 2], "layer": ["a", "b"], "learning_rate": [1]}
    protocol = {**PROTOCOL, "grid": [grid], "claims": [claim]}
    runs = [
        {**run, "length": length}
        for length in (1, 2)
        for layer, losses in (("a", [0.4, 0.5, 0.3]), ("b", [1.0, 1.2, 1.1]))
        for run in runs_of(layer, 1, 0.5, losses)
    ]
    found = {}
    for count in (12, 9, 3):
        study = verdicts.Study(protocol, {"runs": runs[:count]})
        parts, _ = pages._tested(claim, study, "p")
        found[count] = [(of, answer) for of, _, answer in parts]
        (text,) = pages.of_comparisons({"p": study}).values()
        compared = int(text.splitlines()[2].split("|")[2])
        assert compared == [answer for *_, answer in parts].count("yes")
    assert found == {
        12: [("length 1", "yes"), ("length 2", "yes")],
        9: [("length 1", "yes"), ("length 2", "not tested")],
        3: [],
    }


def test_comparisons_that_no_model_solved_are_counted_as_such():
    claim = {"compare": [["a", "b"], ["b", "a"]]}
    claim |= {"expect": "better", "within": 0.05}
    runs = [
        run
        for layer in "ab"
        for rate in (1, 2)
        for run in runs_of(layer, rate, 2.0, [2.0] * 3)
    ]
    study = verdicts.Study({**PROTOCOL, "claims": [claim]}, {"runs": runs})
    (text,) = pages.of_comparisons({"mine": study}).values()
    counts = [line.split("|")[2].strip() for line in text.splitlines()[2:]]
    assert counts == ["2", "0", "0", "2"]


def test_every_claim_is_in_the_tables_once():
    families = {c["about"] for p in PROTOCOLS.values() for c in p["claims"]}
    pages = [(RESULTS / f"{family}.md").read_text() for family in families]
    lines = [line for page in pages for line in page.splitlines()]
    cells = [line.split(" |")[0].strip("| ") for line in lines]
    claims = [
        claim["statement"]
        for protocol in PROTOCOLS.values()
        for claim in protocol["claims"]
    ]
    for statement in claims:
        assert cells.count(statement) == claims.count(statement), statement


def test_models_are_told_by_the_settings_that_differ():
    lengths = [{"layer": "a", "length": n, "updates": 10 * n} for n in (1, 2)]
    assert tables.told_by(lengths, ["layer", "length", "updates"]) == ["length"]
    grids = [
        {"task": "copying", "train": 5, "layer": "a"},
        {"task": "copying", "train": 5, "layer": "b"},
        {"task": "pixels", "images": "digits", "layer": "a"},
        {"task": "pixels", "images": "mnist", "train": 5, "layer": "a"},
        {"task": "text", "train": 5, "layer": "a"},
    ]
    assert tables.told_by(grids, ["task", "train", "layer", "images"]) == [
        "task",
        "layer",
        "images",
    ]
    alike = [{"layer": "a", "units": 5}]
    assert tables.told_by(alike, ["layer", "units"]) == ["layer"]


def test_bools_numbers_and_missing_settings_are_cells_of_a_table():
    cells = [tables._cell(value) for value in (True, False, 0.01, "a", None)]
    assert cells == ["yes", "no", "0.01", "a", ""]


def test_a_line_of_text_begins_with_no_plus():
    text = pages._wrapped(f"{'x' * 40} {'y' * 46} + noise, {'z' * 80}")
    assert len(text.splitlines()) > 1
    assert not any(line.startswith("+") for line in text.splitlines())


def test_tasks_of_babi_are_called_tasks():
    assert tables.label([("layer", "a"), ("number", 4)]) == "a, task 4"
    assert tables.label([("layer", "a"), ("units", 4)]) == "a, units 4"


def make(folder):
    runner.run(TINY, folder, missing_runs(TINY, folder), jobs=1)


def run_here(monkeypatch):
    """Makes runs in this process, which saves the start of another."""
    monkeypatch.setattr(
        runner.futures,
        "ProcessPoolExecutor",
        lambda jobs, *_: runner.futures.ThreadPoolExecutor(jobs),
    )


@pytest.mark.exhaustive
def test_only_missing_runs_are_made_and_a_new_process_makes_the_same(
    tmp_path, monkeypatch
):
    with monkeypatch.context() as here:
        run_here(here)
        make(tmp_path)
    record = results.read(tmp_path)
    assert len(record["runs"]) == record["took"]["runs"] == 4
    again = record["runs"].pop(1)
    (tmp_path / "results.json").write_text(json.dumps(record))
    make(tmp_path)
    stored = results.read(tmp_path)
    assert stored["runs"] == [*record["runs"], again]  # in a new process
    make(tmp_path)
    assert results.read(tmp_path) == stored


def test_processes_end_after_a_number_of_runs(tmp_path, monkeypatch):
    pools = []

    def pool(jobs, *_):
        pools.append(jobs)
        return runner.futures.ThreadPoolExecutor(jobs)

    monkeypatch.setattr(runner.futures, "ProcessPoolExecutor", pool)
    monkeypatch.setattr(runner, "RUNS_OF_A_PROCESS", 3)
    monkeypatch.setattr(training, "run", lambda settings, own: settings)
    make(tmp_path)
    assert pools == [1, 1]  # three runs, and one
    assert not missing_runs(TINY, tmp_path)


def test_ctrl_c_keeps_the_runs_that_have_ended(tmp_path, monkeypatch):
    run_here(monkeypatch)
    made = []

    def run(settings, own):
        made.append(settings)
        if len(made) == 3:
            raise KeyboardInterrupt
        return {**settings, "validation": 1.0, "test": 1.0, "baseline": 1.0}

    monkeypatch.setattr(training, "run", run)
    with pytest.raises(KeyboardInterrupt):
        make(tmp_path)
    stored = results.read(tmp_path)["runs"]
    assert [run["seed"] for run in stored[:2]] == [0, 0]
    monkeypatch.setattr(training, "run", lambda settings, own: settings)
    make(tmp_path)
    assert len(results.read(tmp_path)["runs"]) == 4


def test_two_commands_on_one_folder_lose_no_run(tmp_path):
    one, other = (
        {**settings, "baseline": 1.0}
        for settings in protocols.all_settings(TINY)[:2]
    )
    record = {"runs": [one], "took": {"runs": 1, "seconds": 2.0}}
    (tmp_path / "results.json").write_text(json.dumps(record))
    runner.store(TINY, tmp_path, other, seconds=1)  # has not read the other's
    stored = results.read(tmp_path)
    assert stored["runs"] == [one, other]
    assert stored["took"] == {"runs": 2, "seconds": 3.0}


def kill_a_worker_of_ray(started_by):
    """Kills the first worker that makes a run of a process, if one comes."""
    while started_by.is_alive():
        listed = subprocess.run(
            ["ps", "-eo", "pid=,ppid=,args="], capture_output=True, text=True
        )
        rows = [line.split(None, 2) for line in listed.stdout.splitlines()]
        parents = {pid: parent for pid, parent, *_ in rows}
        for pid, _, *command in rows:
            if not re.match(r"ray::run\b", "".join(command)):
                continue
            above = pid
            while above in parents and above != str(started_by.process.pid):
                above = parents[above]
            if above in parents:
                os.kill(int(pid), signal.SIGKILL)
                return True
        time.sleep(0.05)
    return False


@pytest.mark.exhaustive
def test_a_protocol_of_the_page_runs_here_and_on_ray(tmp_path):
    """Ends with a verdict; a run of Ray whose worker dies is made again."""
    pytest.importorskip("ray")
    page = pathlib.Path(results.RESULTS.parent / "experiments.md").read_text()
    toml = page.split("```toml\n")[1].split("```")[0]
    toml = toml.replace("[0, 1, 2, 3, 4]", "[0, 1]")
    toml = toml.replace("[1e-3, 3e-3, 1e-2]", "[1e-3]")
    (tmp_path / "my_chain.toml").write_text(toml)
    found = []
    for more in ("--estimate", "--jobs=1", "--ray_address=local"):
        running = scripts.Running(
            "experiments",
            *("--run=core", f"--protocol={tmp_path}/my_chain.toml", more),
            f"--output={tmp_path}",
        )
        assert "ray" not in more or kill_a_worker_of_ray(running)
        finished = running.end()
        assert finished.returncode == 0, finished.stderr
        if more == "--estimate":
            told = r"Not run yet: 6 runs would take about [\d.e-]+ hours"
            assert re.search(told, finished.stdout)
            continue
        assert "A chain lowers the loss." in (tmp_path / "mine.md").read_text()
        record = results.read(tmp_path / "my_chain")
        assert len(record["runs"]) == 6
        found.append(sorted(run["test"] for run in record["runs"]))
        del record["runs"][0]  # which Ray makes again
        path = tmp_path / "my_chain" / "results.json"
        path.write_text(json.dumps(record))
    np.testing.assert_allclose(*found, rtol=1e-5)


def test_a_protocol_that_is_wrong_is_refused(tmp_path):
    (tmp_path / "mine.toml").write_text(GOOD.replace("LSTM", "LSTN"))
    finished = scripts.run(
        "experiments",
        f"--protocol={tmp_path}/mine.toml",
        f"--output={tmp_path}",
    )
    assert finished.returncode != 0
    assert "mine.toml: unknown layer: LSTN. Known are GRU" in finished.stderr


def test_a_protocol_whose_data_are_missing_is_skipped(tmp_path):
    finished = scripts.Running(
        "experiments",
        *("--run=night", "--protocol=cifar", "--protocol=babi"),
        *("--protocol=mnist", "--protocol=characters"),
        f"--output={tmp_path}",
        IMAGES_NPZ="",
        BABI_DIR=f"{tmp_path}/none",
        TFDS_DATA_DIR=str(tmp_path),
    ).end()
    assert finished.returncode == 0, finished.stderr
    assert "cifar is skipped: IMAGES_NPZ is not set." in finished.stderr
    nothing = f"BABI_DIR names {tmp_path}/none, which does not exist."
    assert f"babi is skipped: {nothing}" in finished.stderr
    for name, images in (
        ("mnist", "mnist"),
        ("characters", "tiny_shakespeare"),
    ):
        lack = f"there is no {images} in TFDS_DATA_DIR"
        assert f"{name} is skipped: {lack}." in finished.stderr
    assert "Not run yet" in (tmp_path / "protocols.md").read_text()


def test_a_loss_that_is_not_finite_is_a_result():
    settings = protocols.all_settings(TINY)[0]
    found = training.run({**settings, "learning_rate": float("nan")})
    assert "not finite" in found["error"]
    assert found.items() >= {**settings, "seed": 0}.items() - {
        ("learning_rate", 0.001)
    }


def test_the_numbers_of_the_readme_are_those_of_the_results():
    path = RESULTS.parent / "summary.md"
    assert path.read_text() == summary.table(), "python -m experiments.summary"


def test_pooled_pixels_are_the_means_of_squares(rng):
    images = rng.integers(0, 256, size=(3, 4, 6, 2), dtype="uint8")
    pooled = tasks.pool(images, 2)
    assert pooled.shape == (3, 2, 3, 2)
    corner = images[1, 2:, 4:, 1].mean() / 255
    assert pooled[1, 1, 2, 1] == pytest.approx(corner)


def test_images_of_a_file_are_pooled_to_mean_0_and_variance_1(
    rng, tmp_path, monkeypatch
):
    file = tmp_path / "images.npz"
    monkeypatch.setenv("IMAGES_NPZ", str(file))
    x = rng.integers(0, 256, size=(50, 4, 4, 3), dtype="uint8")
    y = np.arange(50) % 10
    np.savez(file, x_train=x, y_train=y, x_test=x, y_test=y)
    settings = {"task": "images", "images": "npz", "pooled": 2}
    data = tasks.draw(settings, rng)
    assert [x.shape for x, _ in data.splits] == [
        (n, 2, 2, 3) for n in (45, 5, 50)
    ]
    assert data.splits[0][0].mean() == pytest.approx(0, abs=1e-5)
    assert data.splits[0][0].std() == pytest.approx(1, abs=1e-5)
    assert data.baseline == pytest.approx(0.9)


def test_the_error_on_babi_is_the_share_of_wrong_answers(tmp_path, monkeypatch):
    monkeypatch.setenv("BABI_DIR", str(tmp_path))
    story = "1 Ann is in the hall.\n2 Where is Ann?\thall\t1\n"
    for kind in ("train", "test"):
        (tmp_path / f"qa1_where_{kind}.txt").write_text(story * 20)
    data = tasks.babi_data(None, number=1)
    model = models.build({"task": "babi", "layer": "RIN", "units": 3}, data)
    x, y = data.splits[2]
    assert model(x).shape == (20, data.answers)
    right = keras.ops.one_hot(y, data.answers)
    assert float(np.mean(data.score(y, right))) == 0
    assert float(np.mean(data.score(y, 1 - right))) == 1
    assert data.baseline == 0


@pytest.mark.skipif(
    not pathlib.Path(os.environ.get("TFDS_DATA_DIR", "none"))
    .joinpath("tiny_shakespeare")
    .exists(),
    reason="TFDS_DATA_DIR names no folder with tiny_shakespeare in it",
)
def test_characters_are_those_that_come_next(rng):
    data = tasks.characters_data(rng, length=10, train=7)
    (x, y), validation, test = data.splits
    assert len(x) == len(validation[0]) == len(test[0]) == 7
    np.testing.assert_array_equal(x.argmax(axis=2)[:, 1:], y[:, :-1])
    assert data.answers == x.shape[-1]
