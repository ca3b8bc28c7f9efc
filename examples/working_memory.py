"""What do three networks remember a stimulus with? Fixed points of a delay.

    python working_memory.py
    python working_memory.py --stimuli=4

RIN, SimpleRNN and a leaky-rate cell learn delayed match to sample: after a
delay of 10 to 20 steps they say whether a stimulus is the one they saw before.
The input is constant during the delay, so a network may keep the stimulus in a
stable fixed point of its own for each stimulus. Prints how many fixed points
there are, and draws them among the states of the delay, colored by stimulus.
"""

import functools
import os
import pathlib

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
stderr = os.dup(2)  # TensorFlow logs to it even so, while it is imported
os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
try:
    import keras
finally:
    os.dup2(stderr, 2)
import numpy as np
from absl import app
from absl import flags
from matplotlib.figure import Figure
from tabulate import tabulate

from keras_rin import diagnostics
from keras_rin import plots
from keras_rin.layers import RIN
from keras_rin.tasks import delayed_match

UNITS, LENGTH, PERIOD, BATCH = 32, 36, 4, 64
DELAY = slice(LENGTH - 2 * PERIOD - 10, LENGTH - 2 * PERIOD)  # in all trials
FLAGS = flags.FLAGS


class LeakyRateCell(keras.layers.SimpleRNNCell):
    """h + (tanh(x W + h V + b) - h) / 5: a time constant of 5 steps."""

    def call(self, inputs, states, training=False):
        rates, _ = super().call(inputs, states, training)
        h = states[0] + (rates - states[0]) / 5
        return h, [h]


def leaky_rate(units, **options):
    return keras.layers.RNN(LeakyRateCell(units), **options)


# The layer, and its learning rate at the first update.
LAYERS = {
    "RIN": (functools.partial(RIN, activation="tanh"), 0.003),
    "SimpleRNN": (keras.layers.SimpleRNN, 0.001),
    "leaky rate": (leaky_rate, 0.01),
}


def generate(rng, samples):
    return delayed_match.generate(
        rng, samples, LENGTH, FLAGS.stimuli, PERIOD, shortest_delay=10
    )


def train(layer, rate, rng):
    """The share of correct answers on new trials."""
    inputs = keras.Input((LENGTH, 1 + FLAGS.stimuli))
    model = keras.Sequential([inputs, layer, keras.layers.Dense(3)])
    rate = keras.optimizers.schedules.CosineDecay(rate, FLAGS.updates, 0.01)
    optimizer = keras.optimizers.Adam(rate, global_clipnorm=1.0)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer, loss, jit_compile=True)
    x, y = generate(rng, FLAGS.updates * BATCH)
    model.fit(x, y, batch_size=BATCH, verbose=2)
    x, y = generate(rng, 1_000)
    answers = model.predict(x, 500, verbose=0).argmax(axis=2)
    return np.mean(answers[:, -1] == y[:, -1])


def delay_states(layer, rng):
    """States of the delay of new trials, and the stimulus of each trial."""
    x, _ = generate(rng, 60)
    states = diagnostics.state_trajectories(layer, x)[:, 1:]
    return states[:, DELAY], x[:, : DELAY.start + 1, 1:].sum(axis=1).argmax(1)


def main(argv):
    if argv[1:]:
        raise app.UsageError(f"Flags begin with --. Received: {argv[1:]}")
    folder, rows = pathlib.Path(FLAGS.output), []
    folder.mkdir(parents=True, exist_ok=True)
    figure = Figure(figsize=(12, 4.5), layout="constrained")
    panels = figure.subplots(1, len(LAYERS))
    for (name, (make, rate)), ax in zip(LAYERS.items(), panels, strict=True):
        keras.utils.set_random_seed(FLAGS.seed)
        rng = np.random.default_rng(FLAGS.seed)
        layer = make(UNITS, return_sequences=True)
        accuracy = train(layer, rate, rng)
        states, shown = delay_states(layer, rng)
        near = rng.permutation(np.concatenate(states))[:300]
        near = near + 0.1 * rng.normal(size=near.shape)
        fixation = np.eye(1 + FLAGS.stimuli)[0]  # the input of the delay
        points = diagnostics.fixed_points(layer, near, x=fixation)
        kinds = points.stable.sum(), (points.expanding > 0).sum()
        rows.append([name, f"{accuracy:.3f}", *map(str, kinds)])
        plots.plot_fixed_points(points, states, color_by=shown, ax=ax)
        ax.set_title(f"{name}: {accuracy:.1%} correct")
    header = ["layer", "correct", "stable points", "unstable points"]
    print(tabulate(rows, header, "github", disable_numparse=True))
    figure.savefig(folder / "working_memory.png", dpi=120)


if __name__ == "__main__":
    flags.DEFINE_string("output", "runs/working_memory", "Folder to write to.")
    flags.DEFINE_integer("stimuli", 2, "Stimuli, one of which is shown.", 2)
    flags.DEFINE_integer("updates", 3_000, "Updates of each training.", 1)
    flags.DEFINE_integer("seed", 0, "Seed of weights and data.", 0, 2**32 - 1)
    app.run(main)
