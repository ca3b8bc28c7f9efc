"""The tables of docs/claims.md and of the README."""

import numpy as np
import pytest
from scipy import stats
from studies import PROTOCOL
from studies import PROTOCOLS
from studies import RESULTS
from studies import UNDER_TENSORFLOW
from studies import gains_study
from studies import runs_of

from experiments import pages
from experiments import runner
from experiments import summary
from experiments import tables
from experiments import verdicts

pytestmark = UNDER_TENSORFLOW


def test_the_table_of_texts_tells_hours_and_processors():
    claim = {"about": "nonnormal", "source": "Orhan", "statement": "A."}
    claim |= {"compare": [["a", "b"]], "expect": "better", "within": 0.05}
    protocol = {**PROTOCOL, "claims": [claim]}
    runs = [
        {**run, "processor": processor} if name == "a" else run
        for name in "ab"
        for rate in (1, 2)
        for run, processor in zip(
            runs_of(name, rate, 1.0, [1.0, 0.9, 1.1]),
            ("Fast", "Fast, AVX2", "Fast"),
            strict=True,
        )
    ]
    took = {"runs": 3, "seconds": 1800.0}  # of twelve runs
    models = [{"layer": name, "seconds": 1200} for name in "ab"]
    estimate = {"models": models, "processor": "Slow"}
    rows = []
    for record in ({"runs": runs, "took": took}, None):
        study = verdicts.Study(protocol, record, estimate)
        table = pages.of_texts({"p": study})["texts.md"].splitlines()[2]
        rows.append([cell.strip() for cell in table.split("|")[4:-1]])
    hours = "2", "2 (estimated)"  # twelve runs of 20 minutes, two at a time
    assert rows[0][1:] == [hours[0], "Fast (AVX2); others not recorded"]
    assert rows[1] == ["not tested", hours[1], "Slow"]


def test_the_tables_are_those_of_the_records():
    studies = {n: runner.stored(p, RESULTS / n) for n, p in PROTOCOLS.items()}
    for made in (
        pages.of_tiers,
        pages.of_comparisons,
        pages.of_texts,
        pages.of_claims,
        pages.of_protocols,
    ):
        for name, text in made(studies).items():
            assert (RESULTS / name).read_text() == text


def test_a_section_tells_how_its_runs_were_made_or_that_they_were_not(tmp_path):
    words = {"question": "Who?", "setting": "Where.", "differs": "From what."}
    study = gains_study()
    protocol = {**words, **study.protocol}

    def section(record):
        made = {"a_b": verdicts.Study(protocol, record)}
        return pages.of_protocols(made)["protocols.md"]

    text = section(None)
    assert text.startswith("### a b\n\n**Who?**\n\nWhere. From what.\n")
    assert "--run=night --protocol=a_b\n" in text
    assert text.endswith("\n\nNot run yet.\n")
    took = {"runs": 6, "seconds": 300}
    versions = {"keras": "3", "tensorflow": "2"}
    record = {**study.record, "took": took, "versions": versions}
    record["machine"] = "a machine"
    text = section({**record, "runs": record["runs"][:4]})
    assert "Not run yet, but for 4 of 6 runs.\n" in text
    text = section(record)
    told = "6 of 6 runs, 1 seed; keras 3, tensorflow 2; 5 minutes, a machine."
    assert told in text
    beyond = {**record["runs"][0], "other": 4.0}
    more = section({**record, "runs": [*record["runs"], beyond]})
    assert "\n6 of 6 runs and 1 at further learning rates, 1 seed;" in more
    assert tables.of_models(study).strip() in text


def test_the_runs_of_a_tier_are_counted():
    study = gains_study()
    study.runs.pop()
    night = study.protocol
    others = {"b": {**night, "tier": "core"}, "c": night}
    studies = {n: verdicts.Study(one) for n, one in others.items()}
    text = pages.of_tiers({"a": study, **studies})["tiers.md"]
    rows = [line.replace("|", " ").split() for line in text.splitlines()]
    assert ["core", "1", "6", "0"] in rows
    assert ["night", "2", "12", "5"] in rows


def test_comparisons_of_a_claim_are_told_apart():
    one, two = {"train": 1, "layer": "a"}, {"train": 2, "layer": "a"}
    with_b = [(case, {**case, "layer": "b"}) for case in (one, two)]
    told = [pages.condition(pair, with_b) for pair in with_b]
    assert told == ["training samples 1", "training samples 2"]
    with_c = [*with_b[:1], (one, {**one, "layer": "c"})]
    told = [pages.condition(pair, with_c) for pair in with_c]
    assert told == ["vs. b", "vs. c"]
    with_a = [(other, one) for one, other in with_c]
    told = [pages.condition(pair, with_a) for pair in with_a]
    assert told == ["b", "c"]
    assert pages.condition(with_b[0], with_b[:1]) == ""


