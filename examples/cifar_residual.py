"""Classifies images with a residual network without normalization layers.

    python cifar_residual.py --download
    python cifar_residual.py --small --dataset=fashion_mnist

The first line is the network and the schedule of the paper on CIFAR-10, for a
GPU; --small is a network for two cores. Prints the accuracy and saves the best
model on validation data. The same command with --resume continues after the
last whole epoch.
"""

import os
import pathlib
import shutil
import sys

# TensorFlow logs to file descriptor 2. Python's messages get one of their own.
sys.stderr = open(os.dup(2), "w", buffering=1, closefd=False)
os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
import keras
import tensorflow as tf
import tensorflow_datasets as tfds
from absl import app
from absl import flags
from absl import logging

from keras_rin.callbacks import RestoreOnNaN
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
    options = {"split": ["train", "test"], "batch_size": -1}
    options |= {"as_supervised": True, "download": FLAGS.download}
    (x, y), test = tfds.as_numpy(tfds.load(FLAGS.dataset, **options))
    tenth = len(y) // 10
    return (x[tenth:], y[tenth:]), (x[:tenth], y[:tenth]), test


def batches(x, y, size, training=False):
    """Each image with mean 0 and variance 1; in training, without an end."""
    images = tf.data.Dataset.from_tensor_slices((x, y))
    if training:
        images = images.shuffle(len(y), FLAGS.seed).repeat()
        seeds = tf.data.Dataset.random(FLAGS.seed).batch(2)
        images = tf.data.Dataset.zip(images, seeds)
        images = images.map(moved, tf.data.AUTOTUNE)
    images = images.batch(size).map(
        lambda x, y: (tf.image.per_image_standardization(x), y),
        tf.data.AUTOTUNE,
    )
    return images.prefetch(tf.data.AUTOTUNE)


def moved(pair, seed):
    """Cut at random from the image with a border of 0, perhaps mirrored."""
    image, label = pair
    padded = tf.pad(image, [(2, 2), (2, 2), (0, 0)])
    image = tf.image.stateless_random_crop(padded, image.shape, seed)
    return tf.image.stateless_random_flip_left_right(image, seed[::-1]), label


def build(shape, classes, options):
    model = residual_convnet(
        shape,
        classes,
        stem_filters=16,
        kernel_initializer=SmallVarianceNormal(),
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


def train(splits, options, folder):
    """The best model on validation data."""
    keras.utils.set_random_seed(FLAGS.seed)
    (x, y), validation, _ = splits
    size, epochs = options["batch_size"], FLAGS.epochs or options["epochs"]
    validation = batches(*validation, size)
    model = build(x.shape[1:], int(y.max()) + 1, options)
    file, backups, best = folder / "best.keras", folder / "backup", None
    if not FLAGS.resume:
        shutil.rmtree(backups, ignore_errors=True)
    elif file.exists():
        best = keras.models.load_model(file).evaluate(validation, verbose=0)[1]
    checkpoint = keras.callbacks.ModelCheckpoint(
        file,
        "val_accuracy",
        mode="max",
        save_best_only=True,
        initial_value_threshold=best,  # a worse model does not replace it
    )
    backup = keras.callbacks.BackupAndRestore(backups, delete_checkpoint=False)
    model.fit(
        batches(x, y, size, training=True),
        steps_per_epoch=-(-len(y) // size),
        epochs=epochs,
        validation_data=validation,
        callbacks=[RestoreOnNaN(), checkpoint, backup],
        verbose=2,
    )
    return keras.models.load_model(file)


def main(_):
    logging.set_verbosity(logging.ERROR)
    folder = pathlib.Path(FLAGS.output)
    folder.mkdir(parents=True, exist_ok=True)
    splits, options = load(), SMALL if FLAGS.small else PAPER
    model = train(splits, options, folder)
    test = batches(*splits[2], options["batch_size"])
    accuracy = model.evaluate(test, verbose=0)[1]
    baseline = sequential_pixels.chance_accuracy(splits[2][1])
    print(f"Accuracy on test data: {accuracy:.3g}, chance level {baseline:.3g}")


if __name__ == "__main__":
    data = ["cifar10", "cifar100", "fashion_mnist", "mnist"]
    flags.DEFINE_string("output", "runs/cifar_residual", "Folder to write to.")
    flags.DEFINE_enum("dataset", "cifar10", data, "From TFDS.")
    flags.DEFINE_bool("download", False, "Download data that is missing.")
    flags.DEFINE_bool("small", False, "The network for two cores.")
    flags.DEFINE_integer("epochs", None, "Instead of 154, or 12.", 1)
    flags.DEFINE_integer("seed", 0, "Seed of weights and data.", 0, 2**32 - 1)
    flags.DEFINE_bool("resume", False, "Continue the run in OUTPUT.")
    app.run(main)
