"""Pages, tables and pictures show what is stored."""

import pytest
import small

from engine import claims
from engine import page
from engine import pictures
from engine import protocol
from engine import tables
from engine import words
from engine.record import STUDIES
from engine.study import Study
from engine.study import load

FOLDERS = sorted(path.parent for path in STUDIES.glob("*/protocol.toml"))


@pytest.fixture(scope="module")
def studies():
    return [load(protocol.read(folder), folder) for folder in FOLDERS]


def test_the_pages_are_those_of_the_stored_runs(studies):
    every = []
    for study, folder in zip(studies, FOLDERS, strict=True):
        asserted = claims.of(study)
        every += asserted
        text = (folder / "README.md").read_text()
        assert text == page.of(study, asserted), "python -m engine pages"
        for picture in pictures.of(study):
            assert (folder / picture).exists()
    text = page.CLAIMS.read_text()
    assert page.of_claims(every) in text
    assert page.of_comparisons(every) in text
    assert len(text.splitlines()) <= 200
    assert page.of_index(studies) in (STUDIES / "README.md").read_text()


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


def test_a_claim_has_a_row_for_its_source_and_one_for_each_part(tmp_path):
    text = small.LENGTHS + 'after = "the runs"\n'

    def outcome(setting):
        better = setting.layer == "RIN" and setting.length == 5
        return {"test": 0.5 + setting.seed / 100 - 0.25 * better}

    study = small.study(tmp_path, outcome, text)
    assert small.table(page.of(study, claims.of(study)))[:4] == [
        ["RIN is better.", "", "**holds in part**"],
        ["*our question; defined after the runs*", "*no such comparison*", ""],
        ["– length 5", "-0.25 (-0.25 to -0.25)", "holds"],
        ["– length 6", "+0 (0 to 0)", "does not hold"],
    ]
    half = Study(
        study.protocol, [r for r in study.runs if r.setting.length == 5]
    )
    (claim,) = claims.of(half)
    assert [part.answer for part in claim.parts] == ["yes", "not tested"]
    (counts, *_, unsolved) = small.table(page.of_comparisons([claim]))
    assert (counts[1], unsolved[1]) == ("1", "0")
    link = f"[{tmp_path.name}](../studies/{tmp_path.name}/README.md)"
    row = ["ours", "RIN is better.", "", "holds in part", link]
    assert small.table(page.of_claims([claim])) == [row]


def test_a_panel_has_a_row_and_a_model_a_column(tmp_path):
    text = 'panels = "length"\ntables = ["panels"]\n' + small.LENGTHS

    def outcome(setting):
        curve = [0.9, setting.length / 100]
        test = setting.length / 10 + 0.1 * (setting.layer == "RIN")
        return {"test": test, "curve": curve}

    study = small.study(tmp_path, outcome, text)
    assert small.table(tables.SHOWN["panels"](study)) == [
        ["5", "0.6 (0.001*)", "0.5 (0.001*)"],
        ["6", "0.7 (0.001*)", "0.6 (0.001*)"],
    ]
    assert "models.svg" not in pictures.of(study)
    curves = pictures._curves(study).axes
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
