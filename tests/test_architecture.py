"""The tables of docs/architecture.md, held against the code."""

import ast
import inspect
import pathlib
import re
import sys

import pytest

import keras_rin
from docs import walks

pytestmark = pytest.mark.one_backend

PACKAGE = pathlib.Path(keras_rin.__file__).parent
ROOT = PACKAGE.parent
PAGE = (ROOT / "docs" / "architecture.md").read_text()
FILES = sorted(PACKAGE.rglob("*.py"))


def tables():
    """The names in the cells of the tables, row by row, table by table."""
    text = re.findall(r"(?:^\|.*\n)+", PAGE, re.M)
    return [
        [
            [re.findall("`(.*?)`", cell) for cell in line.split("|")[1:-1]]
            for line in table.splitlines()[2:]
        ]
        for table in text
    ]


FOLDER_ROWS, LAYER_ROWS, PACKAGE_ROWS, _ = tables()
# {folder around the package: what of the repository it imports}
FOLDERS = {folder: set(ours) for (folder,), _, ours in FOLDER_ROWS}
# {module or subpackage: its layer}, the highest first in the table
LAYERS = {
    module: -row
    for row, (_, modules) in enumerate(LAYER_ROWS)
    for module in modules
}
# {package: modules}; of Keras, those that do not import it
PACKAGES = {package: set(modules) for (package,), modules in PACKAGE_ROWS}


def imports(path):
    """Dotted names a file imports: `from a import b` counts as `a.b`."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def module_of(path):
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_file_imports_from_lower_layers_and_public_keras(path):
    for name in imports(path):
        assert "keras.src" not in name
        first, *rest = name.split(".")
        if first == "keras_rin" and rest[0] != module_of(path):
            assert LAYERS[rest[0]] < LAYERS[module_of(path)], name


def test_modules_and_the_packages_they_import_are_those_of_the_page():
    assert {module_of(path) for path in FILES} == set(LAYERS)
    importers = {}
    for path in FILES:
        for name in imports(path):
            importers.setdefault(name.split(".")[0], set()).add(module_of(path))
    importers["keras"] = set(LAYERS) - importers["keras"] - {"__init__"}
    for name in {"keras_rin", "numpy", *sys.stdlib_module_names}:
        importers.pop(name, None)
    assert importers == PACKAGES


def public_names(module):
    """What dir() shows of ours in a module and the public modules within."""
    for name in filter(lambda name: not name.startswith("_"), dir(module)):
        inner = getattr(module, name)
        home = inner if inspect.ismodule(inner) else inspect.getmodule(inner)
        if (home or module).__name__.startswith("keras_rin"):
            yield module, name
        if home is inner and home.__name__.startswith("keras_rin"):
            yield from public_names(inner)


def test_what_is_no_api_is_private():
    names = list(public_names(keras_rin))
    assert len(names) > 80
    for module, name in names:
        assert name in module.__all__, f"{module.__name__}.{name}"


def test_the_files_of_ten_jobs_are_as_many_as_the_page_says():
    assert walks.table() in PAGE


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_folder_around_the_package_imports_what_the_page_says(folder):
    paths = (ROOT / folder).rglob("*.py")
    imported = {name.split(".")[0] for path in paths for name in imports(path)}
    assert imported & {"docs", "examples", "tests"} == FOLDERS[folder]
