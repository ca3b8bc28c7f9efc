import gc
import importlib.util
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[1]
for name, value in {
    # Tests run two at a time, and NumPy's threads would wait for each other.
    "OMP_NUM_THREADS": "1",
    "JAX_ENABLE_X64": "1",  # JAX drops float64 without it
    # Tests compile for longer than they compute: without optimizations, and
    # once for all workers, for the scripts they start, and for the next run.
    "JAX_DISABLE_MOST_OPTIMIZATIONS": "1",
    "JAX_COMPILATION_CACHE_DIR": str(ROOT / "runs" / "jax"),
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    "MPLBACKEND": "Agg",  # no windows
}.items():
    os.environ.setdefault(name, value)

import numpy as np  # noqa: E402

# Graphs are made of many objects that stay: to look for garbage among them at
# every 700 new ones takes 6 % of the time.
gc.set_threshold(100_000)

# Examples import TensorFlow for data.
collect_ignore = ["test_examples.py"]
if importlib.util.find_spec("tensorflow"):
    collect_ignore.clear()


@pytest.fixture
def rng():
    return np.random.default_rng(0)


# Keras is imported by the workers alone: the process that hands the tests out
# reads this file too, and everything waits for it. TensorFlow's converter of
# LiteRT files collects garbage each time, for two seconds among the imports.
@pytest.fixture(autouse=True, scope="session")
def freeze_imports():
    import keras  # noqa: F401

    gc.freeze()


@pytest.fixture(autouse=True)
def seed_keras():
    import keras

    keras.utils.set_random_seed(0)


# A disk on which something else is installed may take 15 seconds for one file.
# No test turns the power off; some replace the function by their own.
@pytest.fixture(autouse=True)
def no_wait_for_the_disk(monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


@pytest.fixture
def run_script(tmp_path):
    """Runs a script in a process of its own, and returns what it prints."""

    def run(text, *arguments, **environment):
        file = tmp_path / "script.py"
        file.write_text(text)
        environment = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
        command = [sys.executable, file, *arguments]
        return subprocess.check_output(command, env=environment, text=True)

    return run


@pytest.fixture
def megabytes(run_script):
    """By how many a process grows in a statement, after a small one."""

    def grown(setup, small, statement):
        size = "resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1000"
        lines = "import resource", setup, small, f"before = {size}", statement
        return int(run_script("\n".join([*lines, f"print({size} - before)"])))

    return grown


@pytest.fixture(autouse=True)
def close_figures():
    """pyplot keeps its figures, and warns of more than 20."""
    yield
    if pyplot := sys.modules.get("matplotlib.pyplot"):
        pyplot.close("all")


@pytest.fixture
def float64():
    """Everything Keras makes in this test is float64."""
    import keras

    floatx, policy = keras.config.floatx(), keras.config.dtype_policy()
    keras.config.set_floatx("float64")
    keras.config.set_dtype_policy("float64")
    yield
    keras.config.set_floatx(floatx)
    keras.config.set_dtype_policy(policy)
