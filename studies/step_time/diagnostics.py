"""How long do the diagnostics take, and how much memory?

Each diagnostic is called several times in two processes of its own, one that
is timed and one whose memory is measured: what a call needs at most above the
memory in use before, its result included. A callback's share is the part of
the time of `fit` that it takes by its own count.
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


def of_matrices(units):
    """{diagnostic: function that returns the call to measure}, of a chain."""
    chain = np.asarray(Chain(1.02)((units, units)), "float64")
    return {name: prepared(name, chain) for name in OF_MATRICES}


def of_layers(units):
    """The same of layers, on 4 sequences of 100 time steps."""
    x, calls = inputs(4, 100), {}
    for name in ("SimpleRNN", "LSTM"):
        layer = built(name, units)
        norms = prepared("gradient_norms", layer, x)
        calls[f"hidden_chain, {name}"] = prepared("hidden_chain", layer)
        calls[f"gradient_norms, {name}, 100 steps"] = norms
    return calls


def of_dynamics(
    _, names=LAYERS, units=100, batch=16, steps=784, searches=1000, wide=256
):
    """The same of dynamics, for states of the size in the name."""
    long = 2_000 if wide > 6 else 10
    x, sequence, calls = inputs(batch, steps), inputs(1, long), {}
    for name in names:
        layer, large = built(name, units), built(name, wide)
        size = f"{name}, {units} units"
        calls[f"Jacobians, {size}, {batch} x {steps} steps"] = prepared(
            "state_jacobians", layer, x
        )
        if name != "SimpleRNN":
            calls[f"fixed points, {size}, {searches} searches"] = (
                functools.partial(prepare_fixed_points, name, units, searches)
            )
        counts = {"largest": 1, "all": None}
        if name == "LSTM":  # has two states for each unit
            counts[f"{wide} largest"] = wide
        for which, count in counts.items():
            key = f"{which} Lyapunov exponents, {name}, {wide} units"
            calls[f"{key}, {long} steps"] = prepared(
                "lyapunov_spectrum", large, sequence, exponents=count
            )
    return calls


def prepared(name, *arguments, **options):
    """The function that returns a call which needs no preparation."""
    diagnostic = getattr(diagnostics, name)
    return lambda: functools.partial(diagnostic, *arguments, **options)


def inputs(batch, steps):
    return np.random.default_rng(0).normal(size=(batch, steps, 1))


def built(name, units):
    layer = LAYERS[name](units)
    layer.build((None, None, 1))
    return layer


def prepare_fixed_points(name, units, searches):
    """Trains a layer; the call searches from near its trajectories."""
    options = {"activation": "tanh"} if name == "RIN" else {}
    keras.utils.set_random_seed(0)
    layer = LAYERS[name](units, return_sequences=True, **options)
    rng, flip_flop = np.random.default_rng(0), example("fixed_points")
    flip_flop.train(layer, 0.005, 40 * searches // 64 + 1, rng, verbose=0)
    *_, states = flip_flop.states_near(layer, rng, searches)
    return functools.partial(diagnostics.fixed_points, layer, states)


SMALL = {"names": ["GRU"], "batch": 2, "steps": 5, "searches": 3, "wide": 6}
PARTS = {
    "matrices": of_matrices,
    "layers": of_layers,
    "dynamics": of_dynamics,
    "small dynamics": functools.partial(of_dynamics, units=4, **SMALL),
}


@functools.cache
def prepared_call(part, units, name):
    return PARTS[part](units)[name]()


def seconds_of_calls(part, units, repeats, name):
    calls = {name: prepared_call(part, units, name)}
    return [ms / 1e3 for ms in timing.in_turns(calls, repeats)[name]]


def memory_of_calls(part, units, repeats, name):
    """MiB that one of the calls needs at most, its result included."""
    call = prepared_call(part, units, name)

    def calls():
        for _ in range(repeats):
            call()

    return round(timing.peak_growth(calls))


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
    parts=("matrices", "layers"),
    units=512,
    repeats=3,
    callback_units=100,
    callback_epochs=(10, 100),
    callbacks=tuple(CALLBACKS),
    separately=True,
):
    cases = [(part, name) for part in parts for name in PARTS[part](units)]
    seconds, memory = {}, {}
    process = timing.in_new_process if separately else timing.in_this_process
    returns_memory = {"environment": timing.RETURNS_MEMORY}
    for part, name in tqdm(cases):
        case = part, units, repeats, name
        seconds[name] = process(seconds_of_calls, *case)
        memory[name] = process(memory_of_calls, *case, **returns_memory)
    shares = {name: {} for name in callbacks if callback_epochs}
    for name, epochs in itertools.product(shares, callback_epochs):
        share = callback_share(callback_units, epochs, CALLBACKS[name])
        shares[name][str(epochs)] = share
    units = None if parts == ["dynamics"] else units
    results = {"units": units, "seconds": seconds, "memory_mib": memory}
    return results | {"shares": shares}


def tables(results):
    size = f", {results['units']} units" if results["units"] else ""
    columns = {
        f"diagnostic{size}": lambda row: row[0],
        "median, s": lambda row: f"{statistics.median(row[1]):.2g}",
        "range, s": lambda row: f"{min(row[1]):.2g} to {max(row[1]):.2g}",
        "memory, MiB": lambda row: str(results["memory_mib"][row[0]]),
    }
    calls = results["seconds"].items()
    tables = {"Time and memory of a call": record.table(columns, calls)}
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
        {"parts": ["matrices"], "units": 2000, "repeats": 1}
        | {"callback_epochs": ()},
    ),
    "dynamics": Variant(
        "Dynamics", {"parts": ["dynamics"], "callback_epochs": ()}
    ),
}
SMALLEST = {"parts": ["matrices", "small dynamics"], "units": 8, "repeats": 1}
SMALLEST |= {"callback_units": 8, "callback_epochs": (2,), "separately": False}
SMALLEST["callbacks"] = ("with `x` and `lyapunov`",)
