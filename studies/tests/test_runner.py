"""Which runs are made, and how they are kept."""

import json
import subprocess
import sys
import types

import pytest
import small

from engine import data
from engine import runner
from engine.__main__ import main
from engine.record import STUDIES
from engine.study import load

ONE_MODEL = small.TOML.split("[claims")[0].replace(', "IRNN"', "")


def test_a_study_resumes_and_ends_as_an_uninterrupted_one(
    tmp_path, monkeypatch
):
    def in_threads(jobs, *_):
        return runner.futures.ThreadPoolExecutor(jobs)

    monkeypatch.setattr(runner.futures, "ProcessPoolExecutor", in_threads)
    protocol, runs = small.read(tmp_path, ONE_MODEL), tmp_path / "runs.jsonl"
    main(["run", str(tmp_path), "--jobs=1"])
    whole, text = load(protocol), runs.read_text()
    assert whole.missing(protocol.settings) == []
    lines = text.splitlines()
    runs.write_text("\n".join(lines[:3]) + "\n")  # as a kill leaves it
    main(["run", str(tmp_path), "--jobs=1"])
    first, *resumed = runs.read_text().splitlines()
    assert resumed[:2] == lines[1:3]
    assert json.loads(first)["took"]["runs"] == 10
    for run, same in zip(load(protocol).runs, whole.runs, strict=True):
        assert run.test == pytest.approx(same.test, rel=1e-5)
    assert "| RIN" in (tmp_path / "README.md").read_text()
    assert (tmp_path / "models.svg").exists()


@pytest.mark.exhaustive
@pytest.mark.parametrize("how", ["--jobs=2", "--ray_address=local"])
def test_processes_and_ray_make_the_runs(tmp_path, how):
    if "ray" in how:
        pytest.importorskip("ray")
    protocol = small.read(tmp_path, ONE_MODEL.replace("[0, 1, 2]", "[0]"))
    command = [sys.executable, "-m", "engine", "run", tmp_path, how]
    subprocess.run(command, cwd=STUDIES, check=True)
    assert load(protocol).missing(protocol.settings) == []


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
