"""What messages and pages say about installing."""

import importlib.metadata
import pathlib
import re
import sys
import tomllib

import pytest

from keras_rin import _extras
from keras_rin import plots

pytestmark = pytest.mark.one_backend

ROOT = pathlib.Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
FILES = [
    path
    for path in (ROOT / "keras_rin").rglob("*.py")
    if path.stem != "_extras"
]


def declared(extra):
    """The packages of an extra, and of those within, in pyproject.toml."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    packages = set()
    for package in project["optional-dependencies"][extra]:
        inner = re.fullmatch(r"keras-rin\[(\w+)\]", package)
        packages |= declared(inner[1]) if inner else {package}
    return packages


@pytest.mark.parametrize("extra", ["plots", "recordings", "tensorflow"])
def test_the_packages_of_an_extra_are_named(extra):
    command = _extras.install_command(extra)
    assert command.startswith("pip install ")
    named = {name.strip('"') for name in command.split()[2:]}
    assert named == declared(extra)


def test_a_published_package_and_one_that_is_not_installed(monkeypatch):
    def requires(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "requires", requires)
    command = _extras.install_command("plots")
    assert command == 'pip install "PATH/TO/SOURCE[plots]"'
    monkeypatch.setattr(_extras, "IS_PUBLISHED", True)
    command = _extras.install_command("plots")
    assert command == 'pip install "keras-rin[plots]"'


def test_plots_say_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match="matplotlib: pip install matplotlib"):
        plots.plot_gradient_norms({"RIN": [1.0, 1.0]})


@pytest.mark.parametrize("paths", [PAGES, FILES])
def test_no_package_of_an_index_is_named_before_it_is_published(paths):
    if not _extras.IS_PUBLISHED:
        texts = {path: path.read_text() for path in paths}
        releasing = ROOT / "docs" / "releasing.md"  # which turns this over
        texts.pop(releasing, None)
        named = re.compile(r"keras[-_]rin\[")
        assert not [path for path, text in texts.items() if named.search(text)]
