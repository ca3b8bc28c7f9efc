"""Atomic replacement of files."""

import contextlib
import errno
import glob
import os
import pathlib
import shutil
import tempfile


@contextlib.contextmanager
def replacing(path, content="The file"):
    """Yields a path to write to, which replaces `path` when it is complete.

    The yielded path has the name of `path`, in a new folder beside it, so two
    processes never write to one file. At the end of the block the file is
    flushed to disk and renamed. After an error, a kill or a full disk before
    that, the file at `path` is unchanged. A symbolic link is kept and its
    target is replaced. Missing parent folders are created.

    Args:
        path: The file to replace.
        content: String, what the file contains, for the error message.

    Raises:
        OSError: If the file cannot be written, or if `path` is a folder or a
            device.
    """
    target = pathlib.Path(os.path.realpath(path))
    try:
        if target.exists() and not target.is_file():
            raise FileExistsError(errno.EEXIST, "It is not a regular file")
        target.parent.mkdir(parents=True, exist_ok=True)
        with _folder_beside(target) as folder:
            new = pathlib.Path(folder, target.name)
            yield new
            with new.open("rb+") as file:
                os.fsync(file.fileno())
            new.replace(target)
    except OSError as error:
        raise OSError(
            error.errno,
            f"{content} cannot be written ({error}); the previous file, if "
            "any, is unchanged",
            str(path),
        ) from error


@contextlib.contextmanager
def filling(path, content="The folder"):
    """Yields a folder to write to, whose entries move to `path` when complete.

    The yielded folder is a new one within `path`, which is created if it is
    missing, and keeps its other entries. After an error before the end of the
    block `path` is as it was.

    Args:
        path: The folder to fill.
        content: String, what the folder contains, for the error message.

    Raises:
        OSError: If the folder cannot be created or written.
    """
    target = pathlib.Path(os.path.realpath(path))
    is_new = not target.exists()
    try:
        target.mkdir(parents=True, exist_ok=True)
        try:
            with _folder_within(target) as folder:
                yield folder
                for entry in pathlib.Path(folder).iterdir():
                    _move(entry, target / entry.name)
        except BaseException:
            if is_new:
                with contextlib.suppress(OSError):  # some entries have moved
                    target.rmdir()
            raise
    except OSError as error:
        raise OSError(
            error.errno,
            f"{content} cannot be written ({error}); the previous one, if "
            "any, is unchanged",
            str(path),
        ) from error


def _move(entry, target):
    if target.is_dir() and not target.is_symlink():
        shutil.rmtree(target)
    entry.replace(target)


def remove_unfinished(path):
    """Removes what killed processes left while they wrote to `path`."""
    target = pathlib.Path(os.path.realpath(path))
    prefix, suffix = _prefix(target), ".new"
    for folder in target.parent.glob(f"{glob.escape(prefix)}*{suffix}"):
        if "." not in folder.name[len(prefix) : -len(suffix)]:  # not `run.npz`
            shutil.rmtree(folder, ignore_errors=True)


def _folder_beside(target):
    return tempfile.TemporaryDirectory(
        prefix=_prefix(target),
        suffix=".new",
        dir=target.parent,
        ignore_cleanup_errors=True,
    )


def _folder_within(target):
    return tempfile.TemporaryDirectory(
        prefix=".", suffix=".new", dir=target, ignore_cleanup_errors=True
    )


def _prefix(target):
    return f".{target.name[:100]}."
