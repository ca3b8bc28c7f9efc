"""Pages, tables and pictures show what is stored."""

import numpy as np
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
from engine.study import stored

FOLDERS = sorted(path.parent for path in STUDIES.glob("*/protocol.toml"))
GAINS = "grid = [{ chain_gain = [0.0, 0.5], identity_gain = [0.1, 0.2, 0.3],"


@pytest.fixture(scope="module")
def studies():
    return [stored(protocol.read(folder), folder) for folder in FOLDERS]


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


def test_stored_runs_are_those_of_the_protocol_and_made_once(studies):
    """Those beyond the grid differ from one of its runs in the rate alone."""
    for study in studies:
        made = [run.setting for run in study.runs]
        assert len(set(made)) == len(made)
        asked = {s.without(["learning_rate"]) for s in study.protocol.settings}
        assert {s.without(["learning_rate"]) for s in made} <= asked


def test_a_page_tells_how_its_runs_were_made_or_that_they_were_not(tmp_path):
    processors = None, "Fast", "Fast, AVX2"
    made = small.study(
        tmp_path / "a_b", lambda s: {"processor": processors[s.seed]}
    )
    asked, runs = made.protocol, made.runs

    def text(runs):
        study = Study(asked, runs, small.RECORD)
        return page.of(study, claims.of(study))

    assert text(()).startswith("# a b\n\n**Which?**\n\nSmall.\n")
    assert "    python -m engine run a_b\n\nNot run yet.\n" in text(())
    assert "| Not run yet." in text(())
    assert "\nNot run yet, but for 1 of 12 runs.\n" in text(runs[:1])
    assert (
        "\n12 of 12 runs, 3 seeds; keras 3, tensorflow 2; 5 minutes, a "
        "machine; Fast (AVX2); others not recorded.\n"
    ) in text(runs)
    beyond = small.run(runs[0].setting.at(learning_rate=0.1))
    more = text((*runs, beyond))
    assert "\n12 of 12 runs and 1 at further learning rates, 3 s" in more
    assert "; about 0.09 hours on two cores; Fast" in more
    assert tables.SHOWN["models"](made).strip() in text(runs)
    assert "![Normalized test loss of each model](models.png)" in text(runs)


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


def test_a_table_has_a_row_for_each_model_or_rate(tmp_path):
    def outcome(setting):
        low = setting.learning_rate == 0.001
        lost = {"error": "nan"} if low and setting.seed == 1 else {}
        test = 0.1 + setting.seed / 10 + 0.5 * low
        return {"validation": 0.2 + 0.4 * low, "test": test} | lost

    study = small.study(tmp_path, outcome)
    (row, _) = small.table(tables.SHOWN["models"](study))
    assert row == ["RIN", "0.2 (0.1 to 0.3)", "0.01*", "3 of 6", "1 of 6"]
    (low, high, *_) = small.table(tables.SHOWN["rates"](study))
    assert low == ["RIN", "0.001", "0 of 3", "1", "0.7 (0.6 to 0.8)"]
    assert high == ["RIN", "0.01", "3 of 3", "0", "0.2 (0.1 to 0.3)"]
    (row, _) = small.table(tables.SHOWN["settings"](study))
    assert row == ["RIN", "0.6, 0 of 3", "0.2, 3 of 3"]
    (row, _) = small.table(tables.SHOWN["accuracies"](study))
    assert row == ["RIN", "80.0% (70.0% to 90.0%)", "0.01*"]


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
    (axes,) = pictures.of(study)["models.png"](study).axes
    drawn = [list(line.get_xdata()) for line in axes.lines[:2]]
    np.testing.assert_allclose(drawn, [[0.6, 0.7], [0.5, 0.6]])
    figure = pictures._models(study)
    names = [[t.get_text() for t in a.get_yticklabels()] for a in figure.axes]
    assert names == [["IRNN", "RIN"]] * 2  # the best on top
    curves = pictures._curves(study).axes
    assert [axes.get_title("left") for axes in curves] == [
        "length 5",
        "length 6",
    ]
    ends = [list(axes.lines[0].get_ydata())[-1] for axes in curves]
    assert ends == [0.05, 0.06]
    assert {axes.get_yscale() for axes in curves} == {"log"}


def test_two_hyperparameters_are_drawn_as_a_map(tmp_path):
    text = 'tuned = ["chain_gain", "identity_gain"]\n' + small.TOML
    study = small.study(
        tmp_path,
        lambda s: {"validation": s.chain_gain + s.identity_gain},
        text.replace("grid = [{", GAINS).replace("[0.001, 0.01]", "0.001"),
    )
    axes = pictures.of(study)["settings.png"](study).axes[0]
    cells = [text.get_text() for text in axes.texts]
    assert cells == ["0.10", "0.60", "0.20", "0.70", "0.30", "0.80"]
    assert axes.get_xlabel() == "chain gain"


def test_models_are_told_by_the_hyperparameters_that_differ(tmp_path):
    asked = small.read(tmp_path).settings[0]
    lengths = [asked.at(length=n, updates=10 * n) for n in (1, 2)]
    names = ["layer", "length", "updates"]
    assert words.telling_names(lengths, names) == ["length"]
    others = [asked.at(images=name, units=n) for n, name in enumerate("ab")]
    assert words.telling_names(others, ["images", "units", "layer"]) == [
        "images"
    ]
    pairs = [
        (asked.at(length=n), asked.at(layer="GRU", length=n)) for n in (1, 2)
    ]
    assert words.condition(pairs[0], pairs, names) == "length 1"
    pairs = [(asked, asked.at(layer=name)) for name in ("GRU", "LSTM")]
    assert words.condition(pairs[1], pairs, names) == "vs. LSTM"
    cells = [words.cell(value) for value in (True, False, 0.01, "a", None)]
    assert cells == ["yes", "no", "0.01", "a", ""]
    assert words.label([("layer", "a"), ("number", 4)]) == "a, task 4"
