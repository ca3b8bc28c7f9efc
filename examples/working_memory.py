"""What do three networks remember a stimulus with? Fixed points of a delay.

    python working_memory.py
    python working_memory.py --stimuli=4

A RIN, a SimpleRNN and a rate network learn delayed match to sample: after a
delay of 10 to 20 steps they say whether a stimulus is the one they saw before.
The input is constant during the delay, so a stable fixed point for each
stimulus would keep it for any time. Prints how many answers are correct after
100 steps, and draws the fixed points among the states, colored by stimulus.
"""

import functools
import os
import pathlib
import sys

# TensorFlow logs to file descriptor 2. Python's messages get one of their own.
sys.stderr = open(os.dup(2), "w", buffering=1, closefd=False)
os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
import keras
import numpy as np
from absl import app
from absl import flags
from matplotlib.figure import Figure
from tabulate import tabulate

from keras_rin import diagnostics
from keras_rin import plots
from keras_rin.layers import RIN
from keras_rin.layers import RateRNN
from keras_rin.tasks import delayed_match

UNITS, BATCH, PERIOD = 32, 64, 4
LENGTH, LONG = 20 + 4 * PERIOD, 100 + 4 * PERIOD  # of trials with such delays
FLAGS = flags.FLAGS


# The layer, and the learning rate at the first update.
LAYERS = {
    "RIN": (functools.partial(RIN, activation="tanh"), 0.003),
    "SimpleRNN": (keras.layers.SimpleRNN, 0.001),
    "RateRNN": (functools.partial(RateRNN, tau=5.0), 0.01),
}


def generate(rng, samples, length, shortest_delay=None):
    return delayed_match.generate(
        rng, samples, length, FLAGS.stimuli, PERIOD, shortest_delay
    )


def train(layer, rate, rng):
    inputs = keras.Input((None, 1 + FLAGS.stimuli))
    model = keras.Sequential([inputs, layer, keras.layers.Dense(3)])
    rate = keras.optimizers.schedules.CosineDecay(rate, FLAGS.updates, 0.01)
    optimizer = keras.optimizers.Adam(rate, global_clipnorm=1.0)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer, loss, jit_compile=True)
    x, y = generate(rng, FLAGS.updates * BATCH, LENGTH, shortest_delay=10)
    model.fit(x, y, batch_size=BATCH, verbose=2)
    return model


def share_correct(model, x, y):
    answers = np.argmax(model(x), axis=2)
    return np.mean(answers[:, -1] == y[:, -1])


def fixed_points(layer, states, rng):
    near = rng.permutation(np.concatenate(states))[:300]
    near = near + 0.1 * rng.normal(size=near.shape)
    cue = np.eye(1 + FLAGS.stimuli)[0]  # the input of the delay
    return diagnostics.fixed_points(layer, near, x=cue)


def main(_):
    folder, rows = pathlib.Path(FLAGS.output), []
    folder.mkdir(parents=True, exist_ok=True)
    figure = Figure(figsize=(12, 4.5), layout="constrained")
    panels = figure.subplots(1, len(LAYERS))
    for (name, (kind, rate)), ax in zip(LAYERS.items(), panels, strict=True):
        keras.utils.set_random_seed(FLAGS.seed)
        rng = np.random.default_rng(FLAGS.seed)
        layer = kind(UNITS, return_sequences=True)
        model = train(layer, rate, rng)
        correct = share_correct(model, *generate(rng, 1_000, LENGTH, 10))
        x, y = generate(rng, 60, LONG)
        correct = correct, share_correct(model, x, y)
        shown = x[:, PERIOD, 1:].argmax(axis=1)
        states = diagnostics.state_trajectories(layer, x)[:, 1:]
        states = states[:, 2 * PERIOD : -2 * PERIOD]  # of the delay
        points = fixed_points(layer, states, rng)
        kinds = points.stable.sum(), (points.expanding > 0).sum()
        rows.append([name, *map("{:.3f}".format, correct), *kinds])
        plots.plot_fixed_points(points, states, color_by=shown, ax=ax)
        ax.set_title(f"{name}: {correct[1]:.0%} correct after 100 steps")
    header = ["layer", "correct", "after 100 steps", "stable", "unstable"]
    print(tabulate(rows, header, "github", disable_numparse=True))
    figure.savefig(folder / "working_memory.png", dpi=120)


if __name__ == "__main__":
    flags.DEFINE_string("output", "runs/working_memory", "Folder to write to.")
    flags.DEFINE_integer("stimuli", 2, "Stimuli, one of which is shown.", 2)
    flags.DEFINE_integer("updates", 3_000, "Updates of each training.", 1)
    flags.DEFINE_integer("seed", 0, "Seed of weights and data.", 0, 2**32 - 1)
    app.run(main)
