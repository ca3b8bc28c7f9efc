"""Adds up the two marked numbers of a sequence: RIN beside its relatives.

    python examples/adding_problem.py
    python examples/adding_problem.py --length=400 --adapt --learning_rate=3e-4

Trains each layer, prints one table, and draws the learning curves above the
line of an answer that knows nothing: always 1, with the loss 1/6.
"""

import comparison
import keras
import numpy as np
import outputs
from absl import app
from absl import flags
from absl import logging

import keras_rin
from keras_rin.initializers import ChainIdentity
from keras_rin.layers import RIN
from keras_rin.tasks import adding

LAYERS = {
    "RIN": lambda units: RIN(units),
    "RIN chain": lambda units: RIN(
        units, recurrent_initializer=ChainIdentity(1, -1)
    ),
    "IRNN": lambda units: keras.layers.SimpleRNN(
        units, "relu", recurrent_initializer="identity"
    ),
    "SimpleRNN": lambda units: keras.layers.SimpleRNN(units),
    "LSTM": lambda units: keras.layers.LSTM(units),
}

METRIC = comparison.Metric(
    "loss", "mean squared error", "min", adding.baseline_loss(), "always 1"
)

FLAGS = flags.FLAGS


def build_model(recurrent):
    model = keras.Sequential(
        [keras.Input((None, 2)), recurrent, keras.layers.Dense(1)]
    )
    optimizer = keras.optimizers.Adam(FLAGS.learning_rate, clipnorm=1.0)
    model.compile(optimizer, "mse")
    return model


def splits(length, samples):
    """Sequences to train, validate and test on."""
    rng = np.random.default_rng(0)
    return [adding.generate(rng, n, length) for n in (samples, 1_000, 1_000)]


def main(argv):
    del argv
    logging.set_verbosity(logging.ERROR)
    output = outputs.prepare(FLAGS.output)
    parts = splits(FLAGS.length, FLAGS.samples)

    def build(layer):
        model = build_model(LAYERS[layer](FLAGS.units))
        if FLAGS.adapt and layer != "LSTM":  # its gates bound what it adds up
            keras_rin.adapt(model, parts[0][0])
        return model

    runs = comparison.train_all(build, FLAGS.layers, parts, METRIC, output)
    comparison.report(runs, METRIC, output)


if __name__ == "__main__":
    flags.DEFINE_string("output", "runs/adding_problem", "Where to write.")
    flags.DEFINE_integer("length", 100, "Steps of a sequence.", lower_bound=2)
    flags.DEFINE_integer("samples", 5_000, "To train on.", lower_bound=1)
    flags.DEFINE_bool("adapt", False, "Center the inputs of each layer first.")
    flags.DEFINE_multi_enum("layers", list(LAYERS), list(LAYERS), "To compare.")
    app.run(main)
