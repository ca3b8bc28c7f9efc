"""Latency of one time step, with the state passed in and out.

    python -m benchmarks.streaming

Batch 1, one time step per call: the use of a model on a live signal.
Percentiles go to OUTPUT/results.json and table.md.
"""

import itertools
import time

import numpy as np
import tensorflow as tf
from absl import flags
from tqdm import tqdm

from benchmarks import contenders
from benchmarks import measuring
from experiments import results

FLAGS = flags.FLAGS

PERCENTILES = (50, 90, 99, 99.9)
SIZES = [(1, 32), (1, 100), (64, 256)]  # features, units
LAYERS = ["RIN", "SimpleRNN", "GRU", "LSTM"]


def streamed(name, features, units):
    """A compiled function (x, state) -> state."""
    layer = contenders.KERAS_LAYERS[name](units)
    layer.return_state = True
    layer.build((1, 1, features))
    states = layer.get_initial_state(1)

    @tf.function(jit_compile=True)
    def step(x, *states):
        return layer(x, initial_state=list(states))[1:]

    return step, states


def percentiles(name, features, units, steps):
    """{percentile: microseconds} of the time steps."""
    step, states = streamed(name, features, units)
    x = tf.constant(np.full((1, 1, features), 0.1, "float32"))
    states = step(x, *states)
    ticks = [time.perf_counter()]
    for _ in range(steps):
        states = step(x, *states)
        states[0].numpy()
        ticks.append(time.perf_counter())
    found = np.percentile(1e6 * np.diff(ticks), PERCENTILES)
    return dict(zip(map(str, PERCENTILES), found, strict=True))


def measure():
    steps = 3 if FLAGS.smoke else FLAGS.steps
    records = [
        {
            "layer": name,
            "features": features,
            "units": units,
            "microseconds": percentiles(name, features, units, steps),
        }
        for (features, units), name in tqdm(
            list(itertools.product(SIZES, LAYERS))
        )
    ]
    return {"steps": steps, "records": records}


def tables(record):
    header = ["layer", "features", "units"]
    header += [f"p{p}, µs" for p in PERCENTILES]
    rows = [
        [r["layer"], str(r["features"]), str(r["units"])]
        + [f"{value:.0f}" for value in r["microseconds"].values()]
        for r in record["records"]
    ]
    return {"table.md": results.markdown(header, rows)}


if __name__ == "__main__":
    flags.DEFINE_integer(
        "steps", 5_000, "Number of timed time steps.", lower_bound=1
    )
    measuring.main(__file__, measure, tables)
