"""Runs of a measure.py are stored as they end, and are not made again."""

import json

import pytest

from engine.partial_runs import PartialRuns

FIELDS = "layer", "length"


def test_a_second_start_finds_the_runs_that_were_set(tmp_path):
    path = tmp_path / "study" / "partial.jsonl"
    runs = PartialRuns(path, FIELDS)
    assert not runs
    runs["RIN", 5] = {"losses": (0.5, 0.25)}
    runs["GRU", 5] = {"losses": []}
    resumed = PartialRuns(path, FIELDS)
    assert list(resumed) == [("RIN", 5), ("GRU", 5)]
    assert ("RIN", 6) not in resumed
    expected = {"layer": "RIN", "length": 5, "losses": [0.5, 0.25]}
    assert resumed["RIN", 5] == runs["RIN", 5] == expected
    first, _ = path.read_text().splitlines()
    assert json.loads(first) == expected


def test_two_commands_keep_the_runs_of_each_other(tmp_path):
    path = tmp_path / "partial.jsonl"
    first, second = PartialRuns(path, FIELDS), PartialRuns(path, FIELDS)
    first["RIN", 5] = {"loss": 0.5}
    second["RIN", 6] = {"loss": 0.6}
    assert list(second) == [("RIN", 5), ("RIN", 6)]
    assert PartialRuns(path, FIELDS) == second


def test_only_missing_runs_are_made_and_all_come_in_order(tmp_path):
    runs = PartialRuns(tmp_path / "partial.jsonl", FIELDS)
    runs["RIN", 6] = {"loss": 0.6}
    keys = (("RIN", length) for length in (5, 6, 7))
    complete = runs.complete(keys, lambda layer, length: {"loss": length / 2})
    assert [run["loss"] for run in complete] == [2.5, 0.6, 3.5]
    assert PartialRuns(runs.path, FIELDS) == runs


def test_without_a_path_nothing_is_stored(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    runs = PartialRuns(None, FIELDS)
    runs["RIN", 5] = {"loss": 0.5}
    assert runs["RIN", 5] == {"layer": "RIN", "length": 5, "loss": 0.5}
    assert list(tmp_path.iterdir()) == []


def test_a_key_has_a_value_for_each_field():
    with pytest.raises(ValueError, match="shorter"):
        PartialRuns(None, FIELDS)["RIN",] = {}
