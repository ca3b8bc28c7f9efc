"""The benchmarks run; what they measure is not a matter of tests."""

import json

import keras
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
        ("step_time", ["training.md", "forward.md"]),
        ("streaming", ["table.md"]),
        ("diagnostics_cost", ["table.md", "callback.md"]),
        ("orthogonal_cost", ["table.md"]),
        ("exports", ["table.md"]),
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
