"""How long does a step of ResidualRNN take, next to a RIN of as many weights?

A ResidualRNN has as many inner units as units, two matrix products a step and a
penalty; the RIN has the number of units that brings it nearest to its number of
weights. The layers of a size take turns in one process, with Keras's default
`compile`. A cell has the median in milliseconds, and the first and third
quartile in brackets.
"""

import functools
import math
import statistics

from step_time import layers

from engine import record
from engine import steps
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
        makers = {
            name: steps.keras_layer(functools.partial(layer, size[2]))
            for name, layer in LAYERS.items()
        }
        for mode in ("training", "prediction"):
            records += layers.timed(makers, size, mode, repeats)
    return {"records": records}


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
