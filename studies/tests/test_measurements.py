"""Each measure.py runs, and its page is made of what is stored."""

import dataclasses
import importlib
import os
import pathlib
import re

import numpy as np
import pytest
from absl import app
from absl import flags
from matplotlib.figure import Figure

from engine import measurement
from engine import record
from engine.measurement import Measurement
from engine.measurement import Variant

NAMES = sorted(path.parent.name for path in record.STUDIES.glob("*/measure.py"))
FASHION = pathlib.Path(os.environ.get("TFDS_DATA_DIR", ""), "fashion_mnist")
# Those that need reports of pytest or a compiler, and one with a theory.
ELSEWHERE = {"backends", "deep_linear", "gpu_compile", "robustness", "versions"}


def study(name):
    return importlib.import_module(f"{name}.measure").STUDY


@pytest.mark.parametrize("name", NAMES)
def test_a_page_is_made_of_the_stored_results(name):
    page = study(name).page(record.STUDIES / name)
    stored = (record.STUDIES / name / "README.md").read_text()
    assert page == stored, f"run python -m {name}.measure --page"
    for picture in re.findall(r"\]\((\w+\.png)\)", page):
        assert (record.STUDIES / name / picture).exists()


@pytest.mark.parametrize("name", sorted(set(NAMES) - ELSEWHERE))
def test_the_smallest_settings_run(name, tmp_path):
    if name == "fashion_residual" and not FASHION.exists():
        pytest.skip("TFDS_DATA_DIR names no folder with fashion_mnist in it")
    measured = study(name)
    results, figures = measured.measure(**measured.smallest)
    stored = record.write(tmp_path / "results.json", results)
    assert all("| " in table for table in measured.tables(stored).values())
    assert figures.keys() == measured.captions.keys()
    for file, figure in figures.items():
        record.write_picture(tmp_path / f"{file}.png", figure)
        assert (tmp_path / f"{file}.png").stat().st_size > 5_000


def test_deep_linear_finds_what_theory_predicts():
    from deep_linear import measure

    results, figures = measure.measure(**measure.STUDY.smallest)
    assert figures.keys() == measure.STUDY.captions.keys()
    stalled, rotated = results["targets"].values()
    assert stalled["words"][0] == "loss > 0.125" and stalled["steps"] is None
    assert rotated["words"] == ("learned", "learned") and rotated["steps"] <= 60
    by_target, by_depth = measure.tables(results).values()
    assert "| not reached |" in re.sub(" +", " ", by_target)
    assert by_depth.count("\n") == 2 + 2


def test_layers_that_add_have_about_as_many_weights():
    from adding_problem.measure import LAYERS

    for name, (make, _) in LAYERS.items():
        layer = make()
        layer.build((None, None, 2))
        assert layer.count_params() == pytest.approx(2_650, abs=60), name


@pytest.fixture
def squares():
    """A study of squares, measured up to 3, or up to 5."""

    def measure(largest=3):
        numbers = list(range(1, largest + 1))
        figure = Figure()
        figure.subplots().plot(numbers)
        results = {"squares": [n**2 for n in numbers]}
        return results, {"squares": figure}

    def tables(results):
        rows = [[n, n**2] for n in range(1, len(results["squares"]) + 1)]
        return {"Squares": record.markdown(["n", "square"], rows)}

    return Measurement(
        "studies/all_squares/measure.py",
        "What is n^2?\n\nBy multiplication.",
        measure,
        tables,
        {"squares": "A line"},
        {"": Variant("Three"), "five": Variant("Five", {"largest": 5})},
        smallest={"largest": 1},
    )


@pytest.fixture
def run(monkeypatch):
    """Runs the command of a study with flags."""

    def run_with(study, *arguments):
        values = flags.FlagValues()
        for name in ("output", "variant"):
            flags.DEFINE_string(name, "", "", flag_values=values)
        for name in ("smallest", "page"):
            flags.DEFINE_bool(name, False, "", flag_values=values)
        monkeypatch.setattr(measurement, "FLAGS", values)
        study._run(values(["measure.py", *arguments]))

    return run_with


def test_a_page_has_a_part_for_each_variant(squares, run, tmp_path, capsys):
    output = f"--output={tmp_path}"
    run(squares, output)
    run(squares, output, "--variant=five")
    page = (tmp_path / "README.md").read_text()
    assert capsys.readouterr().out.endswith(page + "\n")
    assert page.startswith(
        "# all squares\n\n**What is n^2?**\n\nBy multiplication.\n\n## Three\n"
    )
    three, five = page.split("## Five\n")
    assert "    python -m all_squares.measure\n" in three
    assert "    python -m all_squares.measure --variant=five\n" in five
    for part, last in ((three, 3), (five, 5)):
        rows = re.findall(r"^\| (\d+) +\| +(\d+) \|$", part, re.M)
        expected = [(str(n), str(n * n)) for n in range(1, last + 1)]
        assert rows == expected
        assert "Recorded by `python " in part and "keras " in part
    assert "![A line](squares.png)" in three
    assert "![A line](squares_five.png)" in five
    assert (tmp_path / "squares_five.png").exists()


def test_the_page_alone_measures_nothing(squares, run, tmp_path):
    output = f"--output={tmp_path}"
    run(squares, output, "--smallest")
    before = (tmp_path / "results.json").read_bytes()
    run(squares, output, "--page")
    assert (tmp_path / "results.json").read_bytes() == before
    assert record.read(tmp_path / "results.json")["squares"] == [1]


def test_another_backend_and_words_are_refused(squares, run, tmp_path):
    with pytest.raises(app.UsageError, match=r"Received: \['five'\]"):
        run(squares, "five", f"--output={tmp_path}")
    variants = {"": Variant(backend="jax")}
    on_jax = dataclasses.replace(squares, variants=variants)
    with pytest.raises(app.UsageError, match="Set KERAS_BACKEND=jax"):
        run(on_jax, f"--output={tmp_path}")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "values, cell",
    [([1, 3, 2], "2 (1 to 3)"), ([2], "2"), ([0.0001234] * 2, "0.000123")],
)
def test_a_spread_is_median_and_range(values, cell):
    assert measurement.spread(values) == cell


def test_runs_are_grouped_in_their_order():
    runs = [{"layer": name, "n": n} for n, name in enumerate("bab")]
    grouped = measurement.groups(runs, "layer")
    assert list(grouped) == ["b", "a"]
    assert [run["n"] for run in grouped["b"]] == [0, 2]


def test_a_stream_of_digits_sees_each_once_an_epoch():
    from digits.measure import batches

    rows = np.arange(10)

    def epochs(seed):
        pairs = list(batches(rows, -rows, seed, 2))
        assert all((x == -y).numpy().all() for x, y in pairs)
        return [list(x.numpy()) for x, _ in pairs]

    first, second = epochs(0)
    assert sorted(first) == sorted(second) == list(rows)
    assert first != second and epochs(0) == [first, second] != epochs(1)
