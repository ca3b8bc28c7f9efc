"""A training that is killed at any file resumes bit for bit.

In the spirit of SQLite's crash tests: mixed precision with a loss scale, an
average of the weights, accumulated gradients and Dropout. Each fault happens
to a training in a process of its own, which resumes from the same checkpoint.
What it leaves on disk is compared with a training that was never killed, and
so is the end of the training that resumes from there. Twenty kills at random
moments are tried by

    INTERRUPTS=20 pytest -n 2 -m exhaustive tests/test_kills.py
"""

import functools
import itertools
import os
import resource
import shutil
import signal
import sys
import threading

import keras
import numpy as np
import pytest
import scripts
from references import assert_same

from keras_rin.callbacks import KeepBest
from keras_rin.callbacks import RestoreOnNaN
from keras_rin.callbacks import ResumableTraining

EPOCHS, BEGIN = 5, 1
pytestmark = [
    pytest.mark.exhaustive,
    pytest.mark.one_backend,
    pytest.mark.skipif(
        keras.backend.backend() == "torch",
        reason="Torch has no float16 on every processor.",
    ),
]
X = np.linspace(-1, 1, 32, dtype="float32").reshape(16, 2)


def make():
    keras.utils.set_random_seed(11)
    policy = keras.DTypePolicy("mixed_float16")
    model = keras.Sequential(
        [
            keras.Input((2,)),
            keras.layers.Dense(8, "relu", dtype=policy),
            keras.layers.Dropout(0.3, dtype=policy),
            keras.layers.Dense(1, dtype="float32"),
        ]
    )
    inner = keras.optimizers.Adam(
        0.01,
        use_ema=True,
        ema_overwrite_frequency=5,
        gradient_accumulation_steps=3,
    )
    scaled = keras.optimizers.LossScaleOptimizer(inner, dynamic_growth_steps=7)
    # Few steps: to compile them takes longer than to run them.
    model.compile(scaled, "mse", run_eagerly=True)
    return model


def train(folder, fault=None):
    """Trains on from what is in the folder."""
    resumable = ResumableTraining(folder / "state.npz")
    best = min(resumable.history.get("loss", []), default=None)
    model = make()
    model.fit(
        X,
        X[:, :1] * X[:, 1:],
        batch_size=4,
        initial_epoch=resumable.epoch,
        epochs=EPOCHS,
        shuffle=False,
        verbose=0,
        callbacks=[
            RestoreOnNaN(),
            KeepBest(folder / "best.keras", "loss", "min", best),
            resumable,
            *([fault] if fault else []),
        ],
    )


class Keep(keras.callbacks.Callback):
    """Keeps a copy of the folder after each epoch."""

    def __init__(self, folder, copies):
        super().__init__()
        self.folder, self.copies = folder, copies

    def on_epoch_begin(self, epoch, logs=None):
        shutil.copytree(self.folder, self.copies / str(epoch))

    def on_train_end(self, logs=None):
        shutil.copytree(self.folder, self.copies / str(EPOCHS))


@pytest.fixture(scope="module")
def never_killed(tmp_path_factory):
    """A folder of folders: what is on disk after each epoch."""
    folder = tmp_path_factory.mktemp("whole")
    copies = tmp_path_factory.mktemp("copies")
    train(folder, Keep(folder, copies))
    return copies


def after_step(number):
    steps = itertools.count(1)

    def end_of_step(batch, logs):
        if next(steps) == number:
            scripts.die()

    return keras.callbacks.LambdaCallback(on_train_batch_end=end_of_step)


def after_seconds(seconds):
    """Dies so long after its first step, whatever it does then."""
    timer = threading.Timer(seconds, scripts.die)
    timer.daemon = True

    def end_of_step(batch, logs):
        if timer.ident is None:
            timer.start()

    return keras.callbacks.LambdaCallback(on_train_batch_end=end_of_step)


def at_file(number, then=scripts.die):
    scripts.at_file(number, then, "killed")


def within_file(number, size):
    """Dies in the middle of this file, or a later one, after so many bytes."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    at_file(number, lambda: full_disk(size))


def full_disk(size):
    """No file gets longer than this: the system refuses, Python raises."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def read_only():
    if os.geteuid() == 0:  # a process that ignores file permissions
        os.seteuid(65534)


def fault_happens(folder, fault, pipe):
    try:
        train(folder, fault())
    except OSError as error:
        pipe.send(error.filename)
        sys.exit(1)


KILLS = [
    (after_step, 3),
    (at_file, 2),
    (at_file, 3),
    (at_file, 5),
    (within_file, 1, 100),
    (within_file, 2, 9_000),
    (within_file, 4, 50),
]
MOMENTS = int(os.environ.get("INTERRUPTS", 0))
RANDOM = np.random.default_rng(0).uniform(0, 0.3, MOMENTS).round(4).tolist()
KILLS += [(after_seconds, moment) for moment in RANDOM]
REFUSED = [(full_disk, 100), (full_disk, 9_000), (read_only,)]


def name(fault):
    kind, *numbers = fault
    return " ".join([kind.__name__, *map(str, numbers)])


@pytest.mark.parametrize("fault", KILLS + REFUSED, ids=name)
def test_a_killed_training_goes_on_bit_for_bit(tmp_path, never_killed, fault):
    folder = tmp_path / "killed"
    shutil.copytree(never_killed / str(BEGIN), folder)
    refused = fault in REFUSED
    if fault == (read_only,):
        folder.chmod(0o555)
        tmp_path.chmod(0o755)
    here, there = scripts.FORKS.Pipe()
    process = scripts.FORKS.Process(
        target=fault_happens, args=(folder, functools.partial(*fault), there)
    )
    process.start()
    process.join()
    folder.chmod(0o755)
    if refused:
        assert process.exitcode == 1
        assert here.poll() and here.recv().startswith(str(folder))
    else:
        signals = {-signal.SIGKILL, -signal.SIGXFSZ}
        assert process.exitcode in signals
    epoch = ResumableTraining(folder / "state.npz").epoch
    assert BEGIN <= epoch < EPOCHS
    assert_same_state(folder, never_killed / str(epoch))
    assert keras.models.load_model(folder / "best.keras").built
    train(folder)
    assert_same_state(folder, never_killed / str(EPOCHS))
    assert_same_best(folder, never_killed / str(EPOCHS))
    assert sorted(os.listdir(folder)) == ["best.keras", "state.npz"]


def assert_same_state(*folders):
    state, expected = (np.load(folder / "state.npz") for folder in folders)
    assert state.files == expected.files
    for name in state:
        assert state[name].tobytes() == expected[name].tobytes(), name


def assert_same_best(*folders):
    weights, expected = (
        keras.models.load_model(folder / "best.keras").get_weights()
        for folder in folders
    )
    assert_same(weights, expected, 0, 0)
