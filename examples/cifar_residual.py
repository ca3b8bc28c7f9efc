"""Classifies images with a residual network without normalization layers.

    python cifar_residual.py --download
    python cifar_residual.py --small --dataset=fashion_mnist --noaugment
    python cifar_residual.py --small --image_folder=photos

The first line is the network and the schedule of the paper on CIFAR-10, for a
GPU; --small is a network for two cores. Prints the accuracy, draws the learning
curve, and saves the best model on validation data. The same command with
--resume continues after the last whole epoch.
"""

import csv
import pathlib
import shutil

import keras
import numpy as np
import tensorflow as tf
import tensorflow_datasets as tfds
from absl import app
from absl import flags
from tabulate import tabulate

from keras_rin import callbacks
from keras_rin import plots
from keras_rin.initializers import SmallVarianceNormal
from keras_rin.models import residual_convnet
from keras_rin.tasks import sequential_pixels

PAPER = {
    "network": {"filters": [64, 128, 256], "blocks": 9},
    "epochs": 154,
    "batch_size": 128,
    "optimizer": lambda rate: keras.optimizers.SGD(rate, momentum=0.9),
    "learning_rate": 0.05,
    "drops": [30_000, 50_000],  # updates, after which the rate is a tenth
}
SMALL = {
    "network": {"filters": [16, 32, 64], "blocks": 1},
    "epochs": 12,
    "batch_size": 32,
    "optimizer": keras.optimizers.Adam,
    "learning_rate": 0.003,
    "drops": [12_000, 17_000],
}

FLAGS = flags.FLAGS


def load():
    """Pairs (images, labels) to train, validate and test on, as uint8."""
    if FLAGS.image_folder:
        (x, y), test = map(read_folder, ("train", "test"))
        order = np.random.default_rng(0).permutation(len(y))
        x, y = x[order], y[order]
    else:
        options = {"split": ["train", "test"], "batch_size": -1}
        options |= {"as_supervised": True, "download": FLAGS.download}
        (x, y), test = tfds.as_numpy(tfds.load(FLAGS.dataset, **options))
    tenth = len(y) // 10
    return (x[tenth:], y[tenth:]), (x[:tenth], y[:tenth]), test


def read_folder(part):
    """The images of a folder for each class, scaled to 32 x 32 pixels."""
    root = pathlib.Path(FLAGS.image_folder)
    dataset = keras.utils.image_dataset_from_directory(
        root / part,
        class_names=sorted(child.name for child in (root / "train").iterdir()),
        batch_size=None,
        image_size=(32, 32),
        shuffle=False,
        verbose=False,
    )
    images, labels = zip(*dataset.as_numpy_iterator(), strict=True)
    return np.round(images).astype("uint8"), np.array(labels)


def batches(x, y, size):
    """Those of one epoch after another, each in an order of its own."""
    x, y = tf.constant(x), tf.constant(y)

    def epoch(number):
        seeds = tf.stack([FLAGS.seed, number])

        def image_and_label(row):
            of_row = tf.random.experimental.stateless_fold_in(seeds, row)
            return moved(x[row], of_row) if FLAGS.augment else x[row], y[row]

        rows = tf.random.experimental.stateless_shuffle(tf.range(len(y)), seeds)
        images = slices(rows).map(image_and_label, tf.data.AUTOTUNE)
        return standardized(images, size)

    return tf.data.Dataset.counter().flat_map(epoch)


def moved(image, seed):
    """Cut at random from the image with a border of 0, perhaps mirrored."""
    where, whether = tf.unstack(tf.random.experimental.stateless_split(seed))
    padded = tf.pad(image, [(2, 2), (2, 2), (0, 0)])
    image = tf.image.stateless_random_crop(padded, image.shape, where)
    if FLAGS.flip:
        image = tf.image.stateless_random_flip_left_right(image, whether)
    return image


slices = tf.data.Dataset.from_tensor_slices


def standardized(images, size):
    """In batches, each image with mean 0 and variance 1."""
    batches = images.batch(size).map(
        lambda x, y: (tf.image.per_image_standardization(x), y),
        tf.data.AUTOTUNE,
    )
    return batches.prefetch(tf.data.AUTOTUNE)


