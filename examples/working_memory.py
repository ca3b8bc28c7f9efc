"""A decision that is remembered: all fixed points, with proof.

    python working_memory.py
    python working_memory.py --seed=1 --output=runs/decision

A RIN and a rate network of rank 2, both with ReLU, see noisy evidence for 20
steps and hold its sign for a delay of 25 to 100 steps. The rate network does so
by two stable fixed points with a saddle between them; a RIN may hold one of the
signs by what is no fixed point. Prints the accuracy over the delay and what
fixed points there are under no evidence, with what proves that these are all;
draws states, flow and the branches over the evidence to a PDF.
"""

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

EVIDENCE, SHORTEST, LONGEST = 20, 25, 100  # time steps
BATCH, DELAYS = 64, (25, 50, 100, 400)
FLAGS = flags.FLAGS


def layers():
    """The layer, and its learning rate at the first update."""
    rates = RateRNN(
        64,
        tau=5.0,
        rank=2,
        activation="relu",
        return_sequences=True,
    )
    return {
        "RIN": (RIN(24, return_sequences=True), 0.003),
        "RateRNN of rank 2": (rates, 0.01),
    }


def generate(rng, samples, shortest=SHORTEST, longest=LONGEST):
    """Evidence x, the sign y to hold from its end on, and the delay's steps.

    The evidence ends `delay` steps before the end; before it x is noise of 0.
    """
    length = EVIDENCE + longest
    delays = rng.integers(shortest, longest + 1, size=(samples, 1))
    strength = rng.choice([-0.5, -0.25, 0.25, 0.5], size=(samples, 1))
    steps = np.arange(length)
    is_delay = steps >= length - delays
    is_evidence = ~is_delay & (steps >= length - delays - EVIDENCE)
    x = strength + 0.5 * rng.normal(size=(samples, length))
    x = (x * is_evidence)[..., None].astype("float32")
    y = (np.sign(strength) * is_delay)[..., None].astype("float32")
    return x, y, is_delay


def train(layer, rate, rng):
    inputs = keras.Input((None, 1))
    model = keras.Sequential([inputs, layer, keras.layers.Dense(1)])
    rate = keras.optimizers.schedules.CosineDecay(rate, FLAGS.updates, 0.01)
    optimizer = keras.optimizers.Adam(rate, global_clipnorm=1.0)
    model.compile(optimizer, "mse", jit_compile=True)
    x, y, _ = generate(rng, FLAGS.updates * BATCH)
    model.fit(x, y, batch_size=BATCH, verbose=2)
    return model


def accuracies(model, rng):
    """The share of signs that are right at the end of each delay."""
    for delay in DELAYS:
        x, y, _ = generate(rng, 500, delay, delay)
        answers = keras.ops.convert_to_numpy(model(x))
        yield np.mean(np.sign(answers[:, -1]) == y[:, -1])


def draw(layer, read_out, rng, panels):
    """States and fixed points, their flow, and their branches."""
    x, y, _ = generate(rng, 30, LONGEST, LONGEST)
    states = diagnostics.state_trajectories(layer, x)
    limit = {"seconds": FLAGS.seconds}
    points = diagnostics.fixed_points(layer, x=[0.0], complete=True, **limit)
    plots.plot_fixed_points(
        points,
        states,
        color_by=y[:, -1, 0],
        color_label="decision",
        ax=panels[0],
    )
    if len(points.states) >= 3:
        plane = points.states[:3]
        plots.plot_flow(layer, plane, fixed_points=points, ax=panels[1])
    branches = diagnostics.fixed_point_branches(layer, [-0.5], [0.5], **limit)
    if branches.ends:
        plots.plot_branches(branches, project=read_out, ax=panels[2])
    panels[2].set(xlabel="evidence, from -0.5 to 0.5", ylabel="read-out")
    return points, branches


def main(_):
    folder, rows = pathlib.Path(FLAGS.output), []
    folder.mkdir(parents=True, exist_ok=True)
    keras.utils.set_random_seed(FLAGS.seed)
    networks = layers()
    figure = Figure(figsize=(13, 4.2 * len(networks)), layout="constrained")
    grid = figure.subplots(len(networks), 3)
    for (name, (layer, rate)), panels in zip(
        networks.items(), grid, strict=True
    ):
        rng = np.random.default_rng(FLAGS.seed)
        model = train(layer, rate, rng)
        correct = [f"{share:.3f}" for share in accuracies(model, rng)]
        points, branches = draw(layer, model.layers[-1], rng, panels)
        panels[0].set_title(name)
        kinds = points.stable.sum(), (points.expanding > 0).sum()
        rows.append([name, *correct, *kinds])
        print(f"{name}, no evidence: {points}")
        print(f"{name}, over the evidence: {branches}")
    header = ["layer", *(f"{delay} steps" for delay in DELAYS)]
    header += ["stable", "unstable"]
    print(tabulate(rows, header, "github", disable_numparse=True))
    figure.savefig(folder / "working_memory.pdf")
    figure.savefig(folder / "working_memory.png", dpi=120)


if __name__ == "__main__":
    flags.DEFINE_string("output", "runs/working_memory", "Folder to write to.")
    flags.DEFINE_integer("updates", 800, "Updates of each training.", 1)
    flags.DEFINE_integer("seconds", 60, "Longest time of each search.", 0)
    flags.DEFINE_integer("seed", 0, "Seed of weights and data.", 0, 2**32 - 1)
    app.run(main)
