"""Classifies images read pixel by pixel: RIN beside Keras's own layers.

    python examples/sequential_images.py
    python examples/sequential_images.py --dataset=mnist --permute
    python examples/sequential_images.py --dataset=mnist --rows

Trains each layer, prints one table, draws the learning curves, and writes the
best RIN as `.keras` and as a SavedModel, which it loads back and checks.
"""

import comparison
import image_data
import keras
import numpy as np
import outputs
import tensorflow as tf
from absl import app
from absl import flags
from absl import logging

from keras_rin import files
from keras_rin.initializers import Chain
from keras_rin.initializers import Offset
from keras_rin.layers import RIN
from keras_rin.tasks import sequential_pixels

SMALL = {"class_name": "RandomNormal", "config": {"stddev": 0.001}}
LAYERS = {
    "RIN": lambda units: RIN(units),
    "RIN paper": lambda units: RIN(units, kernel_initializer=SMALL),
    "RIN chain": lambda units: RIN(
        units, recurrent_initializer=Offset(Chain(1.0))
    ),
    "SimpleRNN": lambda units: keras.layers.SimpleRNN(units),
    "LSTM": lambda units: keras.layers.LSTM(units),
}

FLAGS = flags.FLAGS
flags.DEFINE_string("output", "runs/sequential_images", "Where to write.")
flags.DEFINE_enum("dataset", "digits", image_data.NAMES, "What to classify.")
flags.DEFINE_string("data_dir", None, "Where TFDS finds prepared data.")
flags.DEFINE_bool("download", False, "Fetch data that is not there.")
flags.DEFINE_bool("permute", False, "Shuffle the pixels, all images alike.")
flags.DEFINE_bool("rows", False, "Read row by row instead.")
flags.DEFINE_multi_enum("layers", list(LAYERS), list(LAYERS), "To compare.")


def build_model(layer, features, classes):
    model = keras.Sequential(
        [
            keras.Input((None, features)),
            LAYERS[layer](FLAGS.units),
            keras.layers.Dense(classes),
        ]
    )
    model.compile(
        keras.optimizers.Adam(FLAGS.learning_rate, clipnorm=1.0),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    return model


def load_sequences():
    """Reads the images; returns (x, y) to train, validate and test on."""
    try:
        parts = image_data.load(FLAGS.dataset, FLAGS.data_dir, FLAGS.download)
    except (FileNotFoundError, ValueError) as error:
        raise app.UsageError(str(error)) from error
    if FLAGS.rows:
        parts = [(image_data.rows(x), y) for x, y in parts]
    height, width = parts[0][0].shape[1:3]
    rng = np.random.default_rng(0)
    order = sequential_pixels.permutation(rng, height * width)
    return [
        (sequential_pixels.generate(x, order if FLAGS.permute else None), y)
        for x, y in parts
    ]


def save(model, x, output):
    """Writes both formats, and checks that the SavedModel answers the same."""
    with files.replacing(output / "best_rin.keras", "The best RIN") as new:
        model.save(new)
    model.export(output / "saved_model", verbose=False)
    saved_model = tf.saved_model.load(output / "saved_model")
    answer = model.predict(x, verbose=0)
    error = np.abs(saved_model.serve(x) - answer).max() / np.abs(answer).max()
    if not error < 1e-4:
        raise RuntimeError(f"The SavedModel is off by {error:.0e}.")
    print(
        f"Best RIN: {output}/best_rin.keras and {output}/saved_model, which "
        f"answers the same to {error:.0e} of its largest answer."
    )


def main(argv):
    del argv
    logging.set_verbosity(logging.ERROR)
    output = outputs.prepare(FLAGS.output)
    splits = load_sequences()
    features, labels = splits[0][0].shape[-1], splits[2][1]
    metric = comparison.Metric(
        "accuracy",
        label="accuracy",
        mode="max",
        baseline=sequential_pixels.chance_accuracy(labels),
        baseline_label="most frequent class",
    )

    def build(layer):
        return build_model(layer, features, classes=int(labels.max()) + 1)

    runs = comparison.train_all(build, FLAGS.layers, splits, metric, output)
    comparison.report(runs, metric, output)
    rins = [run for run in runs if run.layer.startswith("RIN")]
    if rins:
        model = keras.models.load_model(metric.best(rins).model)
        save(model, splits[2][0][:64], output)


if __name__ == "__main__":
    app.run(main)
