"""Time of the diagnostics at 512 units, and of the diagnostics callback.

    python -m benchmarks.diagnostics_cost

The seconds of each diagnostic, measured several times, and the share of the
training time that the callback takes with its default budget go to
OUTPUT/results.json, and from there into tables.
"""

import statistics
import time

import keras
import numpy as np
from absl import app
from absl import flags
from absl import logging
from tqdm import tqdm

from benchmarks import contenders
from experiments import results
from keras_rin import diagnostics
from keras_rin.callbacks import RecurrentDiagnostics
from keras_rin.initializers import Chain
from keras_rin.layers import RIN

FLAGS = flags.FLAGS


def analyses(units):
    """Each diagnostic as a function without arguments."""
    chain = np.asarray(Chain(1.02)((units, units)), "float64")
    layers = {
        "SimpleRNN": keras.layers.SimpleRNN(units),
        "LSTM": keras.layers.LSTM(units),
    }
    for layer in layers.values():
        layer.build((None, None, 1))
    x = np.random.default_rng(0).normal(size=(4, 100, 1))
    found = {
        "fisher_memory_curve": lambda: diagnostics.fisher_memory_curve(chain),
        "total_memory": lambda: diagnostics.total_memory(chain),
        "optimal_input_vector": lambda: diagnostics.optimal_input_vector(chain),
        "henrici_departure": lambda: diagnostics.henrici_departure(chain),
        "numerical_radius": lambda: diagnostics.numerical_radius(chain),
    }
    for name, layer in layers.items():
        found[f"hidden_chain, {name}"] = lambda layer=layer: (
            diagnostics.hidden_chain(layer)
        )
        found[f"gradient_horizon, {name}, 100 steps"] = lambda layer=layer: (
            diagnostics.gradient_horizon(layer, x)
        )
    return found


def seconds(function):
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def callback_share(units, epochs, gradient):
    """The callback's share of `fit` on data like digits, by its own count."""
    x, y = contenders.data((1437, 64, 1, units))
    model = keras.Sequential([RIN(units)])
    model.compile("adam", "mse")
    callback = RecurrentDiagnostics(x[:4] if gradient else None)
    start = time.perf_counter()
    model.fit(x, y, epochs=epochs, verbose=0, callbacks=[callback])
    return callback.seconds / (time.perf_counter() - start)


def tables(record):
    rows = [
        [
            name,
            f"{statistics.median(times):.2g}",
            f"{min(times):.2g} to {max(times):.2g}",
        ]
        for name, times in record["seconds"].items()
    ]
    header = [f"diagnostic, {record['units']} units", "median, s", "range, s"]
    shares = [
        [name, *(f"{100 * share:.1f} %" for share in by_epochs.values())]
        for name, by_epochs in record["shares"].items()
    ]
    table = results.markdown(header, rows)
    (by_epochs, *_) = record["shares"].values()
    header = ["share of training time", *(f"{n} epochs" for n in by_epochs)]
    return {
        "table.md": table,
        "callback.md": results.markdown(header, shares),
    }


def main(argv):
    del argv
    logging.set_verbosity(logging.ERROR)
    output = results.prepare(FLAGS.output)
    units, repeats = (8, 1) if FLAGS.smoke else (512, 3)
    found = analyses(units)
    record = {
        "tables": "benchmarks.diagnostics_cost",
        "units": units,
        "seconds": {
            name: [seconds(function) for _ in range(repeats)]
            for name, function in tqdm(found.items())
        },
        "shares": {
            name: {
                epochs: callback_share(8 if FLAGS.smoke else 100, epochs, x)
                for epochs in ((2,) if FLAGS.smoke else (10, 100))
            }
            for name, x in (("default", False), ("with `x`", True))
        },
    }
    results.write(output, record, tables)


if __name__ == "__main__":
    flags.DEFINE_string("output", "docs/results/diagnostics_cost", "Results.")
    flags.DEFINE_bool("smoke", False, "Check with few units.")
    app.run(main)
