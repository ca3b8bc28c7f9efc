"""Finds the fixed points of a trained network that remembers three bits.

    python fixed_points.py
    python fixed_points.py --network=GRU

Trains a recurrent layer on the flip-flop task, then finds the fixed points of
its states under zero input. A network that solves the task has a stable one
for each of the 8 combinations of bits, and saddles between them (Sussillo and
Barak, 2013). Prints how many there are, and draws them among the trajectories.
"""

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
from tabulate import tabulate

from keras_rin import diagnostics
from keras_rin import plots
from keras_rin.layers import RIN
from keras_rin.tasks import flip_flop

UNITS, LENGTH, BATCH = 24, 40, 64
# The layer, and its learning rate at the first update.
NETWORKS = {
    "RIN": (lambda: RIN(UNITS, "tanh", return_sequences=True), 0.005),
    "GRU": (lambda: keras.layers.GRU(UNITS, return_sequences=True), 0.01),
    "LSTM": (lambda: keras.layers.LSTM(UNITS, return_sequences=True), 0.01),
}

FLAGS = flags.FLAGS


def train(layer, rate, updates, rng, verbose="auto"):
    """The trained model, and its normalized loss on new data."""
    read_out = keras.layers.Dense(3)
    model = keras.Sequential([keras.Input((LENGTH, 3)), layer, read_out])
    rate = keras.optimizers.schedules.CosineDecay(rate, updates, 0.01)
    optimizer = keras.optimizers.Adam(rate, global_clipnorm=1.0)
    model.compile(optimizer, "mse", jit_compile=True)
    x, y = flip_flop.generate(rng, updates * BATCH, LENGTH)
    model.fit(x, y, batch_size=BATCH, verbose=verbose)
    x, y = flip_flop.generate(rng, 500, LENGTH)
    loss = model.evaluate(x, y, batch_size=500, verbose=0)
    return model, loss / flip_flop.baseline_loss()


def states_near(layer, rng, count=400):
    """New sequences, the states along them, and states near those."""
    x, _ = flip_flop.generate(rng, 50, LENGTH)
    trajectories = diagnostics.state_trajectories(layer, x)[:, 1:]
    states = rng.permutation(np.concatenate(trajectories))[:count]
    return x, trajectories, states + 0.3 * rng.normal(size=states.shape)


def main(argv):
    if argv[1:]:
        raise app.UsageError(f"Flags begin with --. Received: {argv[1:]}")
    folder = pathlib.Path(FLAGS.output)
    folder.mkdir(parents=True, exist_ok=True)
    keras.utils.set_random_seed(FLAGS.seed)
    rng = np.random.default_rng(FLAGS.seed)
    make_layer, rate = NETWORKS[FLAGS.network]
    layer = make_layer()
    _, loss = train(layer, rate, FLAGS.updates, rng)
    _, trajectories, states = states_near(layer, rng)
    fixed_points = diagnostics.fixed_points(layer, states, x=np.zeros(3))
    rows = [
        ["normalized loss", f"{loss:.2g}"],
        ["stable fixed points", str(fixed_points.stable.sum())],
        ["saddles", str((fixed_points.expanding > 0).sum())],
        ["unconverged, of 400", str(len(fixed_points.unconverged_states))],
    ]
    print(tabulate(rows, [FLAGS.network, ""], "github", disable_numparse=True))
    figure = plots.plot_fixed_points(fixed_points, trajectories)
    figure.savefig(folder / "fixed_points.png", dpi=120)


if __name__ == "__main__":
    flags.DEFINE_string("output", "runs/fixed_points", "Folder to write to.")
    flags.DEFINE_enum("network", "RIN", list(NETWORKS), "Layer to train.")
    flags.DEFINE_integer("updates", 1_000, "Updates of the training.", 1)
    flags.DEFINE_integer("seed", 0, "Seed of weights and data.", 0, 2**32 - 1)
    app.run(main)
