"""The picture and the table of docs/architecture.md, held against the code."""

import ast
import pathlib
import re
import sys

import pytest

import keras_rin

PACKAGE = pathlib.Path(keras_rin.__file__).parent
ROOT = PACKAGE.parent
PAGE = (ROOT / "docs" / "architecture.md").read_text()
FILES = sorted(PACKAGE.rglob("*.py"))


def rows():
    """The names in the cells of the tables, row by row."""
    lines = [line for line in PAGE.splitlines() if line.startswith("| `")]
    return [
        [re.findall("`(.*?)`", cell) for cell in line.split("|")[1:4]]
        for line in lines
    ]


# {room: (what of ours it may import, what of others)}
ROOMS = {
    room: (set(ours), set(others))
    for (room,), ours, others in rows()
    if not room.endswith("/")
}
# {folder around the package: what of the repository it imports}
FOLDERS = {
    folder: set(ours) for (folder,), _, ours in rows() if folder.endswith("/")
}


def imports(path):
    """Dotted names a file imports: `from a import b` counts as `a.b`."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def room(path):
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_file_imports_only_what_its_room_may(path):
    ours, others = ROOMS[room(path)]
    for name in imports(path):
        first, *rest = name.split(".")
        if first == "keras_rin":
            assert rest[0] in ours, f"{path} may not import {name}"
        else:
            allowed = others | sys.stdlib_module_names
            assert first in allowed, f"{path} may not import {name}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_only_public_keras_is_imported(path):
    assert not [name for name in imports(path) if "keras.src" in name]


def test_the_rooms_are_those_of_the_picture():
    assert {room(path) for path in FILES} == set(ROOMS)
    picture = PAGE.split("```")[1]
    missing = [name for name in ROOMS if name not in picture]
    assert missing == []


def test_every_import_that_is_allowed_is_made():
    made = {name: set() for name in ROOMS}
    for path in FILES:
        for name in imports(path):
            first, *rest = name.split(".")
            made[room(path)].add(rest[0] if first == "keras_rin" else first)
    for name, (ours, others) in ROOMS.items():
        assert ours | others <= made[name], f"{name} imports less"


@pytest.mark.parametrize("folder", FOLDERS)
def test_around_the_package_only_public_names_are_used(folder):
    examples = {path.stem for path in (ROOT / "examples").glob("*.py")}
    of_repository = {"benchmarks", "docs", "examples", "experiments", "tests"}
    public = ROOMS["__init__"][0] | {"files"}
    made = set()
    for path in (ROOT / folder).rglob("*.py"):
        for name in imports(path):
            first, *rest = name.split(".")
            made.add(first)
            if first == "keras_rin" and rest:
                assert rest[0] in public, f"{path} may not import {name}"
    assert made & (of_repository | examples) == FOLDERS[folder]


def test_every_script_is_in_a_folder_of_the_table():
    """Docs has scripts for its own pages, tests those that run tests."""
    found = {
        path.relative_to(ROOT).parts[0]
        for path in ROOT.glob("*/*.py")
        if path.parent != PACKAGE
    }
    assert found == {folder.split("/")[0] for folder in FOLDERS} | {"docs"}


def test_every_file_of_ours_has_its_tests():
    for path in FILES:
        if not path.stem.startswith("_"):  # private, tested by their users
            assert (ROOT / "tests" / f"test_{path.stem}.py").exists(), path
