"""The picture of docs/architecture.md, held against the code."""

import ast
import pathlib

import pytest

import keras_rin

PACKAGE = pathlib.Path(keras_rin.__file__).parent
ROOT = PACKAGE.parent

# room: (what of ours it may import, what of others)
ROOMS = {
    "__init__": (
        {
            "adapt",
            "callbacks",
            "constraints",
            "constructions",
            "diagnostics",
            "export",
            "initializers",
            "layers",
            "models",
            "optimizers",
            "plots",
            "regularizers",
            "tasks",
            "version",
        },
        set(),
    ),
    "constructions": (
        {"arguments", "constructions", "layers"},
        {"keras", "numpy", "scipy", "typing"},
    ),
    "models": ({"arguments", "layers", "models"}, {"keras"}),
    "layers": (
        {
            "adapt",
            "arguments",
            "constraints",
            "initializers",
            "layers",
            "recurrence",
            "regularizers",
        },
        {"keras", "numpy", "warnings"},
    ),
    "adapt": ({"arguments"}, {"contextlib", "itertools", "keras", "numpy"}),
    "recurrence": (set(), {"functools", "keras", "tensorflow"}),
    "callbacks": (
        {"arguments", "callbacks", "diagnostics", "files"},
        {
            "dataclasses",
            "errno",
            "inspect",
            "io",
            "json",
            "keras",
            "numpy",
            "os",
            "pathlib",
            "re",
            "time",
            "torch",
            "warnings",
        },
    ),
    "export": (
        {"export", "files", "layers"},
        {"keras", "numpy", "tempfile", "tensorflow"},
    ),
    "plots": ({"arguments"}, {"matplotlib", "numpy"}),
    "diagnostics": (
        {"arguments", "diagnostics"},
        {
            "contextlib",
            "jax",
            "keras",
            "numpy",
            "scipy",
            "tensorflow",
            "torch",
            "typing",
            "warnings",
        },
    ),
    "tasks": ({"arguments", "tasks"}, {"numpy", "pathlib", "re"}),
    "initializers": ({"arguments", "initializers"}, {"keras"}),
    "regularizers": ({"arguments"}, {"keras"}),
    "constraints": ({"arguments"}, {"keras"}),
    "optimizers": ({"arguments"}, {"keras"}),
    "arguments": (set(), {"math", "numbers", "numpy", "operator"}),
    "files": (
        set(),
        {"contextlib", "errno", "glob", "os", "pathlib", "shutil", "tempfile"},
    ),
    "version": (set(), {"keras"}),
}
STANDARD = {"collections", "math", "operator", "os", "typing"}  # anywhere
FILES = sorted(PACKAGE.rglob("*.py"))


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
            assert first in others | STANDARD, f"{path} may not import {name}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_only_public_keras_is_imported(path):
    assert not [name for name in imports(path) if "keras.src" in name]


def test_the_rooms_are_those_of_the_picture():
    assert {room(path) for path in FILES} == set(ROOMS)
    picture = (ROOT / "docs" / "architecture.md").read_text()
    missing = [name for name in ROOMS if name not in picture]
    assert missing == []


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_no_file_is_long(path):
    assert len(path.read_text().splitlines()) <= 400


def test_every_file_of_ours_has_its_tests():
    for path in FILES:
        if path.stem != "__init__":
            assert (ROOT / "tests" / f"test_{path.stem}.py").exists(), path
