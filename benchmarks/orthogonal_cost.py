"""Cost of the orthogonality constraint on a recurrent matrix.

    python -m benchmarks.orthogonal_cost

Training steps of SimpleRNN and RIN with and without the constraint take turns
in one process, next to the singular value decomposition that the constraint
avoids. Medians and ratios go to OUTPUT.
"""

import statistics

import keras
import numpy as np
from absl import flags
from tqdm import tqdm

from benchmarks import contenders
from benchmarks import measuring
from experiments import results
from keras_rin.constraints import Orthogonal
from keras_rin.layers import RIN

FLAGS = flags.FLAGS


def stepper(layer, size):
    model = keras.Sequential([layer])
    model.compile(keras.optimizers.Adam(1e-3), "mse")
    x, y = contenders.data(size)
    return lambda: model.train_on_batch(x, y)


def steps(size):
    units = size[-1]
    kernel = np.random.default_rng(0).normal(size=(units, units))
    return {
        "SimpleRNN": stepper(keras.layers.SimpleRNN(units), size),
        "SimpleRNN, constrained": stepper(
            keras.layers.SimpleRNN(units, recurrent_constraint=Orthogonal()),
            size,
        ),
        "RIN": stepper(RIN(units), size),
        "RIN, constrained": stepper(
            RIN(units, recurrent_constraint=Orthogonal(offset=True)), size
        ),
        "SVD alone": lambda: np.linalg.svd(kernel.astype("float32")),
    }


def measure():
    sizes = [(32, 200, 1, units) for units in (32, 100, 256, 512)]
    records = []
    for size in tqdm([(2, 5, 1, 3)] if FLAGS.smoke else sizes):
        found = steps(size)
        measuring.in_turns(found, 2)  # compiles
        times = measuring.in_turns(found, 2 if FLAGS.smoke else 15)
        records.append({"size": size, "ms": times})
    return {"records": records}


def tables(record):
    rows = []
    for one in record["records"]:
        ms = {name: statistics.median(t) for name, t in one["ms"].items()}
        cells = [
            f"{ms[f'{name}, constrained']:.3g} / {ms[name]:.3g} = "
            f"{ms[f'{name}, constrained'] / ms[name]:.2f}"
            for name in ("SimpleRNN", "RIN")
        ]
        rows.append(
            [contenders.shape(one["size"]), *cells, f"{ms['SVD alone']:.3g}"]
        )
    header = [
        contenders.SHAPE,
        "SimpleRNN, constrained / free, ms",
        "RIN, constrained / free, ms",
        "SVD, ms",
    ]
    return {"table.md": results.markdown(header, rows)}


if __name__ == "__main__":
    measuring.main(__file__, measure, tables)
