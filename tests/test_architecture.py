"""The tables of docs/architecture.md, held against the code."""

import ast
import inspect
import pathlib
import re
import sys

import pytest

import keras_rin

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


FOLDER_ROWS, LAYER_ROWS, PACKAGE_ROWS = tables()
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
# Of the standard library, in spite of their names.
PUBLIC = {"_exit", "_fields", "_replace"}


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


def private_names(path):
    """Private names that a file imports, or reads of another object."""
    nodes = ast.walk(ast.parse(path.read_text()))
    attributes = [node for node in nodes if type(node) is ast.Attribute]
    used = [of.attr for of in attributes if ast.unparse(of.value) != "self"]
    used += [part for name in imports(path) for part in name.split(".")]
    return {name for name in used if re.match("_(?!_)", name)} - PUBLIC


@pytest.mark.parametrize(
    "line",
    [
        "import keras_rin._files",
        "from keras_rin import _files",
        "from keras_rin.plots import _drawing as drawing",
        "import keras_rin.plots as p; p._drawing.axes(None)",
        "from keras_rin.layers import RIN; RIN._name",
    ],
)
def test_a_private_name_is_found(line, tmp_path):
    path = tmp_path / "study.py"
    path.write_text(line)
    assert private_names(path)


@pytest.mark.parametrize("folder", [*FOLDERS, "docs/"])
def test_around_the_package_only_public_names_are_used(folder):
    imported = set()
    for path in (ROOT / folder).rglob("*.py"):
        imported |= {name.split(".")[0] for name in imports(path)}
        assert not private_names(path), path
    if folder in FOLDERS:
        assert imported & {"docs", "examples", "tests"} == FOLDERS[folder]
