"""How the command `keras-rin` starts, and what an import leaves alone."""

import os
import pathlib
import subprocess
import sys

import pytest

pytestmark = pytest.mark.one_backend

ROOT = pathlib.Path(__file__).parents[1]
START = "import sys, keras_rin_command; sys.exit(keras_rin_command.run())"


def start_command(tmp_path, *arguments, **streams):
    """Runs the command where `import keras` raises."""
    (tmp_path / "keras.py").write_text("raise SystemExit('Keras')")
    path = os.pathsep.join([str(tmp_path), str(ROOT)])
    return subprocess.run(
        [sys.executable, "-c", START, *arguments],
        env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        text=True,
        **streams,
    )


def test_the_command_says_that_it_loads_keras(tmp_path):
    done = start_command(tmp_path, "stream", "a.csv", stderr=subprocess.PIPE)
    assert done.stdout == "keras-rin: loading Keras\n"
    assert done.stderr == "Keras\n"


def test_the_command_starts_with_standard_error_closed(tmp_path):
    done = start_command(
        tmp_path, "stream", "a.csv", preexec_fn=lambda: os.close(2)
    )
    assert done.stdout == "keras-rin: loading Keras\n"


def test_modules_are_imported_before_keras_and_the_package_later(run_script):
    """Then it is what an `import keras_rin` makes, with its registrations."""
    printed = run_script(
        """
import sys, keras_rin_command
keras_rin_command.postpone_package()
from keras_rin import _files, _installed_backend, tasks
assert not {"keras", "tensorflow", "jax"} & {*sys.modules}
_installed_backend.load_package()
import keras, keras_rin
assert {*keras_rin.__all__} <= {*dir(keras_rin)}
assert keras_rin.tasks is tasks
_installed_backend.load_package()
registered = keras.saving.get_registered_object("keras_rin>RIN")
print(registered is keras_rin.layers.RIN)
"""
    )
    assert printed == "keras-rin: loading Keras\nTrue\n"


def test_an_import_does_not_look_at_the_command_line(run_script):
    """Nor at the file descriptors of a program with the name of the command."""
    printed = run_script(
        """
import os, sys, keras
before = os.fstat(2)
sys.argv = ["/bin/keras-rin"]
import keras_rin
assert os.path.samestat(before, os.fstat(2)) and sys.stderr is sys.__stderr__
for name in [name for name in sys.modules if name.startswith("keras_rin")]:
    del sys.modules[name]
del sys.argv, sys.orig_argv
import keras_rin
print(keras_rin.__version__)
"""
    )
    assert printed.count("\n") == 1
