"""How long does a prediction take, on TensorFlow and on JAX?

Keras's default `compile` on each backend. A prediction is a call of
`predict_on_batch`, a training step one of `train_on_batch`. Each backend has a
process of its own, and the two take turns, so that one waits while the other
is timed. A cell has the median in milliseconds, and the first and third
quartile in brackets; the last row is the ratio of the medians of RIN.
"""

import concurrent.futures
import functools
import multiprocessing
import os
import statistics
from unittest import mock

from step_time import layers
from tqdm import tqdm

from engine import record
from engine import steps
from engine import timing

# batch, time, features, units
SIZES = [(32, 784, 1, 100), (1, 20_000, 1, 64), (128, 200, 64, 256)]
CASES = {
    "RIN, TensorFlow": ("tensorflow", "RIN", False),
    "RIN, JAX": ("jax", "RIN", False),
    "RIN, training step, TensorFlow": ("tensorflow", "RIN", True),
    "RIN, training step, JAX": ("jax", "RIN", True),
    "SimpleRNN, TensorFlow": ("tensorflow", "SimpleRNN", False),
    "SimpleRNN, JAX": ("jax", "SimpleRNN", False),
}
RATIO = "RIN, TensorFlow over JAX"
STEPS = {}  # of this process


def measure(sizes=SIZES, repeats=15):
    records = []
    processes = {name: start(name) for name in ("tensorflow", "jax")}
    for size in tqdm(sizes):
        calls = {
            name: functools.partial(
                processes[backend].submit, milliseconds, size, *model
            )
            for name, (backend, *model) in CASES.items()
        }
        for call in [*calls.values()] * 2:
            call().result()  # traces and compiles
        times = {name: [] for name in calls}
        for name, call in [*calls.items()] * repeats:
            times[name].append(call().result())
        records += [
            {"contender": name, "size": size, "ms": times[name]}
            for name in times
        ]
    for process in processes.values():
        process.shutdown()
    return {"records": records}


def start(backend):
    """A process in which Keras has this backend."""
    spawn = multiprocessing.get_context("spawn")
    process = concurrent.futures.ProcessPoolExecutor(1, spawn)
    with mock.patch.dict(os.environ, KERAS_BACKEND=backend):
        process.submit(os.getpid).result()
    return process


def milliseconds(size, name, training):
    key = size, name, training
    if key not in STEPS:
        STEPS[key] = steps.keras_layer(steps.LAYERS[name])(size, training)
    return timing.milliseconds(STEPS[key])


def tables(results):
    times = steps.by_size(results["records"], "ms").T
    table = times.map(layers.cell)
    tensorflow, jax, *_ = times.map(statistics.median).to_numpy()
    table.loc[RATIO] = list(map("{:.2f}".format, tensorflow / jax))
    header = [steps.SIZE, *table]
    return {"Time, ms": record.markdown(header, table.itertuples())}


SMALLEST = {"sizes": [(2, 5, 1, 3)], "repeats": 3}