def build(shape, classes, options, initializer=SmallVarianceNormal):
    model = residual_convnet(
        shape,
        classes,
        stem_filters=16,
        kernel_initializer=initializer(),
        kernel_regularizer=keras.regularizers.L2(0.5e-4),
        **options["network"],
    )
    drops, rate = options["drops"], options["learning_rate"]
    rates = [rate, rate / 10, rate / 100]
    schedule = keras.optimizers.schedules.PiecewiseConstantDecay(drops, rates)
    optimizer = options["optimizer"](schedule)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer, loss, metrics=["accuracy"])
    return model


def validation_accuracies(log):
    """The value of each epoch in the file of a CSVLogger."""
    if not log.exists():
        return []
    with log.open() as lines:
        rows = csv.DictReader(lines)
        return [float(row["val_accuracy"]) for row in rows]


def train(splits, options, folder):
    """The best model on validation data, and the accuracy after each epoch."""
    keras.utils.set_random_seed(FLAGS.seed)
    (x, y), validation, test = splits
    size, epochs = options["batch_size"], FLAGS.epochs or options["epochs"]
    model = build(x.shape[1:], int(y.max()) + 1, options)
    folder.mkdir(parents=True, exist_ok=True)
    file, log = folder / "best.keras", folder / "log.csv"
    backups = folder / "backup"
    if not FLAGS.resume:
        log.unlink(missing_ok=True)
        shutil.rmtree(backups, ignore_errors=True)
    checkpoint = keras.callbacks.ModelCheckpoint(
        file,
        "val_accuracy",
        mode="max",
        save_best_only=True,
        initial_value_threshold=max(validation_accuracies(log), default=None),
    )
    backup = keras.callbacks.BackupAndRestore(backups, delete_checkpoint=False)
    logger = keras.callbacks.CSVLogger(log, append=True)
    model.fit(
        batches(x, y, size),
        steps_per_epoch=-(-len(y) // size),
        epochs=epochs,
        validation_data=standardized(slices(validation), size),
        callbacks=[callbacks.RestoreOnNaN(), checkpoint, logger, backup],
        verbose=2,
    )
    return keras.models.load_model(file), validation_accuracies(log)


def main(argv):
    if argv[1:]:
        raise app.UsageError(f"Flags begin with --. Received: {argv[1:]}")
    if FLAGS.mixed_precision:
        keras.config.set_dtype_policy(f"mixed_{FLAGS.mixed_precision}")
    folder = pathlib.Path(FLAGS.output)
    splits, options = load(), SMALL if FLAGS.small else PAPER
    model, validation = train(splits, options, folder)
    images = standardized(slices(splits[2]), options["batch_size"])
    accuracy = model.evaluate(images, verbose=0)[1]
    baseline = sequential_pixels.chance_accuracy(splits[2][1])
    rows = [
        ["residual network", f"{model.count_params():,}", f"{accuracy:.3g}"],
        ["most frequent class", "0", f"{baseline:.3g}"],
    ]
    header = ["model", "parameters", "accuracy"]
    print(tabulate(rows, header, "github", disable_numparse=True))
    figure = plots.plot_learning_curves(
        {"residual network": [validation]},
        ylabel="accuracy, validation data",
        baseline=baseline,
    )
    figure.savefig(folder / "learning_curves.png", dpi=120)


if __name__ == "__main__":
    data = ["cifar10", "cifar100", "fashion_mnist", "mnist"]
    flags.DEFINE_string("output", "runs/cifar_residual", "Folder to write to.")
    flags.DEFINE_enum("dataset", "cifar10", data, "From TFDS.")
    flags.DEFINE_bool("download", False, "Download data that is missing.")
    flags.DEFINE_string("image_folder", None, "Or train/CLASS and test/CLASS.")
    flags.DEFINE_bool("augment", True, "Shift images in training.")
    flags.DEFINE_bool("flip", True, "Mirror them too.")
    flags.DEFINE_bool("small", False, "The network for two cores.")
    flags.DEFINE_integer("epochs", None, "Instead of 154, or 12.", 1)
    flags.DEFINE_integer("seed", 0, "Seed of weights and data.", 0, 2**32 - 1)
    flags.DEFINE_enum("mixed_precision", None, ["bfloat16", "float16"], "Type.")
    flags.DEFINE_bool("resume", False, "Continue the run in OUTPUT.")
    flags.register_validator("output", str.strip, "Name a folder.")
    app.run(main)
