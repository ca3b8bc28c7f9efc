"""How large is a streaming model, and how long does one of its steps take?

Layers are exported as LiteRT files, with float32 and with int8 weights, and as
a SavedModel. A call is one time step at batch 1 from Python, with the hidden
states passed in and out: the use of a model on a live signal. In the last two
rows GRU and LSTM have about as many parameters as a RIN of 100 units.
"""

import keras
import numpy as np
from tqdm import tqdm

from engine import exported
from engine import record
from engine import steps
from keras_rin.export import export_litert
from keras_rin.export import export_saved_model

PERCENTILES = (50, 90, 99, 99.9)
LAYERS = [
    (name, features, units)
    for features, units in [(1, 32), (1, 100), (64, 256)]
    for name in ("RIN", "SimpleRNN", "GRU", "LSTM")
] + [("GRU", 1, 57), ("LSTM", 1, 50)]
INT8 = {"arithmetic": "int8"}
FORMATS = {  # the export, its options, and the function that loads the file
    "float32.tflite": (export_litert, {}, exported.litert_step),
    "int8.tflite": (export_litert, INT8, exported.litert_step),
    "saved_model": (export_saved_model, {}, exported.saved_model_step),
}


def measure_layer(name, features, units, calls):
    layer = steps.LAYERS[name](units)
    model = keras.Sequential([keras.Input((None, features)), layer])
    results = {"layer": name, "features": features, "units": units}
    results["parameters"] = model.count_params()
    x = np.full((calls, features), 0.1, "float32")
    for file, (export, options, load) in FORMATS.items():
        with exported.streaming_file(model, file, export, **options) as path:
            size, step = exported.file_bytes(path), load(path)
            _, microseconds = exported.stream(*step, x)
        percentiles = np.percentile(microseconds, PERCENTILES)
        times = dict(zip(map(str, PERCENTILES), percentiles, strict=True))
        results[file] = {"microseconds": times, "bytes": size}
    return results


def measure(layers=LAYERS, calls=5_000):
    records = [measure_layer(*layer, calls) for layer in tqdm(layers)]
    return {"steps": calls, "records": records}


def tables(results):
    header = ["layer", "features", "units", "parameters"]
    header += ["kB", "p50, µs", "p99, µs"]
    header += ["int8: kB", "p50, µs", "p99, µs", "SavedModel: p50, µs"]
    rows = [
        [run["layer"], str(run["features"]), str(run["units"])]
        + [f"{run['parameters']:,}"]
        + [*cells(run["float32.tflite"]), *cells(run["int8.tflite"])]
        + [f"{run['saved_model']['microseconds']['50']:.0f}"]
        for run in results["records"]
    ]
    caption = f"Size, and time of a call ({results['steps']:,} calls)"
    return {caption: record.markdown(header, rows)}


def cells(litert):
    """Size, median and 99th percentile of the time of a LiteRT file."""
    times = litert["microseconds"]
    times = [f"{times[p]:.1f}" for p in ("50", "99")]
    return [f"{litert['bytes'] / 1000:.0f}", *times]


SMALLEST = {"layers": LAYERS[:1], "calls": 3}