def test_a_claim_has_a_row_for_its_source_and_one_for_each_comparison():
    claim = {"statement": "A.", "source": "us", "published": "none"}
    one = ("", "-1 (-2 to 0)", "yes")
    first, source = ["A.", "-1 (-2 to 0)", "**holds**"], ["*us*", "*none*", ""]
    assert pages._rows(claim, [one], "holds") == [first, source]
    late = {**claim, "after": "the runs"}
    (_, (said, *_)) = pages._rows(late, [one], "holds")
    assert said == "*us; defined after the runs*"
    two = [("task 1", "-1", "yes"), ("task 2", "+1", "inconclusive")]
    assert pages._rows(claim, two, "holds in part") == [
        ["A.", "", "**holds in part**"],
        source,
        ["– task 1", "-1", "holds"],
        ["– task 2", "+1", "inconclusive"],
    ]


def test_a_claim_is_answered_where_its_runs_are_made():
    claim = {"about": "mine", "statement": "A.", "source": "Orhan"}
    claim |= {"compare": [["a", "b"]], "expect": "better", "within": 0.05}
    claim["published"] = "none"
    grid = {"length": [1, 2], "layer": ["a", "b"], "learning_rate": [1]}
    protocol = {**PROTOCOL, "grid": [grid], "claims": [claim]}
    runs = [
        {**run, "length": length}
        for length in (1, 2)
        for layer, losses in (("a", [0.4, 0.5, 0.3]), ("b", [1.0, 1.2, 1.1]))
        for run in runs_of(layer, 1, 0.5, losses)
    ]
    found = {}
    for count in (12, 9, 3):
        study = verdicts.Study(protocol, {"runs": runs[:count]})
        parts, _ = pages._tested(claim, study, "p")
        found[count] = [(of, answer) for of, _, answer in parts]
        (text,) = pages.of_comparisons({"p": study}).values()
        compared = int(text.splitlines()[2].split("|")[2])
        assert compared == [answer for *_, answer in parts].count("yes")
    assert found == {
        12: [("length 1", "yes"), ("length 2", "yes")],
        9: [("length 1", "yes"), ("length 2", "not tested")],
        3: [],
    }


@pytest.mark.parametrize("third, hold", [(0.04, 1), (0.035, 3)])
def test_the_discovery_rate_is_that_of_benjamini_and_hochberg(third, hold):
    """The k smallest of m p values hold if the k-th is at most 0.05 k / m."""
    runs = runs_of("a", 1, 0.5, [0.4, 0.4, 0.4])
    for layer, p in zip("bcde", (0.001, 0.03, third, 0.6), strict=True):
        spread = 0.3 * np.sqrt(3) / stats.t.isf(p / 2, 2)
        losses = 0.4 + 0.3 + spread * np.array([-1, 0, 1])
        runs += runs_of(layer, 1, 0.5, losses)
    claim = {"compare": [["a", layer] for layer in "bcde"]}
    claim |= {"expect": "better", "within": 0.05}
    grid = {"layer": [*"abcde"], "learning_rate": [1]}
    protocol = {**PROTOCOL, "grid": [grid], "claims": [claim]}
    study = verdicts.Study(protocol, {"runs": runs})
    (text,) = pages.of_comparisons({"mine": study}).values()
    counts = [line.split("|")[2].strip() for line in text.splitlines()[2:]]
    assert counts == ["4", "3", str(hold), "0"]


def test_comparisons_that_no_model_solved_are_counted_as_such():
    claim = {"compare": [["a", "b"], ["b", "a"]]}
    claim |= {"expect": "better", "within": 0.05}
    runs = [
        run
        for layer in "ab"
        for rate in (1, 2)
        for run in runs_of(layer, rate, 2.0, [2.0] * 3)
    ]
    study = verdicts.Study({**PROTOCOL, "claims": [claim]}, {"runs": runs})
    (text,) = pages.of_comparisons({"mine": study}).values()
    counts = [line.split("|")[2].strip() for line in text.splitlines()[2:]]
    assert counts == ["2", "0", "0", "2"]


def test_every_claim_is_in_the_tables_once():
    families = {c["about"] for p in PROTOCOLS.values() for c in p["claims"]}
    pages = [(RESULTS / f"{family}.md").read_text() for family in families]
    lines = [line for page in pages for line in page.splitlines()]
    cells = [line.split(" |")[0].strip("| ") for line in lines]
    claims = [
        claim["statement"]
        for protocol in PROTOCOLS.values()
        for claim in protocol["claims"]
    ]
    for statement in claims:
        assert cells.count(statement) == claims.count(statement), statement


def test_the_numbers_of_the_readme_are_those_of_the_results():
    path = RESULTS.parent / "summary.md"
    assert path.read_text() == summary.table(), "python -m experiments.summary"
