"""Atomic replacement of files."""

import contextlib
import errno
import os
import pathlib
import tempfile


@contextlib.contextmanager
def replacing(path, content="The file"):
    """Yields a path to write to, which replaces `path` when it is complete.

    An error, a kill or a full disk before leaves the file at `path` as it is.
    Of a symbolic link the target is replaced.
    """
    target = pathlib.Path(os.path.realpath(path))
    with _folder_in(target.parent, path, content) as folder:
        if target.exists() and not target.is_file():
            raise FileExistsError(errno.EEXIST, "It is not a regular file")
        new = folder / target.name
        yield new
        with new.open("rb+") as file:
            os.fsync(file.fileno())
        new.replace(target)


@contextlib.contextmanager
def filling(path, content="The folder"):
    """Yields a folder whose entries move to the folder `path` when complete.

    There they replace those of the same names.
    """
    target = pathlib.Path(os.path.realpath(path))
    parent = target if target.is_dir() else target.parent
    with _folder_in(parent, path, content) as folder:
        yield folder
        target.mkdir(exist_ok=True)
        for entry in list(folder.iterdir()):
            _move(entry, target / entry.name)


def _move(entry, target):
    if target.is_dir() and not target.is_symlink():
        target.replace(entry.with_name(f"{entry.name}.replaced"))
    entry.replace(target)


@contextlib.contextmanager
def _folder_in(parent, path, content):
    """Yields a new folder in another one; errors name `path` and `content`."""
    try:
        parent.mkdir(parents=True, exist_ok=True)
        options = {"dir": parent, "ignore_cleanup_errors": True}
        with tempfile.TemporaryDirectory(".new", ".", **options) as folder:
            yield pathlib.Path(folder)
    except OSError as error:
        message = f"{content} cannot be written ({error}) and is unchanged"
        raise OSError(error.errno, message, str(path)) from error
