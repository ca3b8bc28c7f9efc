"""How the command `keras-rin` starts, and what an import leaves alone."""

import os
import pathlib
import subprocess
import sys

import pytest

pytestmark = pytest.mark.one_backend

ROOT = pathlib.Path(__file__).parents[1]
START = "import sys, keras_rin_command; sys.exit(keras_rin_command.run())"


def start_command(tmp_path, *arguments, before=(), **streams):
    """Runs the command where `import keras` raises."""
    (tmp_path / "keras.py").write_text("raise SystemExit('Keras')")
    path = os.pathsep.join([str(tmp_path), str(ROOT)])
    return subprocess.run(
        [*before, sys.executable, "-c", START, *arguments],
        env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        text=True,
        **streams,
    )


@pytest.fixture
def stream(tmp_path):
    """The arguments of a command that has all it needs."""
    pytest.importorskip("pandas")
    rows = [f"{n},{'ab'[n % 2]},{n // 4}" for n in range(16)]
    path = tmp_path / "log.csv"
    path.write_text("\n".join(["x,label,person", *rows]))
    return "stream", path, "--channels=x", "--label=label", "--group=person"


def test_the_command_says_that_it_loads_keras(tmp_path, stream):
    done = start_command(tmp_path, *stream, stderr=subprocess.PIPE)
    assert done.stdout.endswith("\nkeras-rin: loading Keras\n")
    assert done.stderr == "Keras\n"


def test_the_command_starts_with_standard_error_closed(tmp_path, stream):
    closed = ["sh", "-c", 'exec "$@" 2>&-', "sh"]
    done = start_command(tmp_path, *stream, before=closed)
    assert done.stdout.endswith("\nkeras-rin: loading Keras\n")


def test_what_is_wrong_or_not_said_ends_before_keras(tmp_path, stream):
    """With one line of error, and status 1, or a question, and status 2."""
    streams = {"stderr": subprocess.PIPE}
    few = [*stream[:-1], "--group=label"]
    for arguments, status, message in (
        (few, 1, "its rows begin again"),
        (["recordings", "a.csv"], 1, "a.csv is no folder, no .csv"),
        (stream[:2], 2, "--label=label --channels=CHANNELS"),
        (["recordings", "a", "--flag"], 2, "unrecognized arguments: --flag"),
        (["recordings", "a", "--seeds=x"], 2, "invalid int value: 'x'"),
    ):
        done = start_command(tmp_path, *arguments, **streams)
        assert done.returncode == status and message in done.stderr
        assert "loading" not in done.stdout


def test_help_has_each_flag_with_its_default(tmp_path):
    done = start_command(tmp_path, "stream", "--help")
    assert done.returncode == 0
    for text in ("--channels", "--device", "(default: 4096)", "(default: ,)"):
        assert text in " ".join(done.stdout.split())


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
