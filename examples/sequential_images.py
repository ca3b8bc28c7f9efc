"""Classifies images pixel by pixel with RIN, SimpleRNN and LSTM.

    python sequential_images.py
    python sequential_images.py --dataset=mnist --permute --seed=1
    python sequential_images.py --dataset=mnist --rows

Writes a table of accuracies on test data, the learning curves, the best model
of each layer on validation data, and the best RIN of all as `.keras` file and
as SavedModel, which is loaded back and compared. Ctrl-C ends the training and
keeps what is finished.
"""

import pathlib
import shutil
import sys

import keras
import numpy as np
import tensorflow as tf
import tensorflow_datasets as tfds
from absl import app
from absl import flags
from absl import logging
from sklearn.datasets import load_digits
from tabulate import tabulate
from tqdm.keras import TqdmCallback

from keras_rin import callbacks
from keras_rin import plots
from keras_rin.initializers import Chain
from keras_rin.initializers import Offset
from keras_rin.layers import RIN
from keras_rin.tasks import sequential_pixels

LAYERS = {
    "RIN": RIN,
    "RIN paper": lambda units: RIN(
        units, kernel_initializer=keras.initializers.RandomNormal(0, 0.001)
    ),
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
        (x, y), test = from_tfds()
    tenth = len(y) // 10
    splits = [(x[tenth:], y[tenth:]), (x[:tenth], y[:tenth]), test]
    return [(sequences(x), y) for x, y in splits]


def from_tfds():
    options = {"split": ["train", "test"], "batch_size": -1}
    options |= {"data_dir": FLAGS.data_dir, "download": FLAGS.download}
    try:
        images = tfds.load(FLAGS.dataset, as_supervised=True, **options)
        return tfds.as_numpy(images)
    except Exception as error:  # TFDS and TensorFlow raise many kinds
        raise app.UsageError(
            f"{FLAGS.dataset} in {FLAGS.data_dir or 'the folder of TFDS'} "
            "cannot be read. Pass the folder of prepared data as --data_dir "
            f"or TFDS_DATA_DIR, or --download. ({error})"
        ) from error


def sequences(images):
    samples, height, width = images.shape[:3]
    if FLAGS.rows:  # one time step is a row of pixels
        images = images.reshape(samples, height, 1, -1)
    steps = height if FLAGS.rows else height * width
    rng = np.random.default_rng(0)
    order = sequential_pixels.permutation(rng, steps) if FLAGS.permute else None
    return sequential_pixels.generate(images, order)


def build(name, features, classes):
    layer, read_out = LAYERS[name](FLAGS.units), keras.layers.Dense(classes)
    model = keras.Sequential([keras.Input((None, features)), layer, read_out])
    optimizer = keras.optimizers.Adam(FLAGS.learning_rate, clipnorm=1.0)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer, loss, metrics=["accuracy"])
    return model


def train(name, splits, file):
    """One run: scored with the weights that are best on validation data."""
    keras.utils.set_random_seed(FLAGS.seed)
    (x, y), validation, test = splits
    model = build(name, x.shape[-1], int(test[1].max()) + 1)
    file.unlink(missing_ok=True)
    label, finished = name, True
    checkpoint = keras.callbacks.ModelCheckpoint(
        file, "val_accuracy", mode="max", save_best_only=True
    )
    progress = TqdmCallback(verbose=0, desc=name)
    try:
        model.fit(
            x,
            y,
            FLAGS.batch_size,
            FLAGS.epochs,
            validation_data=validation,
            callbacks=[callbacks.RestoreOnNaN(), checkpoint, progress],
            verbose=0,
        )
    except KeyboardInterrupt:
        label, finished = f"{name} (interrupted)", False
        print("\nInterrupted: here is what is finished.", file=sys.stderr)
    except FloatingPointError as error:
        label = f"{name} (diverged)"
        print(f"\n{name}: {error}", file=sys.stderr)
    history = model.history.history
    if file.exists():
        model = keras.models.load_model(file)
    score = model.evaluate(*test, FLAGS.batch_size, verbose=0)[1]
    return {
        "layer": name,
        "row": [label, f"{model.count_params():,}", f"{score:.3g}"],
        "validation": history.get("val_accuracy", []),
        "finished": finished,
        "model": file,
    }


