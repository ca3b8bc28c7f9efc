"""Replacement of files when all of them are complete."""

import contextlib
import errno
import os
import pathlib
import tempfile


@contextlib.contextmanager
def replacing(path, content="The file"):
    """Yields a path to write to, as `replacing_all` does."""
    with replacing_all([path], content) as (new,):
        yield new


@contextlib.contextmanager
def replacing_all(paths, content="The files"):
    """Yields a list of paths to write to, which replace `paths` at the end.

    An error, a kill or a full disk before that leaves what is there; see
    `_rename` for what follows. Of a symbolic link the target is replaced.
    """
    targets = [pathlib.Path(os.path.realpath(path)) for path in paths]
    with _named_errors(paths[0], content), contextlib.ExitStack() as stack:
        folders = [stack.enter_context(_folder_in(t.parent)) for t in targets]
        for target in targets:
            if target.exists() and not target.is_file():
                reason = "It is not a regular file"
                raise FileExistsError(errno.EEXIST, reason, str(target))
        pairs = [(f / t.name, t) for f, t in zip(folders, targets, strict=True)]
        yield [new for new, _ in pairs]
        _rename(pairs)


@contextlib.contextmanager
def filling(path, content="The folder"):
    """Yields a folder whose entries move to the folder `path` at the end.

    There they replace those of the same names, as files do in `replacing_all`.
    """
    target = pathlib.Path(os.path.realpath(path))
    exists = target.is_dir()
    parent = target if exists else target.parent
    with _named_errors(path, content), _folder_in(parent) as folder:
        new = folder / target.name
        new.mkdir()
        yield new
        entries = [(entry, target / entry.name) for entry in new.iterdir()]
        _rename(entries if exists else [(new, target)])


def _rename(pairs):
    """Renames new paths to their targets, after all of them are on the disk.

    One new file or folder is renamed once. If there are several, or a folder is
    replaced, what is there is moved away first: a kill may then leave nothing,
    and never a mixture. An error brings back what was moved.
    """
    for new, _ in pairs:
        for file in filter(pathlib.Path.is_file, (new, *new.rglob("*"))):
            with file.open("rb+") as written:
                os.fsync(written.fileno())
    moves = [
        (target, new.with_name(f"{new.name}.replaced"))
        for new, target in pairs
        if target.is_dir() or (target.exists() and len(pairs) > 1)
    ]
    done: list[tuple] = []
    try:
        for move in (*moves, *pairs):
            move[0].replace(move[1])
            done.append(move)
    except BaseException:
        for before, after in reversed(done):
            after.replace(before)
        raise


@contextlib.contextmanager
def _folder_in(parent):
    """Yields a new folder in another one, and removes it."""
    parent.mkdir(parents=True, exist_ok=True)
    options = {"dir": parent, "ignore_cleanup_errors": True}
    with tempfile.TemporaryDirectory(".new", ".", **options) as folder:
        yield pathlib.Path(folder)


@contextlib.contextmanager
def _named_errors(path, content):
    """Errors name `path` and `content`, which is what it was before."""
    try:
        yield
    except OSError as error:
        message = f"{content} cannot be written ({error}) and is unchanged"
        raise OSError(error.errno, message, str(path)) from error
