"""A training that is killed at any moment resumes bit for bit.

In the spirit of SQLite's crash tests: mixed precision with a loss scale, an
average of the weights, accumulated gradients and Dropout.
"""

import os
import signal
import time

import keras
import numpy as np
import pytest
import scripts
from witnesses import to_numpy

from keras_rin.callbacks import RestoreOnNaN
from keras_rin.callbacks import ResumableTraining

EPOCHS = 40
KILLS = 5
pytestmark = [
    pytest.mark.exhaustive,
    pytest.mark.skipif(
        keras.backend.backend() == "torch",
        reason="Torch has no float16 on every processor.",
    ),
]


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
    model.compile(scaled, "mse", metrics=[keras.metrics.R2Score()])
    return model


def train(path, epochs=EPOCHS):
    model, resumable = make(), ResumableTraining(path)
    x = np.linspace(-1, 1, 32, dtype="float32").reshape(16, 2)
    model.fit(
        x,
        x[:, :1] * x[:, 1:],
        batch_size=4,
        initial_epoch=resumable.epoch,
        epochs=epochs,
        shuffle=False,
        verbose=0,
        callbacks=[resumable, RestoreOnNaN()],
    )
    return model, resumable


def variables(model):
    found = model.variables + model.optimizer.variables
    return [to_numpy(v).tobytes() for v in found]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    model, resumable = train(tmp_path_factory.mktemp("whole") / "state.npz")
    return variables(model), resumable.history


def test_killed_at_random_moments_it_ends_as_if_it_never_had_been(
    tmp_path, whole
):
    path = tmp_path / "state.npz"
    rng = np.random.default_rng(0)
    epochs = []
    for _ in range(KILLS):
        process = scripts.FORKS.Process(target=train, args=(path,))
        process.start()
        wait_for_writes(path, process, rng.integers(2, 5))
        time.sleep(rng.uniform(0, 0.02))
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        epochs.append(ResumableTraining(path).epoch)
        if epochs[-1] == EPOCHS:
            path.unlink()  # so quick: once more from the beginning
    assert min(epochs) >= 1 and min(epochs) < EPOCHS
    model, resumable = train(path)
    assert variables(model) == whole[0]
    assert resumable.history == whole[1]
    assert os.listdir(tmp_path) == ["state.npz"]


def wait_for_writes(path, process, count):
    """The first is before the first epoch, each of the others after one."""
    seen = {path.stat().st_mtime_ns} if path.exists() else set()
    count += len(seen)
    while process.is_alive() and len(seen) < count:
        time.sleep(0.001)
        if path.exists():
            seen.add(path.stat().st_mtime_ns)
