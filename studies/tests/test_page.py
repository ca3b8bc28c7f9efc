"""Pages, tables and pictures show what is stored."""

import re

import pytest
import small

from engine import claims
from engine import measurement
from engine import page
from engine import pictures
from engine import protocol
from engine import tables
from engine import words
from engine.record import STUDIES
from engine.study import Study
from engine.study import load
from engine.verdicts import Part


def test_the_pages_are_those_of_the_stored_runs():
    every = measurement.asserted()
    for study in map(load, protocol.every()):
        asserted = claims.of(study)
        every += asserted
        text = (study.protocol.folder / "README.md").read_text()
        part = study.protocol.part
        written = page.of(study, asserted)
        if part:
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


def test_a_page_tells_how_its_runs_were_made_or_that_they_were_not(tmp_path):
    processors = None, "Fast", "Fast, AVX2"
    complete = small.study(
        tmp_path / "a_b", lambda s: {"processor": processors[s.seed]}
    )

    def text(*runs):
        study = Study(complete.protocol, runs, small.METADATA)
        return page.of(study, claims.of(study))

    assert text().startswith("# a b\n\n**Which?**\n\nSmall.\n")
    assert "    python -m engine run a_b\n\nNot run yet.\n" in text()
    assert "\nNot run yet, but for 1 of 12 runs.\n" in text(complete.runs[0])
    beyond = small.run(complete.runs[0].setting.at(learning_rate=0.1))
    assert (
        "\n12 of 12 runs and 1 at further learning rates, 3 seeds; keras 3, "
        "tensorflow 2; about 0.09 hours on two cores; Fast (AVX2); others not "
        "recorded.\n"
    ) in text(*complete.runs, beyond)
    assert tables.SHOWN["models"](complete).strip() in text(*complete.runs)
    assert "![Normalized test loss of each model](models.svg)" in text(
        *complete.runs
    )


def test_a_part_stands_between_its_marks(tmp_path):
    small.read(tmp_path / "a")
    (tmp_path / "a" / "protocol.toml").rename(tmp_path / "a/protocol_b_c.toml")
    part = protocol.read(tmp_path / "a" / "b_c")
    assert part.name == "a/b_c"
    assert part.file("runs.jsonl") == tmp_path / "a" / "runs_b_c.jsonl"
    readme = tmp_path / "a" / "README.md"
    readme.write_text("# A\n\n<!-- b_c -->\nold\n<!-- end -->\nend\n")
    page.write(Study(part), [])
    text = readme.read_text()
    assert text.startswith("# A\n\n<!-- b_c -->\n## b c\n\n**Which?**\n")
    assert text.endswith("Not run yet.\n<!-- end -->\nend\n")


def test_a_claim_has_a_row_for_its_source_and_one_for_each_part(tmp_path):
    text = small.LENGTHS + 'after = "the runs"\n'

    def outcome(setting):
        better = setting["layer"] == "RIN" and setting["length"] == 5
        return {"test": 0.5 + setting.seed / 100 - 0.25 * better}

    study = small.study(tmp_path, outcome, text)
    assert small.table(page.of(study, claims.of(study)))[:4] == [
        ["RIN is better.", "", "**holds in 1 of 2 lengths**"],
        ["*our question; defined after the runs*", "*no such comparison*", ""],
        ["– length 5", "-0.25 (-0.25 to -0.25)", "holds"],
        ["– length 6", "+0 (0 to 0)", "does not hold"],
    ]
    half = Study(
        study.protocol, [r for r in study.runs if r.setting["length"] == 5]
    )
    (claim,) = claims.of(half)
    assert [part.answer for part in claim.parts] == ["yes", "not tested"]
    counts = counted([claim])
    assert counts["comparisons"] == counts["claims: holds in part"] == "1"
    link = f"[{tmp_path.name}](../studies/{tmp_path.name}/README.md)"
    row = ["RIN", "RIN is better.", "", "holds in 1 of 2 lengths", link]
    assert small.table(page.of_table([claim])) == [row]


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
        return {"test": 0.5 + setting.seed / 100 - 0.25 * better}

    (claim,) = claims.of(small.study(tmp_path, outcome, text))
    assert claim.verdict == verdict


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

    def outcome(setting):
        return {"curve": [0.9, setting["length"] / 100]}

    study = small.study(tmp_path, outcome, text)
    curves = pictures.of(study)["curves.svg"](study).axes
    titles = [axes.get_title("left") for axes in curves]
    assert titles == ["length 5", "length 6"]
    ends = [list(axes.lines[0].get_ydata())[-1] for axes in curves]
    assert ends == [0.05, 0.06]


def test_models_are_told_by_the_hyperparameters_that_differ(tmp_path):
    setting = small.read(tmp_path).settings[0]
    lengths = [setting.at(length=n, updates=10 * n) for n in (1, 2)]
    names = ["layer", "length", "updates"]
    assert words.telling_names(lengths, names) == ["length"]
    others = [setting.at(images=name, units=n) for n, name in enumerate("ab")]
    assert words.telling_names(others, ["images", "units"]) == ["images"]
    pairs = [(setting, setting.at(layer=name)) for name in ("GRU", "LSTM")]
    assert words.condition(pairs[1], pairs, names) == "vs. LSTM"
