"""A file or folder is replaced whole or not at all."""

import errno
import os
import pathlib
import tempfile

import pytest

from keras_rin import _files

pytestmark = pytest.mark.one_backend


def write(path, text):
    with _files.replacing(path) as new:
        new.write_text(text)


def fill(path, text):
    with _files.filling(path) as new:
        (new / "file.txt").write_text(text)
        (new / "folder").mkdir()
        (new / "folder" / text).write_text(text)


def contents(folder):
    paths = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): path.read_text() for path in paths}


# What a full disk may stop, in the order of the calls.
CALLS = [(tempfile, "mkdtemp"), (os, "fsync"), (pathlib.Path, "replace")]


@pytest.mark.parametrize("error", [*CALLS, KeyboardInterrupt, RuntimeError])
@pytest.mark.parametrize("put", [write, fill])
def test_an_error_leaves_what_was_there(tmp_path, monkeypatch, put, error):
    put(tmp_path / "old", "old")
    before = contents(tmp_path)

    def full(*args, **kwargs):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    if isinstance(error, type):
        with pytest.raises(error):
            manager = _files.replacing if put is write else _files.filling
            with manager(tmp_path / "old"):
                raise error
    elif not (put is fill and error[1] == "fsync"):
        monkeypatch.setattr(*error, full)
        with pytest.raises(OSError, match="No space.*is unchanged") as caught:
            put(tmp_path / "old", "new")
        assert caught.value.errno == errno.ENOSPC
        assert caught.value.filename == str(tmp_path / "old")
    assert contents(tmp_path) == before
    assert os.listdir(tmp_path) == ["old"]


def test_two_writers_do_not_meet(tmp_path):
    path = tmp_path / "file.txt"
    with _files.replacing(path) as first, _files.replacing(path) as second:
        first.write_text("one")
        second.write_text("other")
        assert first.suffix == ".txt" and not path.exists()
    assert contents(tmp_path) == {"file.txt": "one"}  # which is renamed last


def test_a_symbolic_link_stays(tmp_path):
    real, link = tmp_path / "disk" / "file.txt", tmp_path / "link.txt"
    link.symlink_to(real)
    for text in ("first", "second"):  # the first finds the link dangling
        write(link, text)
        assert link.is_symlink() and real.read_text() == text


def test_a_folder_is_filled_beside_its_other_entries(tmp_path):
    path = tmp_path / "missing" / "too" / "folder"
    fill(path, "old")
    (path / "other").write_text("kept")
    fill(path, "new")
    expected = {"file.txt": "new", "folder/new": "new", "other": "kept"}
    assert contents(path) == expected


@pytest.mark.parametrize("name", ["folder", "pipe"])
def test_what_is_no_file_is_not_replaced(tmp_path, name):
    path = tmp_path / name
    path.mkdir() if name == "folder" else os.mkfifo(path)
    with pytest.raises(OSError, match="not a regular file") as error:
        write(path, "")
    assert error.value.filename == str(path)
    assert not path.is_file()
