"""The benchmarks run; what they measure is not a matter of tests."""

import importlib.metadata
import json
import os
import pathlib
import subprocess
import sys

import keras
import numpy as np
import pytest
import scripts

pytestmark = pytest.mark.skipif(
    keras.backend.backend() != "tensorflow",
    reason="the benchmarks compare under TensorFlow",
)


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "module, tables",
    [
        ("step_time", ["training.md", "training_ratios.md"]),
        ("streaming", ["table.md"]),
        ("diagnostics_cost", ["table.md", "callback.md"]),
        ("orthogonal_cost", ["table.md"]),
        ("exports", ["table.md"]),
        ("peak_memory", ["table.md"]),
    ],
)
def test_a_benchmark_writes_its_records_and_its_table(tmp_path, module, tables):
    finished = scripts.run(
        f"benchmarks.{module}", "--smoke", f"--output={tmp_path}"
    )
    assert finished.returncode == 0, finished.stderr
    record = json.loads((tmp_path / "results.json").read_text())
    assert record["tables"] == f"benchmarks.{module}"
    for table in tables:
        assert "| " in (tmp_path / table).read_text()


@pytest.mark.parametrize(
    "ms, told",
    [(0.47649, "0.476"), (36.14, "36.1"), (1123.4, "1,120"), (29876, "29,900")],
)
def test_milliseconds_have_three_digits_and_no_exponent(ms, told):
    from benchmarks import step_time

    assert step_time._three(ms) == told


def test_what_any_step_takes_longer_without_xla_is_named():
    from benchmarks import step_time

    ms = {"RIN": 5, "RIN, XLA": 2, "SimpleRNN": 10, "SimpleRNN, XLA": 4}
    ms |= {"mean over time, Dense": 4, "mean over time, Dense, XLA": 2}
    shown = step_time._ratios([{name: [one] for name, one in ms.items()}])
    found = [line.split("|")[3].strip() for line in shown.splitlines()[2:]]
    assert found == ["0.50", "1.25", "0.50", "2.50", "2.00", "1.50"]


def needs(mebibytes):
    np.ones(mebibytes * 2**20, "uint8")


@pytest.mark.skipif(sys.platform != "linux", reason="Linux tells the memory")
@pytest.mark.parametrize("before", [0, 300])
def test_an_earlier_peak_does_not_hide_the_memory_that_a_call_needs(before):
    from benchmarks import measuring

    needs(before)
    assert measuring.growth(lambda: needs(100)) == pytest.approx(100, abs=2)


@pytest.mark.skipif(sys.platform != "linux", reason="Linux tells the memory")
def test_the_results_of_several_calls_are_not_added_up(monkeypatch):
    from benchmarks import diagnostics_cost

    def part(units, small):
        return {"ones": lambda: lambda: np.ones(100 * 2**20, "uint8")}

    monkeypatch.setitem(diagnostics_cost.PARTS, "part", part)
    found = diagnostics_cost.grown("part", 0, False, 3, "ones")
    assert found == pytest.approx(100, abs=2)


def installed(package):
    try:
        return bool(importlib.metadata.version(package))
    except importlib.metadata.PackageNotFoundError:
        return False


@pytest.mark.exhaustive
@pytest.mark.skipif(
    not installed("jax-cuda12-plugin"),
    reason="the compiler for GPUs, jax-cuda12-plugin, is not installed",
)
def test_nothing_is_hidden_from_the_compiler_for_gpus(tmp_path):
    finished = subprocess.run(
        [sys.executable, "-m", "benchmarks.gpu_compile", "--smoke"]
        + [f"--output={tmp_path}"],
        cwd=pathlib.Path(__file__).parents[1],
        env={**os.environ, "KERAS_BACKEND": "jax"},
        capture_output=True,
        text=True,
    )
    assert finished.returncode == 0, finished.stderr
    (record,) = json.loads((tmp_path / "results.json").read_text())["records"]
    outer = [loop for loop in record["loops"] if loop["loops"]]
    inner = [loop for loop in record["loops"] if not loop["loops"]]
    assert [loop["trips"] for loop in outer] == [2, 2]
    # Eight time steps in an iteration: for each a product and a fused sum
    # and activation; then one write and the counter.
    assert [loop["trips"] for loop in inner] == [2, 2]
    assert all(loop["kernels"] <= 8 * 2 + 2 for loop in inner)
    assert not any(loop["to_host"] for loop in record["loops"])
