"""A record is written whole, with what made it, and read back as it was."""

import errno
import importlib.metadata
import os
import subprocess
import sys

import pytest
from absl import app

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


def test_a_block_that_fails_leaves_the_file(tmp_path):
    path = tmp_path / "results.json"
    record.write_text(path, "old")
    with pytest.raises(KeyboardInterrupt):
        with record.replacing(path) as new:
            new.write_text("half")
            raise KeyboardInterrupt
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["results.json"]


def test_a_folder_that_cannot_be_written_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(app.UsageError, match="Received: --output="):
        record.output_folder(tmp_path / "file")
    assert record.output_folder(tmp_path / "new" / "folder").is_dir()


@pytest.mark.parametrize("backend", ["tensorflow", "jax"])
def test_a_command_names_the_module_and_another_backend(tmp_path, backend):
    (tmp_path / "measure.py").write_text(
        "from engine import record\nprint(record.command())"
    )
    folders = [str(record.STUDIES), str(tmp_path)]
    line = ["-m", "measure", "--name=a b"]
    printed = subprocess.check_output(
        [sys.executable, *line],
        env={
            **os.environ,
            "KERAS_BACKEND": backend,
            "PYTHONPATH": os.pathsep.join(folders),
        },
        text=True,
    )
    command = "python -m measure '--name=a b'\n"
    prefix = "" if backend == "tensorflow" else "KERAS_BACKEND=jax "
    assert printed == prefix + command


def test_words_are_to_the_left_and_numbers_to_the_right():
    table = record.markdown(["layer", "ms"], [["RIN", "1.50"], ["GRU", "20"]])
    assert table.splitlines() == [
        "| layer   |   ms |",
        "|:--------|-----:|",
        "| RIN     | 1.50 |",
        "| GRU     |   20 |",
    ]
