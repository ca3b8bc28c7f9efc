"""`python -m experiments`: which runs it makes, and how it keeps them."""

import fcntl
import json
import os
import pathlib
import re
import signal
import subprocess
import threading
import time
import types

import numpy as np
import pytest
import scripts
from studies import GOOD
from studies import PROTOCOL
from studies import RESULTS
from studies import TINY
from studies import TRAINED
from studies import UNDER_TENSORFLOW
from studies import runs_of

from experiments import __main__ as main
from experiments import pages
from experiments import protocols
from experiments import results
from experiments import runner
from experiments import training
from experiments import verdicts

pytestmark = UNDER_TENSORFLOW


def missing_runs(protocol, folder):
    asked = protocols.all_settings(protocol)
    return runner.missing(runner.stored(protocol, folder), asked)


def make(folder):
    runner.run(TINY, folder, missing_runs(TINY, folder), jobs=1)


def run_here(monkeypatch):
    """Makes runs in this process, which saves the start of another."""
    monkeypatch.setattr(
        runner.futures,
        "ProcessPoolExecutor",
        lambda jobs, *_: runner.futures.ThreadPoolExecutor(jobs),
    )


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


MADE = sorted(RESULTS.glob("*/results.json"))


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
    for more in ("--jobs=1", "--estimate", "--ray_address=local"):
        running = scripts.Running(
            "experiments",
            *("--run=core", f"--protocol={tmp_path}/my_chain.toml", more),
            f"--output={tmp_path}",
        )
        assert "ray" not in more or kill_a_worker_of_ray(running)
        finished = running.end()
        assert finished.returncode == 0, finished.stderr
        if more == "--estimate":
            told = "but for 4 of 6 runs: 2 runs would take about .* hours"
            assert re.search(told, finished.stdout)
            continue
        assert "A chain lowers the loss." in (tmp_path / "mine.md").read_text()
        record = results.read(tmp_path / "my_chain")
        assert len(record["runs"]) == 6
        found.append(sorted(run["test"] for run in record["runs"]))
        record["runs"] = [  # Ray makes the others again
            run for run in record["runs"] if run["layer"] != "RIN"
        ]
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
        BABI_DIR=f"{tmp_path}/none",
        TFDS_DATA_DIR=str(tmp_path),
    ).end()
    assert finished.returncode == 0, finished.stderr
    nothing = f"BABI_DIR names {tmp_path}/none, which does not exist."
    assert f"babi is skipped: {nothing}" in finished.stderr
    for name, images in (
        ("cifar", "cifar10"),
        ("mnist", "mnist"),
        ("characters", "tiny_shakespeare"),
    ):
        lack = f"there is no {images} in TFDS_DATA_DIR"
        assert f"{name} is skipped: {lack}." in finished.stderr
    assert "Not run yet" in (tmp_path / "protocols.md").read_text()


def rates_beyond(best, test):
    rates = [0.001, 0.003]
    protocol = {**PROTOCOL, "grid": [{"layer": ["a"], "learning_rate": rates}]}
    runs = [
        run
        for rate in rates
        for run in runs_of("a", rate, 0.5 if rate == best else 1.5, [test] * 3)
    ]
    found = runner.beyond_the_edges(verdicts.Study(protocol, {"runs": runs}))
    return {settings["learning_rate"] for settings in found}


def test_the_next_rate_is_one_or_three_times_a_power_of_ten():
    assert rates_beyond(0.003, 1.0) == {0.01}


def test_a_model_that_learned_nothing_is_not_extended():
    assert rates_beyond(0.003, 2.0) == set()


def test_the_time_of_a_run_is_added_to_that_of_the_runs_that_have_one(tmp_path):
    one, two, three = protocols.all_settings(TINY)[:3]
    record = {"runs": [one, two], "took": {"runs": 1, "seconds": 2.0}}
    (tmp_path / "results.json").write_text(json.dumps(record))
    runner.store(TINY, tmp_path, three, seconds=1)
    assert results.read(tmp_path)["took"] == {"runs": 2, "seconds": 3.0}


def test_a_run_is_stored_when_nobody_else_reads_or_writes(tmp_path):
    settings = protocols.all_settings(TINY)[0]
    with open(tmp_path / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)
        arguments = TINY, tmp_path, settings, 1
        thread = threading.Thread(target=runner.store, args=arguments)
        thread.start()
        thread.join(0.5)
        waits = thread.is_alive()
    thread.join()
    assert waits and results.read(tmp_path)["runs"] == [settings]
