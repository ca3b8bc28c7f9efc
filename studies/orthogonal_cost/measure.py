"""What does the orthogonality constraint on a recurrent matrix cost?

Training steps of SimpleRNN and RIN with and without the constraint take turns
in one process, beside the singular value decomposition that the constraint
avoids. Cells have medians and their ratio; ratios below 1 are noise.
"""

import statistics

import keras
import numpy as np
from tqdm import tqdm

from engine import record
from engine import steps
from engine import timing
from keras_rin.constraints import Orthogonal
from keras_rin.layers import RIN

NAMES = "SimpleRNN", "RIN"
SIZES = [(32, 200, 1, units) for units in (32, 100, 256, 512)]


def training_step(layer, size):
    model = keras.Sequential([layer])
    model.compile(keras.optimizers.Adam(1e-3), "mse")
    x, y = steps.data(size)
    return lambda: model.train_on_batch(x, y)


def all_steps(size):
    units = size[-1]
    kernel = np.random.default_rng(0).normal(size=(units, units))
    layers = {
        "SimpleRNN": keras.layers.SimpleRNN(units),
        "SimpleRNN, constrained": keras.layers.SimpleRNN(
            units, recurrent_constraint=Orthogonal()
        ),
        "RIN": RIN(units),
        "RIN, constrained": RIN(
            units, recurrent_constraint=Orthogonal(offset=True)
        ),
    }
    return {
        **{name: training_step(layer, size) for name, layer in layers.items()},
        "SVD alone": lambda: np.linalg.svd(kernel.astype("float32")),
    }


def measure(sizes=SIZES, repeats=15):
    records = []
    for size in tqdm(sizes):
        functions = all_steps(size)
        timing.in_turns(functions, 2)  # compiles
        times = timing.in_turns(functions, repeats)
        records.append({"size": size, "ms": times})
    return {"records": records}


def tables(results):
    rows = []
    for run in results["records"]:
        ms = {name: statistics.median(t) for name, t in run["ms"].items()}
        cells = [
            f"{ms[f'{name}, constrained']:.3g} / {ms[name]:.3g} = "
            f"{ms[f'{name}, constrained'] / ms[name]:.2f}"
            for name in NAMES
        ]
        size = steps.size_cell(run["size"])
        rows.append([size, *cells, f"{ms['SVD alone']:.3g}"])
    header = [
        steps.SIZE,
        *(f"{name}, constrained / free, ms" for name in NAMES),
    ]
    return {"Training step": record.markdown([*header, "SVD, ms"], rows)}


SMALLEST = {"sizes": [(2, 5, 1, 3)], "repeats": 2}
