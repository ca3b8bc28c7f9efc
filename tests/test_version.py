"""Which Keras is supported, and what an import of the package brings."""

import json
import os
import pathlib
import subprocess
import sys
import tomllib

import pytest

from keras_rin import _version

pytestmark = pytest.mark.one_backend

ROOT = pathlib.Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
# Modules of which `keras` may import some, and `keras_rin` none.
HEAVY = ["matplotlib", "scipy", "tensorflow", "torch"]
LIGHT = {"scipy", "scipy.version"}  # and its private modules
NEW_MODULES = f"""
import json, sys, keras
for name in list(sys.modules):
    if name.split(".")[0] in {HEAVY}:
        del sys.modules[name]
before = set(sys.modules)
import keras_rin
print(json.dumps(sorted(set(sys.modules) - before)))
"""


def run(code, *path):
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, path))},
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize(
    "backend, installed, oldest",
    [
        ("tensorflow", "3.5.9", "3.6"),
        ("torch", "4.0.0.dev1", "3.6"),
        ("jax", "3.9.2", "3.10"),
    ],
)
def test_another_keras_is_refused_with_the_range(backend, installed, oldest):
    message = f">= {oldest}, < 4.0 on {backend}. Found: Keras {installed}$"
    with pytest.raises(ImportError, match=message):
        _version.check_keras(installed, backend)


def test_a_keras_of_the_range_is_not():
    for installed in ("3.6.0", "3.15.1", "3.100.0", "3.16.0.dev1"):
        _version.check_keras(installed, "tensorflow")


def test_the_import_itself_refuses(tmp_path):
    (tmp_path / "keras.py").write_text(
        '__version__ = "3.5.0"\n'
        "class config:\n    backend = staticmethod(lambda: 'tensorflow')\n"
    )
    assert (
        "Found: Keras 3.5.0" in run("import keras_rin", tmp_path, ROOT).stderr
    )


def test_pip_installs_what_the_import_accepts():
    oldest, beyond = _version.OLDEST_KERAS, _version.KERAS_BEYOND
    assert f"keras>={oldest['tensorflow']},<{beyond}" in PROJECT["dependencies"]
    extras = PROJECT["optional-dependencies"]
    assert f"keras>={oldest['jax']}" in extras["jax"]


def test_an_import_brings_nothing_heavy():
    new = json.loads(run(NEW_MODULES, ROOT).stdout)
    assert "keras_rin.layers._rin" in new
    heavy = {name for name in new if name.split(".")[0] in HEAVY}
    assert {name for name in heavy if "._" not in name} <= LIGHT
