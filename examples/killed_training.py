"""A small training in a process of its own, to which faults happen.

It is what the examples do, `comparison.train_all` with `--resume`, for a
network that takes a second to set up.
"""

import multiprocessing
import os
import pathlib
import shutil
import sys

import comparison
import faults
import keras
import numpy as np
from absl import flags

from keras_rin.tasks import adding

FLAGS = flags.FLAGS
LENGTH = 5
STATE, BEST = "models/dense-0.npz", "models/dense-0.keras"


def build_model(name):
    model = keras.Sequential(
        [
            keras.Input((LENGTH, 2)),
            keras.layers.Flatten(),
            keras.layers.Dense(FLAGS.units, "relu"),
            keras.layers.Dropout(0.1),
            keras.layers.Dense(1),
        ],
        name=name,
    )
    model.compile(keras.optimizers.Adam(FLAGS.learning_rate), "mse")
    return model


def train():
    rng = np.random.default_rng(0)
    splits = [adding.generate(rng, 96, LENGTH) for _ in range(3)]
    here = pathlib.Path()
    metric = comparison.Metric("loss", "error", "min", 1 / 6, "always 1")
    comparison.train_all(build_model, ["dense"], splits, metric, here)


class KeepEachEpoch(comparison.EpochTimer):
    """Keeps the state of training after each epoch, to compare with."""

    def on_epoch_begin(self, epoch, logs=None):
        super().on_epoch_begin(epoch, logs)
        shutil.copy(STATE, f"models/{epoch}.npz")


def keep_each_epoch():
    comparison.EpochTimer = KeepEachEpoch


def run(folder, fault=faults.none):
    """Trains in `folder`; returns the exit code and the error, if any."""
    fork = multiprocessing.get_context("fork")
    ours, theirs = fork.Pipe()
    process = fork.Process(target=_child, args=(folder, fault, theirs))
    process.start()
    process.join()
    return process.exitcode, ours.recv() if ours.poll() else ""


def _child(folder, fault, pipe):
    os.chdir(folder)
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())
    try:
        fault()
        train()
    except Exception as error:
        pipe.send(str(error))
        sys.exit(1)


def compare(witness, folder):
    """The epoch on disk, and whether it is the witness's, bit for bit."""
    saved = _arrays(folder / STATE)
    epoch = int(saved["epoch"])
    ended = epoch == FLAGS.epochs
    expected = _arrays(witness / (STATE if ended else f"models/{epoch}.npz"))
    same = saved.keys() == expected.keys() and all(
        saved[name].tobytes() == expected[name].tobytes() for name in saved
    )
    return epoch, same


def _arrays(path):
    with np.load(path) as file:
        return {name: file[name] for name in file if name != "history"}


def same_best(witness, folder):
    """Whether the best network is the witness's, bit for bit."""
    models = [
        keras.models.load_model(path / BEST) for path in (witness, folder)
    ]
    ours, theirs = ([w.tobytes() for w in m.get_weights()] for m in models)
    return ours == theirs
