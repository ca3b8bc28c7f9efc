"""Classifies images pixel by pixel with RIN, SimpleRNN and LSTM.

    python sequential_images.py
    python sequential_images.py --dataset=mnist --permute --seed=1
    python sequential_images.py --dataset=mnist --rows

Prints a table of accuracies on test data, with the weights that are best on
validation data, draws the learning curves and saves the models.
"""

import os
import pathlib
import sys

# TensorFlow logs to file descriptor 2. Python's messages get one of their own.
sys.stderr = open(os.dup(2), "w", buffering=1, closefd=False)
os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
import keras
import numpy as np
import tensorflow_datasets as tfds
from absl import app
from absl import flags
from absl import logging
from sklearn.datasets import load_digits
from tabulate import tabulate
from tqdm.keras import TqdmCallback

from keras_rin import plots
from keras_rin.initializers import Chain
from keras_rin.initializers import Offset
from keras_rin.layers import RIN
from keras_rin.tasks import sequential_pixels

LAYERS = {
    "RIN": RIN,
    "RIN chain": lambda n: RIN(n, recurrent_initializer=Offset(Chain(1.0))),
    "SimpleRNN": keras.layers.SimpleRNN,
    "LSTM": keras.layers.LSTM,
}

FLAGS = flags.FLAGS


def load():
    """Pairs (sequences, labels) to train, validate and test on."""
    if FLAGS.dataset == "digits":
        data = load_digits()
        order = np.random.default_rng(0).permutation(len(data.target))
        x, y = data.images[order] / 16, data.target[order]
        (x, y), test = (x[360:], y[360:]), (x[:360], y[:360])
    else:
        options = {"split": ["train", "test"], "batch_size": -1}
        options |= {"as_supervised": True, "download": FLAGS.download}
        (x, y), test = tfds.as_numpy(tfds.load(FLAGS.dataset, **options))
    tenth = len(y) // 10
    splits = [(x[tenth:], y[tenth:]), (x[:tenth], y[:tenth]), test]
    return [(sequences(x), y) for x, y in splits]


def sequences(images):
    samples, height, width = images.shape[:3]
    if FLAGS.rows:  # one time step is a row of pixels
        images = images.reshape(samples, height, 1, -1)
    steps = height if FLAGS.rows else height * width
    rng = np.random.default_rng(0)
    order = rng.permutation(steps) if FLAGS.permute else None
    return sequential_pixels.generate(images, order)


def build(name, features, classes):
    layer, read_out = LAYERS[name](FLAGS.units), keras.layers.Dense(classes)
    model = keras.Sequential([keras.Input((None, features)), layer, read_out])
    optimizer = keras.optimizers.Adam(0.001, clipnorm=1.0)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer, loss, metrics=["accuracy"])
    return model


def train(name, splits, file):
    """A row of the table, and the accuracies on validation data."""
    keras.utils.set_random_seed(FLAGS.seed)
    (x, y), validation, test = splits
    model = build(name, x.shape[-1], int(test[1].max()) + 1)
    keep_best = keras.callbacks.ModelCheckpoint(
        file, "val_accuracy", mode="max", save_best_only=True
    )
    progress = TqdmCallback(verbose=0, desc=name)
    options = {"epochs": FLAGS.epochs, "callbacks": [keep_best, progress]}
    options |= {"batch_size": FLAGS.batch_size, "verbose": 0}
    history = model.fit(x, y, validation_data=validation, **options)
    model = keras.models.load_model(file)
    score = model.evaluate(*test, FLAGS.batch_size, verbose=0)[1]
    row = [name, f"{model.count_params():,}", f"{score:.3g}"]
    return row, history.history["val_accuracy"]


def main(_):
    logging.set_verbosity(logging.ERROR)
    folder = pathlib.Path(FLAGS.output)
    folder.mkdir(parents=True, exist_ok=True)
    splits, rows, curves = load(), [], {}
    for name in FLAGS.layers:
        row, curves[name] = train(name, splits, folder / f"{name}.keras")
        rows.append(row)
    baseline = sequential_pixels.chance_accuracy(splits[2][1])
    rows.append(["most frequent class", "0", f"{baseline:.3g}"])
    header = ["layer", "parameters", "accuracy"]
    print(tabulate(rows, header, "github", disable_numparse=True))
    figure = plots.plot_learning_curves(
        curves, ylabel="accuracy, validation data", baseline=baseline
    )
    figure.savefig(folder / "learning_curves.png", dpi=120)


if __name__ == "__main__":
    names = ["digits", "mnist", "fashion_mnist", "cifar10"]
    flags.DEFINE_string("output", "runs/sequential_images", "Folder to write.")
    flags.DEFINE_enum("dataset", "digits", names, "Images to classify.")
    flags.DEFINE_bool("download", False, "Download data that is missing.")
    flags.DEFINE_bool("permute", False, "Permute the pixels of all images.")
    flags.DEFINE_bool("rows", False, "Read a row of pixels per time step.")
    flags.DEFINE_multi_enum("layers", list(LAYERS), list(LAYERS), "To train.")
    flags.DEFINE_integer("units", 100, "Units of each layer.", 1)
    flags.DEFINE_integer("epochs", 40, "Epochs of training.", 1)
    flags.DEFINE_integer("batch_size", 32, "Batch size.", 1)
    flags.DEFINE_integer("seed", 0, "Seed of weights and data.", 0, 2**32 - 1)
    app.run(main)
