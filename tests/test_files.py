"""A file is replaced whole or not at all."""

import errno
import os
import pathlib
import shutil
import tempfile
from concurrent import futures

import pytest

from keras_rin import _files

pytestmark = pytest.mark.one_backend

# What a full disk may stop, in the order of their calls.
CALLS = [(tempfile, "mkdtemp"), (os, "fsync"), (pathlib.Path, "replace")]


def write(path, text):
    with _files.replacing(path) as new:
        new.write_text(text)


def full(*args, **kwargs):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("owner, name", CALLS, ids=lambda value: str(value))
def test_a_full_disk_leaves_the_file_and_nothing_else(
    tmp_path, monkeypatch, owner, name
):
    path = tmp_path / "file.txt"
    path.write_text("old")
    monkeypatch.setattr(owner, name, full)
    with pytest.raises(OSError, match="No space left.*is unchanged") as error:
        write(path, "new")
    assert error.value.errno == errno.ENOSPC
    assert error.value.filename == str(path)
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["file.txt"]


def test_an_error_while_it_is_written_leaves_the_file_as_it_is(tmp_path):
    path = tmp_path / "file.txt"
    write(path, "old")
    for error in (KeyboardInterrupt, RuntimeError):
        with pytest.raises(error):
            with _files.replacing(path) as new:
                new.write_text("half")
                raise error
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["file.txt"]


def test_two_writers_do_not_meet(tmp_path):
    path = tmp_path / "file.txt"
    with _files.replacing(path) as first, _files.replacing(path) as second:
        first.write_text("one")
        second.write_text("other")
        assert first != second and first.suffix == second.suffix == ".txt"
        assert not path.exists()
    assert path.read_text() == "one"  # which is renamed last


def test_a_reader_finds_whole_files_while_several_write(tmp_path):
    path = tmp_path / "file.txt"
    write(path, "a")

    def write_often(letter):
        for length in range(1, 12):
            write(path, letter * 1_000 * length)

    with futures.ThreadPoolExecutor() as pool:
        writing = [pool.submit(write_often, letter) for letter in "abc"]
        texts = []
        while not all(future.done() for future in writing):
            texts.append(path.read_text())
        for future in writing:
            future.result()
    assert len(texts) > 3
    for text in texts:
        assert len(set(text)) == 1 and len(text) % 1_000 in (0, 1)
    assert os.listdir(tmp_path) == ["file.txt"]


def test_a_symbolic_link_stays_and_what_it_points_to_is_replaced(tmp_path):
    real, link = tmp_path / "disk" / "file.txt", tmp_path / "link.txt"
    link.symlink_to(real)
    for text in ("first", "second"):  # the first finds the link dangling
        write(link, text)
        assert link.is_symlink()
        assert real.read_text() == link.read_text() == text
    assert sorted(os.listdir(tmp_path)) == ["disk", "link.txt"]


def test_a_new_file_has_the_permissions_that_any_has(tmp_path):
    write(tmp_path / "one.txt", "")
    (tmp_path / "other.txt").write_text("")
    replaced_mode, plain_mode = (
        (tmp_path / n).stat().st_mode for n in ("one.txt", "other.txt")
    )
    assert replaced_mode == plain_mode


@pytest.mark.parametrize("name", ["folder", "pipe"])
def test_what_is_no_file_is_not_replaced(tmp_path, name):
    path = tmp_path / name
    path.mkdir() if name == "folder" else os.mkfifo(path)
    before = path.stat()
    with pytest.raises(OSError, match="not a regular file") as error:
        write(path, "")
    assert error.value.filename == str(path)
    assert path.stat().st_mode == before.st_mode


def test_what_a_kill_left_is_removed_and_only_that(tmp_path):
    path, near = tmp_path / "a[1].txt", tmp_path / "a1.txt"
    left = []
    for name in (path, near):
        with _files.replacing(name) as new:
            new.write_text("whole")
            killed = tmp_path / f".{name.name}.killed_1.new"
            left.append(shutil.copytree(new.parent, killed))
    with _files.replacing(f"{path}.npz") as new:  # of another file
        _files.remove_unfinished(path)
        new.write_text("whole")
    assert [folder.exists() for folder in map(pathlib.Path, left)] == [
        False,
        True,
    ]
    assert path.read_text() == near.read_text() == "whole"


def fill(path, text):
    with _files.filling(path) as new:
        pathlib.Path(new, "file.txt").write_text(text)
        pathlib.Path(new, "folder").mkdir()
        pathlib.Path(new, "folder", text).write_text(text)


def test_a_folder_is_filled_beside_its_other_entries(tmp_path):
    path = tmp_path / "missing" / "folder"
    fill(path, "old")
    (path / "other").write_text("kept")
    fill(path, "new")
    assert sorted(os.listdir(path)) == ["file.txt", "folder", "other"]
    assert os.listdir(path / "folder") == ["new"]
    assert (path / "file.txt").read_text() == "new"


def test_an_error_while_a_folder_is_filled_leaves_it_as_it_is(
    tmp_path, monkeypatch
):
    fill(tmp_path / "old", "old")
    for path in (tmp_path / "old", tmp_path / "new"):
        with pytest.raises(RuntimeError):
            with _files.filling(path) as new:
                pathlib.Path(new, "file.txt").write_text("half")
                raise RuntimeError
    monkeypatch.setattr(tempfile, "mkdtemp", full)
    with pytest.raises(OSError, match="No space left.*is unchanged"):
        fill(tmp_path / "new", "half")
    assert os.listdir(tmp_path) == ["old"]
    assert sorted(os.listdir(tmp_path / "old")) == ["file.txt", "folder"]
    assert (tmp_path / "old" / "file.txt").read_text() == "old"
