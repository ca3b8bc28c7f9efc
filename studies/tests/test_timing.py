"""Time, memory and what is made of them."""

import os
import subprocess
import sys

import numpy as np
import pytest
from gpu_compile import measure as gpu_compile
from step_time import measure as step_time

from engine import record
from engine import timing


def allocate(mebibytes):
    np.ones(mebibytes * 2**20, "uint8")


@pytest.mark.skipif(sys.platform != "linux", reason="Linux tells the memory")
@pytest.mark.parametrize("before", [0, 300])
def test_an_earlier_peak_does_not_hide_the_memory_that_a_call_needs(before):
    allocate(before)
    growth = timing.peak_growth(lambda: allocate(100))
    assert growth == pytest.approx(100, abs=2)


@pytest.mark.skipif(sys.platform != "linux", reason="Linux tells the memory")
def test_the_results_of_several_calls_are_not_added_up(monkeypatch):
    from diagnostics_cost import measure

    def part(units):
        return {"ones": lambda: lambda: np.ones(100 * 2**20, "uint8")}

    monkeypatch.setitem(measure.PARTS, "part", part)
    growth = measure.memory_of_calls("part", 0, 3, "ones")
    assert growth == pytest.approx(100, abs=2)


def test_functions_take_turns_and_three_turns_are_made():
    calls = []
    steps = {name: lambda name=name: calls.append(name) for name in "ab"}
    times = timing.in_turns(steps, repeats=5, seconds=-1)
    assert calls == list("ababab")
    assert [len(of_step) for of_step in times.values()] == [3, 3]


@pytest.mark.parametrize(
    "ms, cell",
    [(0.47649, "0.476"), (36.14, "36.1"), (1123.4, "1,120"), (29876, "29,900")],
)
def test_milliseconds_have_three_digits_and_no_exponent(ms, cell):
    assert step_time.three_digits(ms) == cell


def test_what_any_step_takes_longer_without_xla_is_subtracted():
    ms = {"RIN": 5, "RIN, XLA": 2, "SimpleRNN": 10, "SimpleRNN, XLA": 4}
    ms |= {"mean over time, Dense": 4, "mean over time, Dense, XLA": 2}
    table = step_time.ratio_table([{name: [t] for name, t in ms.items()}])
    medians = [line.split("|")[2].strip() for line in table.splitlines()[2:]]
    assert medians == ["0.50", "1.25", "0.50", "2.50", "2.00", "1.50"]


def test_sizes_are_limited_by_their_work():
    sizes = [(1, 784, 1, 32), (128, 784, 64, 256)]
    gflop = 6e-9 * 784 * 32**2
    assert step_time.within(sizes, gflop * 1.01) == sizes[:1]
    assert step_time.within(sizes, gflop * 0.99) == []


PROGRAM = """
%body.1 (a: f32[2]) -> f32[2] {
  %x = f32[2] dot(%a, %a)
  %y = f32[2] fusion(%x)
  ROOT %t = (f32[2]) tuple(%y)
}
%condition.1 (a: f32[2]) -> pred[] {
  %c = s32[] constant(7)
  ROOT %less = pred[] compare(%i, %c), direction=LT
}
ENTRY %main (p: f32[2]) -> f32[2] {
  %w = (f32[2]) while(%p), condition=%condition.1, body=%body.1
}
"""


def test_a_loop_is_read_with_its_trips_and_kernels():
    loop = {"trips": 7, "kernels": 2, "loops": 0, "to_host": 0}
    assert gpu_compile.loops(PROGRAM) == [loop]
    known = ', backend_config={"known_trip_count":{"n":"9"}}'
    counted = PROGRAM.replace("body=%body.1", f"body=%body.1{known}")
    assert gpu_compile.loops(counted) == [{**loop, "trips": 9}]


def test_nothing_is_hidden_from_the_compiler_for_gpus(tmp_path):
    pytest.importorskip("jax_plugins.xla_cuda12", exc_type=ImportError)
    finished = subprocess.run(
        [sys.executable, "-m", "gpu_compile.measure", "--smallest"]
        + [f"--output={tmp_path}"],
        cwd=record.STUDIES,
        env={**os.environ, "KERAS_BACKEND": "jax"},
        capture_output=True,
        text=True,
    )
    assert finished.returncode == 0, finished.stderr
    (run,) = record.read(tmp_path / "results.json")["records"]
    outer = [loop for loop in run["loops"] if loop["loops"]]
    inner = [loop for loop in run["loops"] if not loop["loops"]]
    assert [loop["trips"] for loop in outer] == [2, 2]
    # Eight time steps in an iteration: for each a product and a fused sum
    # and activation; then one write and the counter.
    assert [loop["trips"] for loop in inner] == [2, 2]
    assert all(loop["kernels"] <= 8 * 2 + 2 for loop in inner)
    assert not any(loop["to_host"] for loop in run["loops"])
