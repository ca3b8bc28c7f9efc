"""What is public is documented, registered, and does what its example says."""

import ast
import doctest
import inspect
import operator
import pathlib
import re

import keras
import numpy as np
import pytest
from cases import keras_before
from public_objects import CLASSES
from public_objects import OBJECTS
from public_objects import make

import keras_rin

pytestmark = pytest.mark.one_backend

ROOT = pathlib.Path(__file__).parents[1]
RESULTS = [
    name
    for name, item in OBJECTS.items()
    if inspect.isclass(item) and issubclass(item, tuple)
]


def section(item, title):
    lines = inspect.getdoc(item).split(f"\n{title}:\n")[1].splitlines()
    body = []
    for line in lines:
        if line and not line.startswith(" "):
            break
        body.append(line)
    return "\n".join(body)


@pytest.mark.parametrize("name", OBJECTS)
def test_the_example_does_what_it_says(name, tmp_path, monkeypatch):
    # A bar that appears after two seconds is no part of an example.
    quiet = "keras_rin.diagnostics._fixed_points.branch_and_bound.QUIET"
    monkeypatch.setattr(quiet, np.inf)
    writes = name.endswith("export_saved_model")
    if writes and keras.backend.backend() == "torch":
        pytest.skip("Keras 3.15 cannot export an RNN from Torch")
    if writes:
        pytest.importorskip("tensorflow")
        if keras_before("3.10"):
            pytest.skip("this Keras prints as it exports")
    names = {"np": np, "keras": keras, "keras_rin": keras_rin}
    names["path"] = tmp_path / "picture.png"
    finder = doctest.DocTestFinder(recurse=False)
    for test in finder.find(OBJECTS[name], name, globs=names):
        assert doctest.DocTestRunner().run(test).failed == 0


@pytest.mark.parametrize("name", OBJECTS)
def test_the_docstring_fits_the_signature(name):
    item = OBJECTS[name]
    first = inspect.getdoc(item).splitlines()[0]
    assert len(first) <= 80
    assert first.endswith(".") or ":" in first
    signature = inspect.signature(item)
    parameters = {
        key: parameter
        for key, parameter in signature.parameters.items()
        if parameter.kind != parameter.VAR_KEYWORD
    }
    if parameters:
        arguments = section(item, "Attributes" if name in RESULTS else "Args")
        assert parameters.keys() <= described_arguments(arguments)
    if name not in RESULTS and parameters.keys() - {"args"}:
        for argument, default in documented_defaults(item):
            if argument in parameters:
                assert parameters[argument].default == default, argument


def described_arguments(arguments):
    """The arguments in a section, and in that of a layer it refers to."""
    names = set(re.findall(r"^    (\w+): ", arguments, re.M))
    names |= set(re.findall(r"`(\w+)`", arguments.split("**")[-1]))
    for other in re.findall(r"\bare\s+those\s+of\s+`(\w+)`", arguments):
        layer = getattr(keras_rin.layers, other)
        names |= described_arguments(section(layer, "Args"))
    return names


def documented_defaults(item):
    """The arguments of an item, each with the default in its docstring."""
    entries = re.split(r"^    (\w+): ", section(item, "Args"), flags=re.M)
    for name, text in zip(entries[1::2], entries[2::2], strict=True):
        default = re.search(r"Defaults\s+to\s+(`[^`]+`|-?\d[\w.+-]*)", text)
        if default:
            yield name, ast.literal_eval(default[1].strip("`.").rstrip("."))


@pytest.mark.parametrize("name", CLASSES)
def test_a_class_is_registered_with_the_arguments_of_its_config(name):
    item = OBJECTS[name]
    registered = keras.saving.get_registered_name(item)
    assert registered == f"keras_rin>{item.__name__}"
    arguments = section(item, "Args")
    documented = re.findall(r"^    (\w+): ", arguments, re.M)
    config = set(make(item).get_config())
    assert set(documented) - {"activity_regularizer"} <= config
    described = described_arguments(arguments)
    assert config - {"name", "dtype", "trainable"} <= described


def test_readme_and_site_have_every_module():
    """The site shows every public name of a module: test_site.py."""
    pages = {page.stem for page in (ROOT / "docs" / "api").glob("*.md")}
    assert pages == set(keras_rin.__all__) - {"__version__"}
    readme = (ROOT / "README.md").read_text()
    assert pages == set(re.findall(r"`keras_rin\.(\w+)`", readme)) & pages


def test_the_changelog_has_this_version():
    version = keras_rin.__version__
    version = "Unreleased" if ".dev" in version else version
    assert f"## [{version}]" in (ROOT / "CHANGELOG.md").read_text()


def resolves(name):
    try:
        return bool(operator.attrgetter(name)(keras_rin))
    except AttributeError:
        return False


@pytest.mark.parametrize(
    "file", [*(ROOT / "tests" / "names").iterdir()], ids=lambda file: file.stem
)
def test_a_name_of_a_release_stays_or_a_table_says_what_to_use(file):
    """In CHANGELOG.md, `| 0.1.0 | 0.2.0 |` and its rows."""
    changelog = (ROOT / "CHANGELOG.md").read_text()
    header = re.escape(f"| {file.stem} |")
    rows = re.search(rf"^{header}.*\n((?:\|.*\n)*)", changelog, re.M)[1]
    left = "\n".join(row.split("|")[1] for row in rows.splitlines())
    for name in file.read_text().split():
        module, _, last = name.rpartition(".")
        gone = last if resolves(module) or not module else f"({module}|{last})"
        assert resolves(name) or re.search(rf"\b{gone}\b", left), name


def documented_methods(item):
    """The functions of methods and properties that have a docstring."""
    for name in dir(item):
        method = inspect.getattr_static(item, name)
        method = getattr(method, "fget", getattr(method, "__func__", method))
        if inspect.isfunction(method) and method.__doc__:
            is_ours = method.__module__.startswith("keras_rin.")
            if is_ours and not name.startswith("_"):
                yield method


@pytest.mark.parametrize("name", OBJECTS)
def test_what_is_documented_is_annotated(name):
    item = OBJECTS[name]
    functions = [item, *documented_methods(item)]
    if name in CLASSES and not item.__init__.__module__.startswith("keras_rin"):
        functions.remove(item)  # its arguments are those of Keras
    for function in functions:
        signature = inspect.signature(function)
        assert "_array_like" not in str(signature), "ArrayLike by its name"
        parameters = {**signature.parameters}
        parameters.pop("self", parameters.pop("cls", None))
        for parameter in parameters.values():
            assert parameter.annotation is not parameter.empty, parameter
        if not inspect.isclass(function):
            assert signature.return_annotation is not signature.empty
