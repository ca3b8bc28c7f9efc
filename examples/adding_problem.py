"""Trains recurrent layers to add two marked numbers of a long sequence.

    python adding_problem.py
    python adding_problem.py --layers=RIN --layers=GRU
    python adding_problem.py --length=200 --test_length=5000

Each time step has a number in [0, 1] and a marker; the target is the sum of
the two marked numbers. The inputs are normalized for every layer, and each
layer has a learning rate of its own. Prints the normalized loss on test data
(the mean squared error over that of a constant predictor, 1/6), draws the
learning curves, and saves the best model of each layer on validation data.
"""

import os
import pathlib
import sys

# TensorFlow's log, without its lines while it is imported.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
stderr = os.dup(2)
os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
try:
    import keras
finally:
    os.dup2(stderr, 2)
import numpy as np
from absl import app
from absl import flags
from keras.layers import GRU
from keras.layers import LSTM
from keras.layers import SimpleRNN
from tabulate import tabulate
from tqdm.keras import TqdmCallback

from keras_rin import plots
from keras_rin.callbacks import RestoreOnNaN
from keras_rin.layers import RIN
from keras_rin.tasks import adding

# Layers of about as many weights, and the learning rate of each.
LAYERS = {
    "RIN": lambda: RIN(50),
    "IRNN": lambda: SimpleRNN(50, "relu", recurrent_initializer="identity"),
    "SimpleRNN": lambda: SimpleRNN(50),
    "LSTM": lambda: LSTM(24),
    "GRU": lambda: GRU(28),
}
RATES = dict(RIN=0.003, IRNN=0.001, SimpleRNN=0.001, LSTM=0.01, GRU=0.01)

FLAGS = flags.FLAGS


def build(name, x):
    """The compiled model of a layer, the inputs `x` normalized in it."""
    scale, read_out = keras.layers.Normalization(), keras.layers.Dense(1)
    scale.adapt(x)
    layers = [keras.Input((None, 2)), scale, LAYERS[name](), read_out]
    model = keras.Sequential(layers)
    rate = keras.optimizers.schedules.CosineDecay(
        0.0,
        max(1, FLAGS.epochs * -(-len(x) // 50) - 100),
        warmup_target=FLAGS.learning_rate or RATES[name],
        warmup_steps=100,
    )
    optimizer = keras.optimizers.Adam(rate, beta_2=0.99, global_clipnorm=1.0)
    model.compile(optimizer, "mse", jit_compile=True)
    return model


def train(name, splits, folder):
    """A row of the table, and the curve of the normalized loss."""
    keras.utils.set_random_seed(FLAGS.seed)
    (x, y), validation, test = splits
    model, label = build(name, x), name
    best = keras.callbacks.EarlyStopping(
        patience=FLAGS.epochs,  # stops at the end, with the best weights
        restore_best_weights=True,
    )
    callbacks = [RestoreOnNaN(), best, TqdmCallback(verbose=0, desc=name)]
    options = {"batch_size": 50, "epochs": FLAGS.epochs, "callbacks": callbacks}
    try:
        model.fit(x, y, validation_data=validation, verbose=0, **options)
    except FloatingPointError as error:
        print(f"{name}: {error}", file=sys.stderr)
        label += " (diverged)"
    model.save(folder / f"{name}.keras")
    curve = np.array(model.history.history.get("val_loss", []))
    loss = model.evaluate(*test, 500, verbose=0) / adding.baseline_loss()
    row = [label, f"{model.count_params():,}", f"{loss:.2g}"]
    return row, [curve / adding.baseline_loss()]


def main(argv):
    if argv[1:]:
        raise app.UsageError(f"Flags begin with --. Received: {argv[1:]}")
    folder = pathlib.Path(FLAGS.output)
    folder.mkdir(parents=True, exist_ok=True)
    rng, rows, curves = np.random.default_rng(0), [], {}
    splits = [adding.generate(rng, FLAGS.samples, FLAGS.length)]
    length = FLAGS.test_length or FLAGS.length
    splits += [adding.generate(rng, 1_000, length) for _ in range(2)]
    for name in FLAGS.layers:
        row, curves[name] = train(name, splits, folder)
        rows.append(row)
    header = ["layer", "parameters", "normalized loss"]
    print(tabulate(rows, header, "github", disable_numparse=True))
    ylabel = "normalized loss, validation data"
    figure = plots.plot_learning_curves(curves, ylabel=ylabel, baseline=1)
    figure.axes[0].set_yscale("log")
    figure.savefig(folder / "learning_curves.png", dpi=120)


if __name__ == "__main__":
    flags.DEFINE_string("output", "runs/adding_problem", "Folder to write to.")
    flags.DEFINE_integer("length", 400, "Time steps in training.", 2)
    flags.DEFINE_integer("test_length", None, "Time steps of other data.", 2)
    flags.DEFINE_integer("samples", 10_000, "Training sequences.", 1)
    flags.DEFINE_integer("epochs", 10, "Epochs of training.", 1)
    flags.DEFINE_float("learning_rate", None, "Instead of their own.", 0)
    flags.DEFINE_integer("seed", 0, "Seed of the weights.", 0, 2**32 - 1)
    flags.DEFINE_multi_enum("layers", list(LAYERS), list(LAYERS), "To train.")
    app.run(main)
