"""Pages, tables and pictures show what is stored."""

import re

import pytest
import small

from engine import claims
from engine import measurement
from engine import page
from engine import pictures
from engine import protocol
from engine.record import STUDIES
from engine.study import Study
from engine.study import load
from engine.verdicts import Part
from keras_rin import plots


def test_the_pages_are_those_of_the_stored_runs():
    every = measurement.asserted()
    for study in map(load, protocol.every()):
        asserted = claims.of(study)
        every += asserted
        text = (study.protocol.folder / "README.md").read_text()
        written = page.of(study, asserted)
        if part := study.protocol.part:
            written = f"<!-- {part} -->\n{written}<!-- end -->"
        assert written in text, "python -m engine pages"
        for picture in pictures.of(study):
            assert study.protocol.file(picture).exists()
    text = page.CLAIMS.read_text()
    assert page.of_table(every) in text
    assert page.of_counts(every) in text


def test_each_study_is_in_one_room_of_the_index():
    text = (STUDIES / "README.md").read_text().split("## All studies")[1]
    listed = re.findall(r"^\| \[.*?\]\((\w+)/README\.md\)", text, re.M)
    folders = [path.parent.name for path in STUDIES.glob("[a-z]*/README.md")]
    assert sorted(listed) == sorted(folders)
    assert len(re.findall("^### ", text, re.M)) == 5


def test_a_page_tells_how_many_runs_were_made_and_where(tmp_path):
    processors = None, "Fast", "Fast, AVX2"
    study = small.study(
        tmp_path / "a_b", lambda s: {"processor": processors[s["seed"]]}
    )

    def text(*runs):
        return page.of(Study(study.protocol, runs, small.METADATA), [])

    assert text().startswith("# a b\n\n**Which?**\n\nSmall.\n\n    python -m ")
    assert "engine run a_b\n\nNot run yet.\n" in text()
    assert "\n1 of 12 runs, 3 seeds; keras 3, ten" in text(study.runs[0])
    beyond = small.run(study.runs[0].setting.at(learning_rate=0.1))
    assert (
        "\n12 of 12 runs and 1 at further learning rates, 3 seeds; keras 3, "
        "tensorflow 2; about 0.09 hours on two cores; Fast; Fast, AVX2; "
        "processor not recorded.\n"
    ) in text(*study.runs, beyond)


@pytest.mark.parametrize(
    "statement, verdict",
    [
        ("RIN is better.", "holds in 1 of 2 lengths"),
        ("RIN is better, whatever the length.", "does not hold"),
        ("RIN never loses.", "does not hold"),
    ],
)
def test_one_no_refutes_a_claim_without_exceptions(
    tmp_path, statement, verdict
):
    text = small.LENGTHS.replace("RIN is better.", statement)

    def outcome(setting):
        better = setting["layer"] == "RIN" and setting["length"] == 5
        return {"test": 0.5 + setting["seed"] / 100 - 0.25 * better}

    study = small.study(tmp_path, outcome, text)
    (claim,) = claims.of(study)
    assert claim.verdict == verdict
    half = [run for run in study.runs if run.setting["length"] == 5]
    (claim,) = claims.of(Study(study.protocol, half))
    assert [part.answer for part in claim.parts] == ["yes", "not tested"]
    assert counted([claim])["comparisons"] == "1"


def counted(asserted):
    """{what is counted: how often} below docs/claims.md."""
    rows = small.table(page.of_counts(asserted))
    return {name: count for name, count, *_ in rows}


def test_what_is_decided_is_listed_first_and_the_rest_is_counted():
    every = [
        claims.Claim(statement, "a", parts=[Part("", "", of) for of in answers])
        for statement, answers in (
            ("undecided", ["inconclusive"]),
            ("half", ["yes", "no"]),
            ("wrong", ["no"]),
            ("right", ["yes"]),
        )
    ]
    listed = [cells[1] for cells in small.table(page.of_table(every))]
    assert listed == ["right", "wrong", "half"]
    assert counted(every)["claims: inconclusive"] == "1"


def test_a_panel_has_a_picture_of_curves(tmp_path):
    text = 'panels = "length"\ncurves = true\n' + small.LENGTHS
    study = small.study(
        tmp_path, lambda s: {"curve": [0.9, s["length"] / 100]}, text
    )
    curves = pictures.of(study)["curves.svg"](study).axes
    titles = [axes.get_title("left") for axes in curves]
    assert titles == ["length 5", "length 6"]
    ends = [list(axes.lines[0].get_ydata())[-1] for axes in curves]
    assert ends == [0.05, 0.06]


def test_a_layer_has_one_color_in_all_pictures():
    curves = {name: [1, 2] for name in pictures.STYLES}
    for line in plots.plot_learning_curves(curves).axes[0].get_lines():
        assert pictures.color(line.get_label()) == line.get_color()