def save_best_rin(runs, x, folder):
    """Writes both formats, and checks that the SavedModel answers the same."""
    best = max(runs, key=lambda run: max(run["validation"]))
    file, saved = folder / "best_rin.keras", folder / "saved_model"
    shutil.copy(best["model"], file)
    model = keras.models.load_model(file)
    model.export(saved, verbose=False)
    exported, expected = tf.saved_model.load(saved), model.predict(x, verbose=0)
    np.testing.assert_allclose(exported.serve(x), expected, 1e-3, 1e-4)
    print(f"Best RIN: {file} and {saved}, which answer the same.")


def main(argv):
    if argv[1:]:
        raise app.UsageError(f"Flags begin with --. Received: {argv[1:]}")
    logging.set_verbosity(logging.ERROR)
    folder = pathlib.Path(FLAGS.output)
    folder.mkdir(parents=True, exist_ok=True)
    splits, runs, models = load(), [], folder / "models"
    for layer in FLAGS.layers:
        run = train(layer, splits, models / f"{layer}-{FLAGS.seed}.keras")
        runs += [run] if run["validation"] else []
        if not run["finished"]:
            break
    if not runs:
        print(f"No epoch is over, so {folder} stays as it is.")
        return
    x_test, y_test = splits[2]
    baseline = sequential_pixels.chance_accuracy(y_test)
    rows = [run["row"] for run in runs]
    rows.append(["most frequent class", "0", f"{baseline:.3g}"])
    header = ["layer", "parameters", "accuracy"]
    text = tabulate(rows, header, "github", disable_numparse=True)
    (folder / "table.md").write_text(text + "\n")
    print(f"\n{text}\n")
    figure = plots.plot_learning_curves(
        {run["layer"]: [run["validation"]] for run in runs},
        ylabel="accuracy, validation data",
        baseline=baseline,
    )
    figure.savefig(folder / "learning_curves.png", dpi=120)
    rins = [run for run in runs if run["layer"].startswith("RIN")]
    if rins:
        save_best_rin(rins, x_test[:64], folder)


if __name__ == "__main__":
    names = ["digits", "mnist", "fashion_mnist", "cifar10"]
    flags.DEFINE_string("output", "runs/sequential_images", "Folder to write.")
    flags.DEFINE_enum("dataset", "digits", names, "Images to classify.")
    flags.DEFINE_string("data_dir", None, "Folder of prepared TFDS data.")
    flags.DEFINE_bool("download", False, "Download data that is missing.")
    flags.DEFINE_bool("permute", False, "Permute the pixels of all images.")
    flags.DEFINE_bool("rows", False, "Read a row of pixels per time step.")
    flags.DEFINE_multi_enum("layers", list(LAYERS), list(LAYERS), "To train.")
    flags.DEFINE_integer("units", 100, "Units of each layer.", 1)
    flags.DEFINE_integer("epochs", 40, "Epochs of training.", 1)
    flags.DEFINE_integer("batch_size", 32, "Batch size.", 1)
    flags.DEFINE_float("learning_rate", 0.001, "Learning rate of Adam.")
    flags.DEFINE_integer("seed", 0, "Seed of weights and data.", 0, 2**32 - 1)
    flags.register_validator("output", str.strip, "Name a folder.")
    flags.register_validator(
        "layers", lambda v: len({*v}) == len(v), "Give each layer once."
    )
    flags.register_validator(
        "learning_rate", lambda rate: 0 < rate < np.inf, "It must be above 0."
    )
    app.run(main)
