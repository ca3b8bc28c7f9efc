"""Which runs are made, and how they are kept."""

import json
import os
import re
import signal
import subprocess
import sys
import time
import types

import pytest
import small

from engine import data
from engine import protocol as protocols
from engine import runner
from engine.__main__ import main
from engine.record import STUDIES
from engine.study import load
from engine.study import read_lines

ONE_MODEL = small.TOML.split("[claims")[0].replace(', "IRNN"', "")


def start(*arguments):
    return subprocess.Popen(
        [sys.executable, "-m", "engine", *map(str, arguments)],
        cwd=STUDIES,
        env=os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,  # a kill reaches its processes too
    )


def test_a_killed_study_resumes_and_ends_as_an_uninterrupted_one(
    tmp_path, monkeypatch
):
    def in_threads(jobs, *_):
        return runner.futures.ThreadPoolExecutor(jobs)

    monkeypatch.setattr(runner.futures, "ProcessPoolExecutor", in_threads)
    protocol = small.read(tmp_path / "killed", ONE_MODEL)
    killed = start("run", tmp_path / "killed", "--jobs=1")
    while len(read_lines(protocol)) < 2:
        assert killed.poll() is None, killed.communicate()[1]
        time.sleep(0.02)
    os.killpg(killed.pid, signal.SIGKILL)
    killed.communicate()
    stored = (tmp_path / "killed" / "runs.jsonl").read_text().splitlines()[1:]
    main(["run", str(tmp_path / "killed"), "--jobs=1"])
    first, *lines = (tmp_path / "killed/runs.jsonl").read_text().splitlines()
    assert lines[: len(stored)] == stored
    assert len(lines) == json.loads(first)["took"]["runs"] == 6
    study = load(protocol)
    assert study.missing(protocol.settings) == []
    for run in study.runs[0], study.runs[-1]:
        whole = runner.training.run(run.setting)
        assert run.test == pytest.approx(whole.test, rel=1e-5)
    assert "| RIN" in (tmp_path / "killed" / "README.md").read_text()
    assert (tmp_path / "killed" / "models.svg").exists()


def test_the_time_on_one_core_is_stored(tmp_path):
    protocol = small.read(tmp_path, ONE_MODEL)
    took = {"runs": 1, "seconds": 10.0}  # of two at a time
    path = tmp_path / "runs.jsonl"
    path.write_text(json.dumps({"took": took}) + "\n")
    runner.store(protocol, small.run(protocol.settings[0]), core_seconds=7.0)
    assert read_lines(protocol)[0]["took"] == {"runs": 2, "core_seconds": 27.0}


@pytest.mark.parametrize(
    "best, test, beyond",
    [
        (0.001, 0.5, [0.0003]),
        (0.003, 0.5, []),
        (0.01, 0.5, [0.03]),
        (0.01, 0.99, []),  # it learned nothing
    ],
)
def test_rates_are_tried_beyond_the_edge_where_the_best_is(
    tmp_path, best, test, beyond
):
    def outcome(setting):
        good = setting["learning_rate"] == best
        return {"validation": 0.9 - good / 2, "test": test}

    text = ONE_MODEL.replace("[0.001, 0.01]", "[0.001, 0.003, 0.01]")
    study = small.study(tmp_path, outcome, text)
    settings = runner.to_make(study, extend=True)
    tried = [(s["learning_rate"], s["seed"]) for s in settings]
    assert tried == [(rate, seed) for rate in beyond for seed in (0, 1, 2)]


@pytest.mark.parametrize(
    "old, new, error",
    [
        ('"RIN"', '"RIM"', "protocol.toml: unknown layer: RIM. Known are"),
        ('"adding"', '"babi", number = 1', "cannot be run: BABI_DIR names no"),
        ('"adding"', '"text"', "there is no tiny_shakespeare in TFDS_DATA_DIR"),
    ],
)
def test_what_cannot_be_run_is_refused(tmp_path, monkeypatch, old, new, error):
    (tmp_path / "protocol.toml").write_text(ONE_MODEL.replace(old, new))
    monkeypatch.setenv("BABI_DIR", "")
    nothing = types.SimpleNamespace(is_prepared=lambda: False)
    monkeypatch.setattr(data.tfds, "builder", lambda name: nothing)
    with pytest.raises(SystemExit, match=error):
        main(["run", str(tmp_path)])


def test_ray_makes_a_run_again_whose_worker_dies(tmp_path):
    pytest.importorskip("ray")
    small.read(tmp_path, ONE_MODEL.replace("[0, 1, 2]", "[0]"))
    process = start("run", tmp_path, "--ray_address=local")
    assert _kill_a_worker(process)
    _, error = process.communicate()
    assert process.returncode == 0, error
    assert len(read_lines(protocols.read(tmp_path))) == 3


def _kill_a_worker(process):
    """Kills the first worker of Ray below a process, if one comes."""
    while process.poll() is None:
        listed = subprocess.run(
            ["ps", "-eo", "pid=,ppid=,args="], capture_output=True, text=True
        )
        rows = [line.split(None, 2) for line in listed.stdout.splitlines()]
        parents = {pid: parent for pid, parent, *_ in rows}
        for pid, _, *command in rows:
            if re.match(r"ray::timed_run\b", "".join(command)):
                above = pid
                while above in parents and above != str(process.pid):
                    above = parents[above]
                if above in parents:
                    os.kill(int(pid), signal.SIGKILL)
                    return True
        time.sleep(0.2)
    return False
