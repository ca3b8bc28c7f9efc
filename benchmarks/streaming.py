"""Size of a streaming model, and the time that one of its steps takes.

    python -m benchmarks.streaming

Exports layers as LiteRT files, with float32 and with int8 weights, and as a
SavedModel, and calls each for one time step at batch 1, with the hidden states
passed in and out: the use of a model on a live signal. Sizes and percentiles
of the time go to OUTPUT/results.json and table.md.
"""

import pathlib
import tempfile
import time

import keras
import numpy as np
import tensorflow as tf
from absl import flags
from ai_edge_litert.interpreter import Interpreter
from tqdm import tqdm

from benchmarks import contenders
from benchmarks import exports
from benchmarks import measuring
from experiments import results
from keras_rin.export import export_streaming
from keras_rin.export import streaming_step

FLAGS = flags.FLAGS

PERCENTILES = (50, 90, 99, 99.9)
SIZES = [(1, 32), (1, 100), (64, 256)]  # features, units
LAYERS = ["RIN", "SimpleRNN", "GRU", "LSTM"]
# With as many parameters as a RIN of 100 units, about 10,000.
AS_LARGE = [("GRU", 1, 57), ("LSTM", 1, 50)]


def of_litert(path):
    step = Interpreter(str(path)).get_signature_runner("step")
    return lambda inputs: step(**inputs)


def of_saved_model(path):
    served = tf.saved_model.load(path)

    def step(inputs):
        answers = dict(served.step(inputs))
        answers["y"].numpy()
        return answers

    return step


FORMATS = {  # how to export, and how to call
    "float32.tflite": ({"format": "litert"}, of_litert),
    "int8.tflite": ({"format": "litert", **exports.SMALLER}, of_litert),
    "saved_model": ({}, of_saved_model),
}


def microseconds(step, inputs, steps):
    """{percentile: microseconds} of the time steps."""
    times = []
    for _ in range(steps):
        begin = time.perf_counter()
        state = step(inputs)
        times.append(1e6 * (time.perf_counter() - begin))
        state.pop("y")
        inputs |= state
    found = np.percentile(times, PERCENTILES)
    return dict(zip(map(str, PERCENTILES), found, strict=True))


def measured(name, features, units, steps):
    model = keras.Sequential(
        [keras.Input((None, features)), contenders.KERAS_LAYERS[name](units)]
    )
    inputs = exports.at_rest(streaming_step(model), 1)
    inputs["x"] += 0.1
    record = {"layer": name, "features": features, "units": units}
    record["parameters"] = model.count_params()
    with tempfile.TemporaryDirectory() as folder:
        for file, (options, load) in FORMATS.items():
            path = pathlib.Path(folder) / file
            export_streaming(model, path, verbose=False, **options)
            found = microseconds(load(path), {**inputs}, steps)
            record[file] = {"microseconds": found, "bytes": exports.size(path)}
    return record


def measure():
    asked = [(name, *size) for size in SIZES for name in LAYERS] + AS_LARGE
    if FLAGS.smoke:
        asked = asked[:1]
    steps = 3 if FLAGS.smoke else FLAGS.steps
    records = [measured(*one, steps) for one in tqdm(asked)]
    return {"steps": steps, "records": records}


def tables(record):
    header = ["layer", "features", "units", "parameters"]
    header += ["kB", "p50, µs", "p99, µs"]
    header += ["int8: kB", "p50, µs", "p99, µs", "SavedModel: p50, µs"]
    rows = [
        [r["layer"], str(r["features"]), str(r["units"])]
        + [f"{r['parameters']:,}"]
        + [*_cells(r["float32.tflite"]), *_cells(r["int8.tflite"])]
        + [f"{r['saved_model']['microseconds']['50']:.0f}"]
        for r in record["records"]
    ]
    return {"table.md": results.markdown(header, rows)}


def _cells(litert):
    """Size, median and 99th percentile of the time of a LiteRT file."""
    times = litert["microseconds"]
    times = [f"{times[p]:.1f}" for p in ("50", "99")]
    return [f"{litert['bytes'] / 1000:.0f}", *times]


if __name__ == "__main__":
    flags.DEFINE_integer(
        "steps", 5_000, "Number of timed time steps.", lower_bound=1
    )
    measuring.main(__file__, measure, tables)
