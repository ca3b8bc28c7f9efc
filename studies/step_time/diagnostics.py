"""What do diagnostics of long sequences need?

Each runs once, in a process of its own, on a RIN of 50 units and 4 sequences,
after a call on 100 time steps. `fixed_points` starts from one in a hundred of
the states; its cost depends on their number alone. None has a cost that grows
with the square of the number of time steps.
"""

import itertools
import time

import numpy as np
from tqdm import tqdm

from engine import record
from engine import timing
from keras_rin import diagnostics
from keras_rin.initializers import Offset
from keras_rin.layers import RIN

BATCH, UNITS = 4, 50
LENGTHS = 3000, 30_000


def fixed_points(layer, x):
    states = diagnostics.state_trajectories(layer, x)
    return diagnostics.fixed_points(layer, states[:, ::100].reshape(-1, UNITS))


FUNCTIONS = {
    "state_trajectories": diagnostics.state_trajectories,
    "gradient_norms": diagnostics.gradient_norms,
    "lyapunov_spectrum": diagnostics.lyapunov_spectrum,
    "fixed_points": fixed_points,
}


def cost(name, length):
    """Seconds, and MiB at most above the memory in use before."""
    layer = RIN(UNITS, "tanh", recurrent_initializer=Offset("orthogonal"))
    layer.build((None, None, 1))
    x = np.random.default_rng(0).normal(size=(BATCH, length, 1))
    FUNCTIONS[name](layer, x[:, :100])
    seconds = []

    def call():
        start = time.perf_counter()
        FUNCTIONS[name](layer, x)
        seconds.append(time.perf_counter() - start)

    mib = timing.peak_growth(call)
    return {"seconds": seconds[0], "mib": mib}


def measure(lengths=LENGTHS):
    cases = list(itertools.product(FUNCTIONS, lengths))
    records = [
        {"name": name, "length": length}
        | timing.in_new_process(cost, name, length)
        for name, length in tqdm(cases)
    ]
    return {"records": records}


def tables(results):
    rows = [
        [run["name"], f"{run['length']:,}"]
        + [f"{run['seconds']:.3g}", f"{run['mib']:.0f}"]
        for run in results["records"]
    ]
    header = ["function", "time steps", "s", "MiB"]
    return {"Time and memory": record.markdown(header, rows)}


SMALLEST = {"lengths": [200]}
