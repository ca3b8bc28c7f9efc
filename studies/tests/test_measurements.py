"""Each measure.py runs, and its page is made of what is stored."""

import importlib
import os
import pathlib
import re
import shutil

import keras
import pytest
from absl import flags
from matplotlib.figure import Figure

from engine import measurement
from engine import record
from engine.measurement import Measurement
from engine.measurement import Variant

NAMES = sorted(path.parent.name for path in record.STUDIES.glob("*/measure.py"))
FASHION = pathlib.Path(os.environ.get("TFDS_DATA_DIR", ""), "fashion_mnist")
PROGRAMS = {  # that a study runs
    "endless_stream": ["gcc"],
    "kilobytes": ["gcc", "arm-none-eabi-gcc", "qemu-system-arm"],
    "runtimes": ["gcc"],
}
# Those that need reports of pytest, or a compiler, are tested as a page, or are
# made of functions that test_many_models.py calls.
ELSEWHERE = {
    "backends",
    "gpu_compile",
    "ladder",
    "robustness",
    "tutorial",
    "versions",
}


def study(name):
    return Measurement.of(importlib.import_module(f"{name}.measure"))


@pytest.mark.parametrize("name", NAMES)
def test_a_page_is_made_of_the_stored_results(name):
    page = study(name).page(record.STUDIES / name)
    stored = (record.STUDIES / name / "README.md").read_text()
    assert page == stored, f"run python -m {name}.measure --page"
    for picture in re.findall(r"\]\((\w+\.(?:png|svg))\)", page):
        assert (record.STUDIES / name / picture).exists()


@pytest.mark.parametrize("name", sorted(set(NAMES) - ELSEWHERE))
def test_the_smallest_settings_run(name, tmp_path):
    if name == "fashion_residual" and not FASHION.exists():
        pytest.skip("TFDS_DATA_DIR names no folder with fashion_mnist in it")
    for program in PROGRAMS.get(name, []):
        if not shutil.which(program):
            pytest.skip(f"needs {program}")
    measured = study(name)
    backend = next(iter(measured.variants.values())).backend
    if backend != keras.backend.backend():
        pytest.skip(f"it runs on {backend}")
    results, figures = measured.measure(**measured.smallest)
    stored = record.write(tmp_path / "results.json", results)
    assert all("| " in table for table in measured.tables(stored).values())
    assert figures.keys() == measured.pictures.keys()
    for file, figure in figures.items():
        path = tmp_path / measurement.picture_file(file, "")
        record.write_picture(path, figure)
        assert path.stat().st_size > 5_000


@pytest.fixture
def squares():
    """A study of squares, measured up to 3, or up to 5."""

    def measure(largest=3):
        numbers = list(range(1, largest + 1))
        figure = Figure()
        figure.subplots().plot(numbers)
        results = {"squares": [n**2 for n in numbers]}
        return results, {"squares": figure}

    def figures(results):
        figure = Figure()
        figure.subplots().plot(results["squares"])
        return {"squares": figure}

    def tables(results):
        rows = [[n, n**2] for n in range(1, len(results["squares"]) + 1)]
        return {"Squares": record.markdown(["n", "square"], rows)}

    return Measurement(
        pathlib.Path("studies/all_squares"),
        "What is n^2?\n\nBy multiplication.",
        measure,
        tables,
        {"squares": "A line"},
        {"": Variant("Three"), "five": Variant("Five", {"largest": 5})},
        smallest={"largest": 1},
        figures=figures,
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
    picture = tmp_path / "squares_five.png"
    assert picture.exists()
    picture.unlink()
    run(squares, output, "--page")
    assert picture.exists()


@pytest.mark.parametrize(
    "values, cell",
    [([1, 3, 2], "2 (1 to 3)"), ([2], "2"), ([0.0001234] * 2, "0.000123")],
)
def test_a_spread_is_median_and_range(values, cell):
    assert measurement.spread(values) == cell
