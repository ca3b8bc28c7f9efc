"""Each program runs, and its page is made of what is stored."""

import dataclasses
import pathlib
import re
import shutil

import keras
import pytest
from matplotlib.figure import Figure

from engine import measurement
from engine import record
from engine.measurement import Measurement
from engine.measurement import Variant
from engine.partial_runs import PartialRuns

NAMES = measurement.programs()
PROGRAMS = {  # that a study runs
    "devices/endless_stream": ["gcc"],
    "devices/kilobytes": ["gcc", "arm-none-eabi-gcc", "qemu-system-arm"],
}


@pytest.mark.parametrize("name", NAMES)
def test_a_page_is_made_of_the_stored_results(name):
    measured = Measurement.of(name)
    page, folder = measured.page(measured.folder), measured.folder
    stored = (folder / "README.md").read_text()
    if measured.part:
        assert f"<!-- {measured.part} -->\n{page}<!-- end -->" in stored
    else:
        assert page == stored, f"run python -m engine measure {name} --page"
    for picture in re.findall(r"\]\((\w+\.(?:png|svg))\)", page):
        assert (folder / picture).exists()


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", NAMES)
def test_the_smallest_settings_run(name, tmp_path):
    for program in PROGRAMS.get(name, []):
        if not shutil.which(program):
            pytest.skip(f"needs {program}")
    if name == "archive/classifiers":
        pytest.importorskip("numba")
    measured = Measurement.of(name)
    backend = next(iter(measured.variants.values())).backend
    if backend != keras.backend.backend():
        pytest.skip(f"it runs on {backend}")
    measured.run(tmp_path, smallest=True)
    assert "| " in (tmp_path / "README.md").read_text()
    for file in measured.pictures:
        picture = tmp_path / measurement.picture_file(file, "")
        assert picture.stat().st_size > 5_000


@pytest.fixture
def squares():
    """A study of squares, measured up to 3, or up to 5."""

    def measure(largest=3, partial=None):
        numbers = list(range(1, largest + 1))
        figure = Figure()
        figure.subplots().plot(numbers)
        stored = [n**2 for n in numbers]
        return {"squares": stored, "figures": {"numbers": figure}}

    def draw(results):
        """A line
        of squares.
        """
        figure = Figure()
        figure.subplots().plot(results["squares"])
        return figure

    def tables(results):
        rows = [[n, n**2] for n in range(1, len(results["squares"]) + 1)]
        return {"Squares": record.markdown(["n", "square"], rows)}

    return Measurement(
        pathlib.Path("studies/all_squares"),
        "What is n^2?\n\nBy multiplication.",
        measure,
        tables,
        {"squares": draw, "numbers": "Numbers"},
        {"": Variant("Three"), "five": Variant("Five", {"largest": 5})},
        smallest={"largest": 1},
    )


def test_a_page_has_a_part_for_each_variant(squares, tmp_path, capsys):
    squares.run(tmp_path)
    squares.run(tmp_path, "five")
    page = (tmp_path / "README.md").read_text()
    assert capsys.readouterr().out.endswith(page + "\n")
    assert page.startswith(
        "# all squares\n\n**What is n^2?**\n\nBy multiplication.\n\n## Three\n"
    )
    three, five = page.split("## Five\n")
    assert "    python -m engine measure all_squares\n" in three
    assert "    python -m engine measure all_squares --variant=five\n" in five
    for part, last in ((three, 3), (five, 5)):
        rows = re.findall(r"^\| (\d+) +\| +(\d+) \|$", part, re.M)
        expected = [(str(n), str(n * n)) for n in range(1, last + 1)]
        assert rows == expected
        assert "Recorded by `python " in part and "keras " in part
    assert "![A line of squares](squares.png)" in three
    assert "![Numbers](numbers.png)" in three
    assert "![A line of squares](squares_five.png)" in five
    pictures = [
        tmp_path / f"{name}_five.png" for name in ("squares", "numbers")
    ]
    for picture in pictures:
        assert picture.exists()
        picture.unlink()
    squares.run(tmp_path, page=True)
    assert [picture.exists() for picture in pictures] == [True, False]


def test_a_part_is_written_between_its_marks(squares, tmp_path):
    page = tmp_path / "README.md"
    page.write_text("# Powers\n\n<!-- roots -->\nold\n<!-- end -->\nAfter.\n")
    part = dataclasses.replace(squares, part="roots", pictures={})
    part.run(tmp_path)
    part.run(tmp_path, "five")
    files = "README.md", "results_roots.json", "results_roots_five.json"
    assert {path.name for path in tmp_path.iterdir()} == {*files}
    other = dataclasses.replace(part, part="squares")
    other.run(tmp_path)
    text = page.read_text()
    assert text == (
        f"# Powers\n\n<!-- roots -->\n{part.page(tmp_path)}<!-- end -->\n"
        f"After.\n<!-- squares -->\n{other.page(tmp_path)}<!-- end -->\n"
    )
    assert "\n## roots\n\n**What is n^2?**\n" in text
    assert "\n### Five\n" in text
    assert "measure all_squares/roots --variant=five\n" in text


def test_a_study_that_does_not_exist_is_refused():
    with pytest.raises(SystemExit, match="There is no .*squares/measure.py"):
        Measurement.of("squares")


def test_a_variant_that_does_not_exist_is_refused(squares, tmp_path):
    with pytest.raises(SystemExit, match="Variants are , five, not six"):
        squares.run(tmp_path, "six")


def test_finished_runs_are_stored_until_the_results_are(squares, tmp_path):
    def measure(partial, largest=3):
        runs = PartialRuns(partial, ("number",))
        squared = runs.complete([(largest,)], lambda n: {"square": n**2})
        stored.append([path.name for path in tmp_path.glob("partial*.jsonl")])
        return {"squares": [run["square"] for run in squared]}

    stored = []
    study = dataclasses.replace(
        squares, folder=tmp_path, measure=measure, pictures={}
    )
    study.run(tmp_path)
    study.run(tmp_path, "five")
    study.run(tmp_path, smallest=True)
    assert stored == [["partial.jsonl"], ["partial_five.jsonl"], []]
    assert not [*tmp_path.glob("partial*.jsonl")]


@pytest.mark.parametrize(
    "values, cell",
    [([1, 3, 2], "2 (1 to 3)"), ([2], "2"), ([0.0001234] * 2, "0.000123")],
)
def test_a_spread_is_median_and_range(values, cell):
    assert measurement.spread(values) == cell
