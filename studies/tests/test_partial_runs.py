"""Runs of a program are stored as they end, and are not made again."""

import json

from engine.partial_runs import PartialRuns

FIELDS = "layer", "length"


def test_missing_runs_are_made_once_and_all_come_in_order(tmp_path):
    path = tmp_path / "study" / "partial.jsonl"
    runs = PartialRuns(path, FIELDS)
    runs["RIN", 6] = {"losses": (0.6, 0.5)}
    expected = {"layer": "RIN", "length": 6, "losses": [0.6, 0.5]}
    assert runs["RIN", 6] == json.loads(path.read_text()) == expected
    keys = (("RIN", length) for length in (5, 6, 7))
    resumed = PartialRuns(path, FIELDS)
    complete = resumed.complete(keys, lambda _, length: {"losses": [length]})
    assert [run["losses"] for run in complete] == [[5], [0.6, 0.5], [7]]
    assert PartialRuns(path, FIELDS) == resumed


def test_two_commands_keep_the_runs_of_each_other(tmp_path):
    path = tmp_path / "partial.jsonl"
    first, second = PartialRuns(path, FIELDS), PartialRuns(path, FIELDS)
    first["RIN", 5] = {"loss": 0.5}
    second["RIN", 6] = {"loss": 0.6}
    assert list(second) == [("RIN", 5), ("RIN", 6)]
    assert PartialRuns(path, FIELDS) == second
