"""How long do the diagnostics take?

Each diagnostic is called several times, a matrix being that of a chain; the
networks whose fixed points are searched learned the flip-flop task. A
callback's share is the part of the time of `fit` that it takes by its own
count.
"""

import functools
import itertools
import statistics

import keras
import numpy as np
from tqdm import tqdm

from engine import record
from engine import steps
from engine import timing
from engine.measurement import Variant
from engine.measurement import example
from engine.models import LAYERS
from keras_rin import diagnostics
from keras_rin.callbacks import RecurrentDiagnostics
from keras_rin.initializers import Chain
from keras_rin.layers import RIN

OF_MATRICES = (
    "fisher_memory_curve total_memory optimal_input_vector henrici_departure "
    "numerical_radius spectral_radius transient_amplification"
).split()
CALLBACKS = {
    "default": lambda x: {},
    "with `x`": lambda x: {"x": x},
    "with `x` and `lyapunov`": lambda x: {"x": x, "lyapunov": True},
}


def call(name, *arguments, **options):
    return functools.partial(getattr(diagnostics, name), *arguments, **options)


def of_matrices(units):
    """Yields the name of a diagnostic and a call of it."""
    chain = np.asarray(Chain(1.02)((units, units)), "float64")
    for name in OF_MATRICES:
        yield name, call(name, chain)


def of_layers(units):
    """The same of layers, on 4 sequences of 100 time steps."""
    x = inputs(4, 100)
    for name in ("SimpleRNN", "LSTM"):
        layer = built(name, units)
        norms = call("gradient_norms", layer, x)
        yield f"hidden_chain, {name}", call("hidden_chain", layer)
        yield f"gradient_norms, {name}, 100 steps", norms


def of_dynamics(
    units, names=LAYERS, batch=16, steps=784, searches=1000, wide=256, long=2000
):
    """The same of dynamics, for states of the size in the name."""
    x, sequence = inputs(batch, steps), inputs(1, long)
    for name in names:
        size, layer = f"{name}, {units} units", built(name, units)
        jacobians = call("state_jacobians", layer, x)
        yield f"Jacobians, {size}, {batch} x {steps} steps", jacobians
        if name != "SimpleRNN":
            search = call("fixed_points", *trained(name, units, searches))
            yield f"fixed points, {size}, {searches} searches", search
        counts = {"largest": 1, "all": None}
        if name == "LSTM":  # has two states for each unit
            counts[f"{wide} largest"] = wide
        size, layer = f"{name}, {wide} units", built(name, wide)
        for which, count in counts.items():
            yield (
                f"{which} Lyapunov exponents, {size}, {long} steps",
                call("lyapunov_spectrum", layer, sequence, exponents=count),
            )


def inputs(batch, steps):
    return np.random.default_rng(0).normal(size=(batch, steps, 1))


def built(name, units):
    layer = LAYERS[name](units)
    layer.build((None, None, 1))
    return layer


def trained(name, units, searches):
    """A trained layer, and states near its trajectories."""
    options = {"activation": "tanh"} if name == "RIN" else {}
    keras.utils.set_random_seed(0)
    layer = LAYERS[name](units, return_sequences=True, **options)
    rng, flip_flop = np.random.default_rng(0), example("fixed_points")
    flip_flop.train(layer, 0.005, 40 * searches // 64 + 1, rng, verbose=0)
    *_, states = flip_flop.states_near(layer, rng, searches)
    return layer, states


PARTS = {
    "matrices": of_matrices,
    "layers": of_layers,
    "dynamics": of_dynamics,
    "small dynamics": lambda units: of_dynamics(
        4, ["GRU"], batch=2, steps=5, searches=3, wide=6, long=10
    ),
}


def callback_share(units, epochs, options):
    """The callback's share of `fit` on data like digits, by its own count."""
    x, y = steps.data((1437, 64, 1, units))
    model = keras.Sequential([RIN(units)])
    model.compile("adam", "mse")
    callback = RecurrentDiagnostics(**options(x[:4]))
    ms = timing.milliseconds(
        lambda: model.fit(x, y, epochs=epochs, verbose=0, callbacks=[callback])
    )
    return 1e3 * callback.seconds / ms


def measure(
    parts=("matrices", "layers"), units=512, repeats=3, epochs=(10, 100)
):
    seconds = {}
    for part in parts:
        for name, call in tqdm(PARTS[part](units)):
            ms = timing.in_turns({name: call}, repeats)[name]
            seconds[name] = [value / 1e3 for value in ms]
    shares = {name: {} for name in CALLBACKS if epochs}
    for name, count in itertools.product(shares, epochs):
        share = callback_share(100, count, CALLBACKS[name])
        shares[name][str(count)] = share
    units = None if parts == ["dynamics"] else units
    return {"units": units, "seconds": seconds, "shares": shares}


def tables(results):
    size = f", {results['units']} units" if results["units"] else ""
    columns = {
        f"diagnostic{size}": lambda row: row[0],
        "median, s": lambda row: f"{statistics.median(row[1]):.2g}",
        "range, s": lambda row: f"{min(row[1]):.2g} to {max(row[1]):.2g}",
    }
    tables = {
        "Time of a call": record.table(columns, results["seconds"].items())
    }
    if results["shares"]:
        columns = {"share of training time": lambda row: row[0]}
        for n in next(iter(results["shares"].values())):
            columns[f"{n} epochs"] = lambda row, n=n: f"{100 * row[1][n]:.1f} %"
        table = record.table(columns, results["shares"].items())
        tables["Share of the diagnostics callback"] = table
    return tables


VARIANTS = {
    "": Variant("512 units, and the callback"),
    "2000": Variant(
        "2,000 units, one call each",
        {"parts": ["matrices"], "units": 2000, "repeats": 1, "epochs": ()},
    ),
    "dynamics": Variant(
        "Dynamics", {"parts": ["dynamics"], "units": 100, "epochs": ()}
    ),
}
SMALLEST = {"parts": ["matrices", "small dynamics"], "units": 8, "repeats": 1}
SMALLEST["epochs"] = (2,)
