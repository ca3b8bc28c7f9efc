"""Ctrl-C at random moments of each example, as often as one asks for.

What happens depends on the speed of the machine. A moment that does not is
tried in `test_examples.py`, ten random ones of each example by

    INTERRUPTS=10 pytest -n 2 -m exhaustive tests/test_interrupts.py
"""

import functools
import json
import os
import pathlib
import signal
import time

import keras
import numpy as np
import pytest
import scripts

pytestmark = [
    pytest.mark.exhaustive,
    pytest.mark.skipif(
        keras.backend.backend() != "tensorflow",
        reason="the examples are tried on the default backend",
    ),
]
EXAMPLES = {
    "activity": ("--units=1", "--epochs=1", "--seed=0"),
    "adding_problem": ("--length=10", "--samples=60", "--epochs=2"),
    "cifar_residual": ("--small", "--epochs=2"),
    "fixed_points": ("--updates=20", "--network=GRU"),
    "many_devices": ("--devices=2", "--length=5", "--epochs=4"),
    "sequential_images": ("--layers=RIN", "--units=4", "--epochs=3"),
}
RESUMES = {"cifar_residual", "many_devices", "sequential_images"}
MOMENTS = int(os.environ.get("INTERRUPTS", 0))
CASES = [(name, n) for name in EXAMPLES for n in range(MOMENTS)]
# Not pictures: Matplotlib writes them in place, so Ctrl-C may leave half of
# one, which the next run draws again from the results.
LOADERS = {
    ".json": lambda path: json.loads(path.read_text()),
    ".keras": keras.models.load_model,
    ".npz": lambda path: dict(np.load(path)),
}


@pytest.fixture(scope="module")
def flags(tmp_path_factory):
    """What each example is started with; of its data there are few."""
    folder = tmp_path_factory.mktemp("data")
    for part in ("train", "test"):
        for number in range(20):
            image = folder / part / f"{number % 2}" / f"{number}.png"
            image.parent.mkdir(parents=True, exist_ok=True)
            pixels = np.full((6, 5, 3), 10.0 * number)
            keras.utils.save_img(image, pixels, scale=False)
    more = {"cifar_residual": [f"--image_folder={folder}"]}
    return lambda name: [*EXAMPLES[name], *more.get(name, ())]


def start(name, flags, output, **environment):
    arguments = (*flags(name), f"--output={output}")
    return scripts.Running(f"examples/{name}.py", *arguments, **environment)


@pytest.fixture(scope="module")
def seconds(flags, tmp_path_factory):
    """How long an example takes."""

    @functools.cache
    def of(name):
        begin = time.monotonic()
        finished = start(name, flags, tmp_path_factory.mktemp("whole")).end()
        assert finished.returncode == 0, finished.stderr
        return time.monotonic() - begin

    return of


def interrupt(running):
    """Ctrl-C; once more if it came while nothing heard it."""
    for _ in range(3):
        if running.is_alive():
            os.kill(running.process.pid, signal.SIGINT)
            running.process.join(20)
    return running.end(timeout=60)


@pytest.mark.skipif(not MOMENTS, reason="INTERRUPTS names no number")
@pytest.mark.parametrize("name, moment", CASES or [("", 0)])
def test_ctrl_c_leaves_nothing_half_done(
    tmp_path, flags, seconds, name, moment
):
    seed = sum(map(ord, name)), moment
    wait = np.random.default_rng(seed).uniform(0, seconds(name))
    running = start(name, flags, tmp_path, INTERRUPTED=str(tmp_path))
    time.sleep(wait)
    finished = interrupt(running)
    assert finished.returncode in (0, 1, -signal.SIGINT), finished.stderr
    if finished.returncode == 1:
        last = finished.stderr.rstrip().splitlines()[-1]
        # TensorFlow may make another error of it in the middle of a step.
        assert last.startswith(("KeyboardInterrupt", "SystemError")), (
            finished.stderr
        )
    for path in tmp_path.rglob("*.*"):
        LOADERS.get(path.suffix, pathlib.Path.exists)(path)
    assert not scripts.left_behind(f"INTERRUPTED={tmp_path}")
    if name in RESUMES:
        arguments = (*flags(name), "--resume", f"--output={tmp_path}")
        resumed = scripts.run(f"examples/{name}.py", *arguments)
        assert resumed.returncode == 0, resumed.stderr


def test_no_example_is_forgotten():
    paths = (scripts.ROOT / "examples").glob("[a-z]*.py")
    assert {path.stem for path in paths} == set(EXAMPLES)
