"""A record is written whole, with what made it, and read back as it was."""

import errno
import importlib.metadata
import os

import pytest

from engine import record


def test_a_record_comes_back_with_its_command_and_versions(tmp_path):
    path = tmp_path / "study" / "results.json"
    assert record.read(path) is None
    written = record.write(path, {"sizes": [(1, 2)]})
    assert written == record.read(path)
    assert written["sizes"] == [[1, 2]]
    keras = importlib.metadata.version("keras")
    assert written["versions"]["keras"] == keras
    assert {"command", "machine", "processor", "python"} < written.keys()


def test_a_full_disk_leaves_the_file_and_nothing_else(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    path = tmp_path / "results.json"
    record.write_text(path, "old")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        record.write_text(path, "new")
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["results.json"]


def test_words_are_to_the_left_and_numbers_to_the_right():
    columns = {"layer": "{layer}", "ms": "{ms:.1f}"}
    rows = [{"layer": "RIN", "ms": 1.52}, {"layer": "GRU", "ms": 20}]
    assert record.table(columns, rows).splitlines() == [
        "| layer   |   ms |",
        "|:--------|-----:|",
        "| RIN     |  1.5 |",
        "| GRU     | 20.0 |",
    ]
