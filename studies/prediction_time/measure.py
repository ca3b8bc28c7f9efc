"""How much faster does XLA make a prediction of one sequence?

A call of `predict_on_batch` with one sequence, of a model that is compiled
with `jit_compile=False` and with `True`; layers of 50 units, 2 features. The
calls take turns, and the first of each, which compiles, is left out. The ratio
is that of the medians.
"""

import itertools
import statistics

import keras
import numpy as np
from tqdm import tqdm

from engine import record
from engine import steps
from engine import timing

LAYERS = ("RIN", "SimpleRNN", "GRU", "LSTM")
LENGTHS = (100, 1_000)


def measure(layers=LAYERS, lengths=LENGTHS, units=50, repeats=200):
    cases = tqdm(list(itertools.product(layers, lengths)))
    return {"calls": [measure_case(*case, units, repeats) for case in cases]}


def measure_case(layer, length, units, repeats):
    x = np.random.default_rng(0).normal(size=(1, length, 2))
    calls = {
        name: predictor(layer, x.astype("float32"), units, jit)
        for name, jit in (("without XLA", False), ("with XLA", True))
    }
    times = timing.in_turns(calls, repeats)
    rounded = {name: np.round(ms, 2).tolist() for name, ms in times.items()}
    return {"layer": layer, "steps": length, **rounded}


def predictor(layer, x, units, jit_compile):
    layer = steps.LAYERS[layer](units)
    model = keras.Sequential([keras.Input((None, 2)), layer])
    model.compile(jit_compile=jit_compile)
    model.predict_on_batch(x)
    return lambda: model.predict_on_batch(x)


def tables(results):
    names = ("without XLA", "with XLA")
    rows = []
    for call in results["calls"]:
        without, compiled = (statistics.median(call[name]) for name in names)
        numbers = [f"{without:.2g}", f"{compiled:.2g}"]
        ratio = f"{without / compiled:.2g}"
        rows.append([call["layer"], f"{call['steps']:,}", *numbers, ratio])
    header = ["layer", "time steps", *(f"{name}, ms" for name in names)]
    table = record.markdown([*header, "ratio"], rows)
    return {"Time of a call (median)": table}


SMALLEST = {"layers": ("RIN",), "lengths": (2,), "units": 1, "repeats": 3}
