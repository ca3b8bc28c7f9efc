"""Files that are whole at any moment."""

import contextlib
import errno
import glob
import os
import pathlib
import shutil
import tempfile


@contextlib.contextmanager
def replacing(path, content="The file"):
    """A name to write to; the file then takes the place of `path`, or nothing.

    The name ends as that of `path` does and stands in a new folder beside it,
    so that two processes never write to one file. Once the block is left, the
    file is written to disk and renamed. An error before that, a kill or a full
    disk leaves what is at `path` as it is. A symbolic link stays, and what it
    points to is replaced. Folders on the way to `path` are made.

    Args:
        path: The file to replace.
        content: String, what it holds, with which the error begins.

    Raises:
        OSError: If the file cannot be written, or `path` is a folder or a
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
            f"{content} cannot be written ({error}); what was there before "
            "stays as it is",
            str(path),
        ) from error


def remove_unfinished(path):
    """Removes what processes that were killed left on their way to `path`."""
    target = pathlib.Path(os.path.realpath(path))
    for folder in target.parent.glob(f"{glob.escape(_prefix(target))}*.new"):
        shutil.rmtree(folder, ignore_errors=True)


def _folder_beside(target):
    return tempfile.TemporaryDirectory(
        prefix=_prefix(target),
        suffix=".new",
        dir=target.parent,
        ignore_cleanup_errors=True,
    )


def _prefix(target):
    return f".{target.name[:100]}."
