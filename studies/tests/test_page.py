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


def test_the_pages_are_those_of_the_stored_runs():
    every = measurement.claims_of_programs()
    for study in map(load, protocol.every()):
        study_claims = claims.evaluate(study)
        every += study_claims
        text = (study.protocol.folder / "README.md").read_text()
        written = page.of_study(study, study_claims)
        if part := study.protocol.part:
            written = f"<!-- {part} -->\n{written}<!-- end -->"
        assert written in text, "python -m engine pages"
        for picture in pictures.figures(study):
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


def test_a_study_without_runs_says_so(tmp_path):
    study = Study(small.read(tmp_path / "a_b"))
    assert page.of_study(study, []) == (
        "# a b\n\n**Which?**\n\nSmall.\n\n    python -m engine run a_b\n\n"
        f"Not run yet.\n\n{page.GUIDE}\n"
    )
    (claim,) = claims.evaluate(study)
    assert (claim.parts, claim.verdict) == ([], "not tested")


@pytest.mark.parametrize(
    "universal, answers, verdict",
    [
        (False, ["yes", "no"], "holds in 1 of 2 lengths"),
        (True, ["yes", "no"], "does not hold"),
        (True, ["yes", "not tested"], "holds in 1 of 2 lengths"),
    ],
)
def test_one_no_refutes_a_claim_without_exceptions(
    tmp_path, universal, answers, verdict
):
    claim = '[claims."RIN is better."]\n'
    assert claim in small.LENGTHS
    key = "universal = true\n" * universal
    text = small.LENGTHS.replace(claim, claim + key)

    def outcome(setting):
        if setting["length"] == 6 and answers[1] == "not tested":
            return None
        better = setting["layer"] == "RIN" and setting["length"] == 5
        return {"test": 0.5 + setting["seed"] / 100 - 0.25 * better}

    (claim,) = claims.evaluate(small.study(tmp_path, outcome, text))
    assert [part.answer for part in claim.parts] == answers
    assert claim.verdict == verdict
