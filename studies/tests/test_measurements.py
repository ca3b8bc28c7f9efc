"""Each program runs, and its page is made of what is stored."""

import re
import shutil
import types

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
    "devices/integers": ["gcc"],
    "devices/side_by_side": ["gcc"],
}
# Packages that a study needs besides those of the tests.
PACKAGES = {"archive/classifiers": "numba"}
PACKAGES |= dict.fromkeys(
    [
        f"devices/{part}"
        for part in (
            "streams",
            "inputs",
            "integers",
            "windows",
            "smoothing",
            "bits",
        )
    ],
    "seglearn",
)
PACKAGES["devices/side_by_side"] = "seglearn emlearn"


@pytest.mark.parametrize("name", NAMES)
def test_a_page_is_made_of_the_stored_results(name):
    measured = Measurement.load(name)
    page, folder = measured.page(measured.folder), measured.folder
    stored = (folder / "README.md").read_text()
    marked = f"<!-- {measured.part} -->\n{page}<!-- end -->"
    assert marked in stored, f"run python -m engine measure {name} --page"
    for picture in re.findall(r"\]\((\w+\.svg)\)", page):
        assert (folder / picture).exists()


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", NAMES)
def test_the_smallest_settings_run(name, tmp_path):
    for program in PROGRAMS.get(name, []):
        if not shutil.which(program):
            pytest.skip(f"needs {program}")
    for package in PACKAGES.get(name, "").split():
        pytest.importorskip(package)
    measured = Measurement.load(name)
    backend = next(iter(measured.variants.values())).backend
    if backend != keras.backend.backend():
        pytest.skip(f"it runs on {backend}")
    measured.run(tmp_path, smallest=True)
    assert "| " in (tmp_path / "README.md").read_text()
    for file in measured.pictures:
        assert (tmp_path / file).stat().st_size > 5_000


def squares_up_to(largest=3, partial=None):
    runs = PartialRuns(partial, ("number",))
    keys = [(number,) for number in range(1, largest + 1)]
    squares = runs.complete(keys, lambda n: {"square": n**2})
    figure = Figure()
    figure.subplots().plot(range(largest))
    stored = [run["square"] for run in squares]
    results = {"squares": stored, "partial": partial and partial.name}
    return {**results, "figures": {"numbers.svg": figure}}


def draw(results):
    """A line
    of squares.
    """
    figure = Figure()
    figure.subplots().plot(results["squares"])
    return figure


def tables(results):
    rows = enumerate(results["squares"], 1)
    return {"Squares": record.markdown(["n", "square"], rows)}


@pytest.fixture
def squares(tmp_path):
    """A study of squares, measured up to 3, or up to 5."""
    program = types.SimpleNamespace(
        __doc__="What is n^2?\n\nBy multiplication.\n",
        measure=squares_up_to,
        tables=tables,
        PICTURES={"squares.svg": draw, "numbers.svg": "Numbers"},
        VARIANTS={
            "": Variant("Three"),
            "five": Variant("Five", {"largest": 5}),
        },
        SMALLEST={"largest": 1},
    )
    return Measurement(program, tmp_path / "numbers", "all_squares")


def test_results_pictures_and_page_are_written_of_each_variant(squares):
    folder = squares.folder
    for variant in "", "five":
        squares.run(variant=variant)
        name = record.file_name("all_squares.json", variant)
        partial = f"partial_{name}l"
        assert record.read(folder / f"results_{name}")["partial"] == partial
        assert not (folder / partial).exists()
    text = (folder / "README.md").read_text()
    title = "<!-- all_squares -->\n## all squares\n\n"
    assert text.startswith(title + "**What is n^2?**\n\nBy mult")
    three, five = text.split("### Five\n")
    assert "Recorded by `python " in three and "keras " in three
    assert [
        len(re.findall(r"^\| \d", text, re.M)) for text in (three, five)
    ] == [
        3,
        5,
    ]
    assert "measure numbers/all_squares --variant=five\n" in five
    assert "![A line of squares](squares_five.svg)\n\n![Numbers](num" in five
    pictures = [folder / f"{n}_five.svg" for n in ("squares", "numbers")]
    for picture in pictures:
        picture.unlink()
    squares.run(page=True)  # without the numbers, which are not stored
    assert [picture.exists() for picture in pictures] == [True, False]


def test_a_part_is_written_between_its_marks(squares):
    page = squares.folder / "README.md"
    record.write_text(page, "# A\n\n<!-- b -->\nold\n<!-- end -->\nAfter.\n")
    for name in "bc":
        Measurement(squares.program, squares.folder, name).run(smallest=True)
        results = record.read(squares.folder / f"results_{name}.json")
        assert (results["squares"], results["partial"]) == ([1], None)
    before, b, after, c = re.split(r"<!-- \w+ -->\n", page.read_text())[:4]
    assert (before, after) == ("# A\n\n", "After.\n")
    assert b.startswith("## b\n") and c.startswith("## c\n")


def test_what_does_not_exist_is_refused(squares):
    with pytest.raises(SystemExit, match="There is no squares. Programs: arc"):
        Measurement.load("squares")
    with pytest.raises(SystemExit, match="Variants are , five, not six"):
        squares.run(variant="six")
