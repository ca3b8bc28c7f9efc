"""A study as a user runs it: in processes of its own, stopped and resumed."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import keras
import numpy as np
import pytest
import study_report
from scipy import stats

pytestmark = pytest.mark.skipif(
    keras.backend.backend() != "tensorflow",
    reason="the examples are tried on the default backend",
)
STUDY = pathlib.Path(__file__).parents[1] / "examples" / "study.py"
SMALL = ["--smoke", "--task=adding", "--start=chain", "--length=7"]
SMALL += ["--units=4", "--seed=0"]


def start(output, *arguments):
    return subprocess.Popen(
        [sys.executable, STUDY, *SMALL, f"--output={output}", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def records(output):
    paths = (output / "records").glob("*.json")
    return {path.name: path.stat().st_mtime_ns for path in paths}


def wait_for_a_record(process, output):
    while not records(output) and process.poll() is None:
        time.sleep(0.05)
    return records(output)


@pytest.mark.exhaustive
def test_a_study_that_was_killed_repeats_no_run(tmp_path):
    rates = [f"--learning_rate={rate}" for rate in ("0.001", "0.002", "1e30")]
    process = start(tmp_path, *rates, "--jobs=1")
    before = wait_for_a_record(process, tmp_path)
    process.kill()
    process.communicate()
    assert 1 <= len(before) < 3
    again = start(tmp_path, *rates, "--jobs=2")
    output, errors = again.communicate()
    assert again.returncode == 0, errors
    assert f"/{3 - len(before)} " in errors  # the bar counts what is missing
    after = records(tmp_path)
    assert len(after) == 3
    assert before.items() <= after.items()
    assert "| adding, chain |" in output and " 1 failed |" in output
    runs = json.loads((tmp_path / "results.json").read_text())["runs"]
    failed = [run["error"] for run in runs if "error" in run]
    assert len(failed) == 1
    assert all("FloatingPointError: Epoch 1, step" in one for one in failed)
    assert (tmp_path / "study.png").stat().st_size > 10_000


def children(pid):
    """All processes below one, by what Linux says of each."""
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            name, rest = path.read_text().split("(", 1)[1].rsplit(")", 1)
        except FileNotFoundError:  # it has ended
            continue
        if int(rest.split()[1]) == pid:
            yield int(path.parent.name), name
            yield from children(int(path.parent.name))


@pytest.mark.exhaustive
def test_a_ray_worker_that_dies_costs_no_run(tmp_path):
    pytest.importorskip("ray")
    study = "--ray_address=local", "--jobs=2", "--learning_rate=0.001"
    more = [f"--seed={seed}" for seed in range(1, 5)]
    process = start(tmp_path, *study, *more)
    assert wait_for_a_record(process, tmp_path), process.communicate()
    workers = [
        pid
        for pid, name in children(process.pid)
        if name.startswith("ray::PoolActor")
    ]
    assert len(workers) == 2
    os.kill(workers[0], signal.SIGKILL)
    _, errors = process.communicate()
    assert process.returncode == 0, errors
    runs = json.loads((tmp_path / "results.json").read_text())["runs"]
    assert sorted(run["settings"]["seed"] for run in runs) == list(range(5))
    assert all("score" in run for run in runs)


@pytest.mark.parametrize("seeds", [3, 7])
def test_the_interval_is_the_bootstrap_of_the_median(seeds):
    # The median of n draws is at most the k-th of n scores if more than half
    # of the draws are among the first k: a binomial probability.
    at_most = stats.binom.sf(seeds // 2, seeds, np.arange(seeds + 1) / seeds)
    low, high = np.searchsorted(at_most, [0.025, 0.975])
    settings = {"task": "adding", "start": "chain", "learning_rate": 0.1}
    runs = [{"settings": settings, "score": k} for k in range(1, seeds + 1)]
    runs.append({"settings": settings, "error": "NaN"})
    table = study_report.tables({"runs": runs})["table.md"]
    middle = (seeds + 1) // 2
    assert f" {middle} ({low} to {high}), 1 failed |" in table
