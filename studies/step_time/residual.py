"""How long does a step of ResidualRNN take, next to a RIN of as many weights?

A ResidualRNN has as many inner units as units, two matrix products a step and a
penalty; the RIN has the number of units that brings it nearest to its number of
weights. The layers of a size take turns in one process, with Keras's default
`compile`. A cell has the median in milliseconds, and the first and third
quartile in brackets.
"""

import math
import statistics

import keras
from step_time import layers

from engine import record
from engine import steps
from engine import timing
from engine.measurement import Variant
from engine.measurement import groups
from keras_rin.layers import RIN
from keras_rin.layers import ResidualRNN

# batch, time, features, units
SIZES = [(32, 784, 1, 100), (50, 200, 2, 16), (128, 200, 64, 256)]
LAYERS = {
    "ResidualRNN": lambda features, units: ResidualRNN(units, units),
    "ResidualRNN, recompute": lambda features, units: ResidualRNN(
        units, units, recompute=True
    ),
    "RIN": lambda features, units: RIN(as_large(features, units)),
}


def as_large(features, units):
    """The units of a RIN with about as many weights as a ResidualRNN."""
    weights = units * (features + 2 * units + 1)
    half = (features + 1) / 2
    return round(math.sqrt(half**2 + weights) - half)


def measure(sizes=SIZES, repeats=15):
    records = []
    for size in sizes:
        for mode in ("training", "prediction"):
            functions = {name: step(name, size, mode) for name in LAYERS}
            for function in [*functions.values()] * 2:
                function()  # traces and compiles
            times = timing.in_turns(functions, repeats)
            records += [
                {"contender": n, "size": size, "mode": mode, "ms": times[n]}
                for n in times
            ]
    return {"records": records}


def step(name, size, mode):
    _, time, features, units = size
    layer = LAYERS[name](features, units)
    model = keras.Sequential([keras.Input((time, features)), layer])
    model.compile(keras.optimizers.SGD(1e-6), "mse")
    x, _ = steps.data(size)
    y = keras.ops.convert_to_numpy(model(x[:, :1])) * 0
    if mode == "training":
        return lambda: model.train_on_batch(x, y)
    return lambda: model.predict_on_batch(x)


def tables(results):
    captions = {}
    for mode, runs in groups(results["records"], "mode").items():
        times = steps.by_size(runs, "ms").T
        table = times.map(layers.cell)
        medians = times.map(statistics.median)
        ratio = medians.loc["ResidualRNN"] / medians.loc["RIN"]
        table.loc["ResidualRNN / RIN"] = list(map("{:.2f}".format, ratio))
        header = [steps.SIZE, *table]
        caption = f"Time of a {mode} step, ms"
        captions[caption] = record.markdown(header, table.itertuples())
    return captions


VARIANTS = {
    "": Variant("TensorFlow"),
    "jax": Variant("JAX", backend="jax"),
}
SMALLEST = {"sizes": [(2, 5, 1, 3)], "repeats": 3}
