"""Does a chain help LSTM and GRU? Starts side by side, on copying or on text.

    python examples/gated_chains.py
    python examples/gated_chains.py --task=text --data_dir=DIR
    python examples/gated_chains.py --task=text --text_file=FILE

Trains each layer, prints one table, and draws the learning curves above the
line of an answer that knows nothing. The text is tiny Shakespeare through
TFDS, or any file; its tenths before last and last validate and test.
"""

import comparison
import keras
import numpy as np
import outputs
import text_data
from absl import app
from absl import flags
from absl import logging
from starts import GATED

from keras_rin.tasks import copying

KERNELS = {"LSTM": keras.layers.LSTM, "GRU": keras.layers.GRU}

FLAGS = flags.FLAGS


def build_model(layer, features, classes):
    make = KERNELS[layer.split()[0]]
    model = keras.Sequential(
        [
            keras.Input((None, features)),
            make(FLAGS.units, return_sequences=True, **GATED[layer]),
            keras.layers.Dense(classes),
        ]
    )
    model.compile(
        keras.optimizers.Adam(FLAGS.learning_rate, clipnorm=1.0),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    )
    return model


def copying_splits():
    rng = np.random.default_rng(0)
    splits = [
        copying.generate(rng, samples, FLAGS.length, FLAGS.copied)
        for samples in (FLAGS.samples, 1_000, 1_000)
    ]
    return splits, copying.baseline_loss(FLAGS.length, FLAGS.copied)


def text_splits():
    try:
        text = text_data.read(FLAGS.text_file, FLAGS.data_dir)
    except FileNotFoundError as error:
        raise app.UsageError(str(error)) from error
    return text_data.splits(text, FLAGS.length)


def main(argv):
    del argv
    logging.set_verbosity(logging.ERROR)
    output = outputs.prepare(FLAGS.output)
    splits, baseline = {"copying": copying_splits, "text": text_splits}[
        FLAGS.task
    ]()
    features = splits[0][0].shape[-1]
    classes = int(max(y.max() for _, y in splits)) + 1
    metric = comparison.Metric(
        "loss",
        label="cross-entropy (nats a step)",
        mode="min",
        baseline=baseline,
        baseline_label="knows nothing",
    )
    runs = comparison.train_all(
        lambda layer: build_model(layer, features, classes),
        FLAGS.layers,
        splits,
        metric,
        output,
    )
    comparison.report(runs, metric, output)


if __name__ == "__main__":
    flags.DEFINE_string("output", "runs/gated_chains", "Where to write.")
    flags.DEFINE_enum("task", "copying", ["copying", "text"], "What to learn.")
    flags.DEFINE_integer("length", 40, "Steps of a sequence.", lower_bound=11)
    flags.DEFINE_integer("copied", 5, "Symbols to copy.", lower_bound=1)
    flags.DEFINE_integer(
        "samples", 5_000, "To copy, in training.", lower_bound=1
    )
    flags.DEFINE_string("text_file", None, "A text in UTF-8 to learn instead.")
    flags.DEFINE_string("data_dir", None, "Where TFDS finds prepared data.")
    flags.DEFINE_multi_enum("layers", list(GATED), list(GATED), "To compare.")
    app.run(main)
