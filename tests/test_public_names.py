"""What is public is documented, registered, and does what its example says."""

import ast
import doctest
import inspect
import pathlib
import re

import keras
import numpy as np
import pytest
from cases import keras_before

import keras_rin

pytestmark = pytest.mark.one_backend

ROOT = pathlib.Path(__file__).parents[1]


def public_objects(room):
    """Classes and functions by their public name, room by room."""
    for name in getattr(room, "__all__", vars(room)):
        item = getattr(room, name)
        if inspect.ismodule(item):
            if hasattr(room, "__all__"):
                yield from public_objects(item)
        elif hasattr(room, "__all__") or is_of(room, name, item):
            yield f"{room.__name__}.{name}", item


def is_of(room, name, item):
    ours = getattr(item, "__module__", None) == room.__name__
    return ours and not name.startswith("_")


PUBLIC = dict(public_objects(keras_rin))
PUBLIC.pop("keras_rin.__version__")
CLASSES = {
    name: item
    for name, item in PUBLIC.items()
    if inspect.isclass(item) and hasattr(item, "get_config")
}
RESULTS = {
    name: item
    for name, item in PUBLIC.items()
    if inspect.isclass(item) and issubclass(item, tuple)
}


def section(item, title):
    lines = inspect.getdoc(item).split(f"\n{title}:\n")[1].splitlines()
    body = []
    for line in lines:
        if line and not line.startswith(" "):
            break
        body.append(line)
    return "\n".join(body)


def make(item):
    parameters = inspect.signature(item).parameters.values()
    arguments = {
        p.name: keras.layers.GRUCell(3) if p.name == "cell" else 3
        for p in parameters
        if p.kind != p.VAR_KEYWORD and p.default is p.empty
    }
    return item(**arguments)


@pytest.mark.parametrize("name", PUBLIC)
def test_the_example_does_what_it_says(name, tmp_path):
    if name.endswith("export_streaming") and keras.backend.backend() == "torch":
        pytest.skip("Keras 3.15 cannot export an RNN from Torch")
    if name.endswith("export_streaming"):
        pytest.importorskip("tensorflow")
        if keras_before("3.10"):
            pytest.skip("this Keras prints as it exports")
    names = {"np": np, "keras": keras, "keras_rin": keras_rin}
    names["path"] = tmp_path / "picture.png"
    finder = doctest.DocTestFinder(recurse=False)
    for test in finder.find(PUBLIC[name], name, globs=names):
        assert doctest.DocTestRunner().run(test).failed == 0


@pytest.mark.parametrize("name", PUBLIC)
def test_every_argument_is_documented(name):
    parameters = inspect.signature(PUBLIC[name]).parameters.values()
    wanted = {p.name for p in parameters if p.kind != p.VAR_KEYWORD}
    if wanted:
        title = "Attributes" if name in RESULTS else "Args"
        arguments = section(PUBLIC[name], title)
        documented = set(re.findall(r"^    (\w+): ", arguments, re.M))
        of_every_layer = set(re.findall(r"`(\w+)`", arguments.split("**")[-1]))
        assert wanted <= documented | of_every_layer


@pytest.mark.parametrize("name", CLASSES)
def test_every_argument_documented_is_in_the_config(name):
    documented = re.findall(
        r"^    (\w+): ", section(CLASSES[name], "Args"), re.M
    )
    config = set(make(CLASSES[name]).get_config())
    if issubclass(CLASSES[name], keras.optimizers.Adam):
        config -= set(keras.optimizers.Adam().get_config()) - {"learning_rate"}
    assert set(documented) - {"activity_regularizer"} <= config
    assert config - {"name", "dtype", "trainable"} <= set(documented)


@pytest.mark.parametrize("name", CLASSES)
def test_it_is_registered_under_our_name(name):
    registered = keras.saving.get_registered_name(CLASSES[name])
    assert registered == f"keras_rin>{CLASSES[name].__name__}"


@pytest.mark.parametrize("name", PUBLIC)
def test_the_first_line_is_a_sentence(name):
    first = inspect.getdoc(PUBLIC[name]).splitlines()[0]
    assert len(first) <= 80
    assert first.endswith(".") or ":" in first


def test_the_readme_lists_every_module():
    readme = (ROOT / "README.md").read_text()
    for page in (ROOT / "docs" / "api").glob("*.md"):
        assert f"`keras_rin.{page.stem}`" in readme


def test_the_api_pages_list_what_is_public_room_by_room():
    listed = [
        (f"keras_rin.{page.stem}", name)
        for page in (ROOT / "docs" / "api").glob("*.md")
        for name in re.findall(r"^::: (\S+)", page.read_text(), re.M)
    ]
    public = [(".".join(name.split(".")[:2]), name) for name in PUBLIC]
    assert sorted(listed) == sorted(public)


def test_the_changelog_has_this_version():
    version = keras_rin.__version__
    version = "Unreleased" if ".dev" in version else version
    assert f"## [{version}]" in (ROOT / "CHANGELOG.md").read_text()


def not_of_ours(constructor):
    return not constructor.__module__.startswith("keras_rin.")


@pytest.mark.parametrize("name", PUBLIC)
def test_what_it_takes_and_returns_is_annotated(name):
    if name in CLASSES and not_of_ours(PUBLIC[name].__init__):
        return
    signature = inspect.signature(PUBLIC[name])
    parameters = signature.parameters.values()
    assert [p.name for p in parameters if p.annotation is p.empty] == []
    if not inspect.isclass(PUBLIC[name]):
        assert signature.return_annotation is not signature.empty


def documented_methods(item):
    """The functions of methods and properties that have a docstring."""
    for name in dir(item):
        method = inspect.getattr_static(item, name)
        method = getattr(method, "fget", getattr(method, "__func__", method))
        is_ours = inspect.isfunction(method) and not not_of_ours(method)
        if is_ours and method.__doc__ and not name.startswith("_"):
            yield method


@pytest.mark.parametrize("name", [*CLASSES, *RESULTS])
def test_documented_methods_are_annotated(name):
    for method in documented_methods(PUBLIC[name]):
        signature = inspect.signature(method)
        _, *parameters = signature.parameters.values()
        assert [p.name for p in parameters if p.annotation is p.empty] == []
        assert signature.return_annotation is not signature.empty


def defaults_said(item):
    """The arguments of an item, each with the default in its docstring."""
    entries = re.split(r"^    (\w+): ", section(item, "Args"), flags=re.M)
    for name, text in zip(entries[1::2], entries[2::2], strict=True):
        said = re.search(r"Defaults\s+to\s+(`[^`]+`|-?\d[\w.+-]*)", text)
        if said:
            yield name, ast.literal_eval(said[1].strip("`.").rstrip("."))


@pytest.mark.parametrize("name", PUBLIC)
def test_a_default_is_the_one_in_the_docstring(name):
    parameters = inspect.signature(PUBLIC[name]).parameters
    if name not in RESULTS and parameters.keys() - {"args", "kwargs"}:
        for argument, default in defaults_said(PUBLIC[name]):
            if argument in parameters:
                assert parameters[argument].default == default, argument
