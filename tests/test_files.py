"""Files are replaced as a whole, whatever call of the system fails."""

import itertools
import os
import pathlib

import pytest

from keras_rin import _files

pytestmark = pytest.mark.one_backend


def write_one(folder, text):
    with _files.replacing(folder / "one") as new:
        new.write_text(text)


def write_two(folder, text):
    names = [folder / "one", folder / "two"]
    with _files.replacing_all(names) as new:
        for path in new:
            path.write_text(text)


def write_folder(folder, text):
    with _files.filling(folder / "model") as new:
        (new / "graph").write_text(text)
        (new / "variables").mkdir()
        (new / "variables" / "index").write_text(text)


def contents(folder):
    files = filter(pathlib.Path.is_file, folder.rglob("*"))
    return {str(path.relative_to(folder)): path.read_text() for path in files}


def failing(function, number):
    """The function, of which one call finds the disk full."""
    calls = itertools.count()

    def call(*args):
        if next(calls) == number:
            raise OSError(28, "No space left on device")
        return function(*args)

    return call


@pytest.mark.parametrize("write", [write_one, write_two, write_folder])
@pytest.mark.parametrize("is_new", [True, False])
@pytest.mark.parametrize("fault", [(os, "fsync"), (pathlib.Path, "replace")])
def test_all_files_are_replaced_or_none(
    write, is_new, fault, tmp_path, monkeypatch
):
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "kept").write_text("kept")
    if not is_new:
        write(tmp_path, "old")
    before = contents(tmp_path)
    for number in itertools.count():
        with monkeypatch.context() as patch:
            patch.setattr(*fault, failing(getattr(*fault), number))
            try:
                write(tmp_path, "new")
                break
            except OSError as error:
                assert "is unchanged" in str(error)
        assert contents(tmp_path) == before
    assert number >= (1 if write is write_one else 2)
    after = contents(tmp_path)
    assert after.keys() >= before.keys() and after != before
    assert set(after.values()) == {"new", "kept"}


@pytest.mark.parametrize("write", [write_two, write_folder])
def test_a_kill_leaves_no_mixture(write, tmp_path, monkeypatch):
    """At no moment are old and new files at their places."""
    write(tmp_path, "old")
    seen, replace = [], pathlib.Path.replace

    def watched(*args):
        replace(*args)
        texts = contents(tmp_path)
        seen.append({texts[p] for p in texts if ".new" not in p})

    monkeypatch.setattr(pathlib.Path, "replace", watched)
    write(tmp_path, "new")
    assert {"new"} in seen and {"old", "new"} not in seen
