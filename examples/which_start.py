"""Which start for which length of memory? The adding problem at several.

    python examples/which_start.py
    python examples/which_start.py --length=400 --seed=0 --seed=1

A RIN learns to add up two marked numbers from each start of its recurrence, at
each length, and for LSTM and GRU from Keras's own. One table of the error on
test data, and how many networks got below half of that of knowing nothing.
"""

import dataclasses
import statistics

import comparison
import keras
import numpy as np
import outputs
from absl import app
from absl import flags
from absl import logging
from starts import STARTS

from keras_rin.layers import RIN
from keras_rin.tasks import adding

LAYERS = {
    **{
        name: lambda units, start=start: RIN(
            units, recurrent_initializer=start()
        )
        for name, start in STARTS.items()
    },
    "LSTM": keras.layers.LSTM,
    "GRU": keras.layers.GRU,
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


def run_length(length, output):
    folder = outputs.prepare(output / f"length-{length}")
    runs = comparison.train_all(
        lambda layer: build_model(LAYERS[layer](FLAGS.units)),
        FLAGS.layers,
        splits(length, FLAGS.samples),
        METRIC,
        folder,
    )
    return [{"length": length, **dataclasses.asdict(run)} for run in runs]


def tables(record):
    """Starts against lengths: median error, range, and how many learned."""
    lengths = sorted({run["length"] for run in record["runs"]})
    names = list(dict.fromkeys(run["layer"] for run in record["runs"]))
    rows = [[name] for name in names]
    for row in rows:
        for length in lengths:
            scores = [
                run["score"]
                for run in record["runs"]
                if (run["layer"], run["length"]) == (row[0], length)
            ]
            row.append(_cell(scores))
    rows.append(
        [
            "constant predictor",
            *[f"{adding.baseline_loss():.3g}"] * len(lengths),
        ]
    )
    header = ["initialization", *(f"{length} steps" for length in lengths)]
    return {"table.md": outputs.markdown(header, rows)}


def _cell(scores):
    if not scores:
        return ""
    learned = sum(score < adding.baseline_loss() / 2 for score in scores)
    middle, low, high = statistics.median(scores), min(scores), max(scores)
    spread = f"{middle:.2g} ({low:.2g} to {high:.2g})"
    return f"{spread}, {learned} of {len(scores)}"


def main(argv):
    del argv
    logging.set_verbosity(logging.ERROR)
    output = outputs.prepare(FLAGS.output)
    runs = []
    for length in FLAGS.length:
        runs += run_length(length, output)
        record = {"tables": "which_start", "runs": runs}
        outputs.write(output, record, tables)


if __name__ == "__main__":
    flags.DEFINE_string("output", "runs/which_start", "Where to write.")
    flags.DEFINE_multi_integer("length", [50, 100, 200], "Steps of a sequence.")
    flags.DEFINE_integer("samples", 5_000, "To train on.", lower_bound=1)
    flags.DEFINE_multi_enum("layers", list(LAYERS), list(LAYERS), "To compare.")
    app.run(main)
