"""Time and memory of the diagnostics, and of the diagnostics callback.

    python -m benchmarks.diagnostics_cost
    python -m benchmarks.diagnostics_cost --part=dynamics \\
        --output=docs/results/dynamics_cost
    python -m benchmarks.diagnostics_cost --part=matrices --units=2000 \\
        --repeats=1 --output=docs/results/diagnostics_cost_2000

Each diagnostic is called several times in a process of its own. The seconds,
the memory by which the process grows at most, and the share of the training
time that the callback takes with its default budget go to OUTPUT/results.json,
and from there into tables. `--add --only=LSTM` measures those with LSTM in
their names and keeps what else is in OUTPUT.
"""

import multiprocessing
import resource
import statistics
import time

import keras
import numpy as np
from absl import app
from absl import flags
from absl import logging
from tqdm import tqdm

from benchmarks import contenders
from experiments import results
from keras_rin import diagnostics
from keras_rin.callbacks import RecurrentDiagnostics
from keras_rin.initializers import Chain
from keras_rin.layers import RIN
from keras_rin.tasks import flip_flop

FLAGS = flags.FLAGS


def matrices(units):
    """Each diagnostic of a matrix as a function without arguments."""
    chain = np.asarray(Chain(1.02)((units, units)), "float64")
    names = [
        "fisher_memory_curve",
        "total_memory",
        "optimal_input_vector",
        "henrici_departure",
        "numerical_radius",
        "spectral_radius",
        "transient_amplification",
    ]
    return {
        name: lambda n=name: getattr(diagnostics, n)(chain) for name in names
    }


def layers(units):
    """Each diagnostic of a layer, on 4 sequences of 100 time steps."""
    x = np.random.default_rng(0).normal(size=(4, 100, 1))
    found = {}
    for name in ("SimpleRNN", "LSTM"):
        layer = built(getattr(keras.layers, name)(units))
        found[f"hidden_chain, {name}"] = lambda layer=layer: (
            diagnostics.hidden_chain(layer)
        )
        found[f"gradient_norms, {name}, 100 steps"] = lambda layer=layer: (
            diagnostics.gradient_norms(layer, x)
        )
    return found


def dynamics(small):
    """Each diagnostic of dynamics, for states of the size in its name."""
    rng, found = np.random.default_rng(0), {}
    units, batch, steps, starts = (100, 16, 784, 1000)
    if small:
        units, batch, steps, starts = 4, 2, 5, 3
    wide, long = (6, 10) if small else (256, 2_000)
    x = rng.normal(size=(batch, steps, 1))
    one = rng.normal(size=(1, long, 1))
    run = f"{wide} units, {long} steps"
    for name, kind in KINDS.items():
        layer, large = built(kind(units)), built(kind(wide))
        found[f"Jacobians, {name}, {units} units, {batch} x {steps} steps"] = (
            lambda layer=layer: diagnostics.state_jacobians(layer, x)
        )
        if name != "SimpleRNN":
            key = f"fixed points, {name}, {units} units, {starts} searches"
            found[key] = Search(name, units, starts)
        counts = {"largest": 1, "all": None}
        if name == "LSTM":  # has two states for each unit
            counts[f"{wide} largest"] = wide
        for which, count in counts.items():
            found[f"{which} Lyapunov exponents, {name}, {run}"] = (
                lambda layer=large, count=count: diagnostics.lyapunov_spectrum(
                    layer, one, count
                )
            )
    return found


KINDS = {
    "SimpleRNN": keras.layers.SimpleRNN,
    "RIN": RIN,
    "GRU": keras.layers.GRU,
    "LSTM": keras.layers.LSTM,
}


class Search:
    """Fixed points of a network that is trained before they are timed."""

    def __init__(self, *sizes):
        self._sizes, self._network = sizes, None

    def prepare(self):
        self._network = flip_flop_network(*self._sizes)

    def __call__(self):
        layer, states = self._network
        diagnostics.fixed_points(layer, None, states)


def flip_flop_network(name, units, starts):
    """A trained layer, and states between those of its trajectories."""
    layer = KINDS[name](units, activation="tanh", return_sequences=True)
    rng = np.random.default_rng(0)
    model = keras.Sequential(
        [keras.Input((30, 3)), layer, keras.layers.Dense(3)]
    )
    rate = keras.optimizers.schedules.CosineDecay(0.003, 40 * starts // 64 + 1)
    optimizer = keras.optimizers.Adam(rate, global_clipnorm=1.0)
    model.compile(optimizer, "mse", jit_compile=True)
    model.fit(*flip_flop.generate(rng, 40 * starts, 30), 64, verbose=0)
    x, _ = flip_flop.generate(rng, 50, 30)
    states = diagnostics.state_trajectories(layer, x)[:, 1:]
    states = rng.permutation(np.concatenate(states))[:starts]
    return layer, states + 0.3 * rng.normal(size=states.shape)


def built(layer):
    layer.build((None, None, 1))
    return layer


def analyses(part, units, small):
    if part == "dynamics":
        return dynamics(small)
    return {"matrices": matrices, "layers": layers}[part](units)


def measured(part, units, small, repeats, name):
    """Seconds of each call, and the MiB by which the process grew at most."""
    function = analyses(part, units, small)[name]
    getattr(function, "prepare", lambda: None)()
    before, seconds = peak_memory(), []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        seconds.append(time.perf_counter() - start)
    return seconds, peak_memory() - before


def peak_memory():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def measurements(parts, units):
    """{diagnostic: seconds} and {diagnostic: MiB} of those that are chosen."""
    repeats = 1 if FLAGS.smoke else FLAGS.repeats
    jobs = [
        (part, units, FLAGS.smoke, repeats, name)
        for part in parts
        for name in analyses(part, units, FLAGS.smoke)
        if FLAGS.only in name
    ]
    spawn = multiprocessing.get_context("spawn")
    seconds, memory = {}, {}
    for job in tqdm(jobs):
        if FLAGS.smoke:
            found = measured(*job)
        else:
            with spawn.Pool(1) as alone:
                found = alone.apply(measured, job)
        seconds[job[-1]], memory[job[-1]] = found
    return {"seconds": seconds, "memory_mib": memory}


def callback_share(units, epochs, **options):
    """The callback's share of `fit` on data like digits, by its own count."""
    x, y = contenders.data((1437, 64, 1, units))
    model = keras.Sequential([RIN(units)])
    model.compile("adam", "mse")
    if options.pop("inputs"):
        options["x"] = x[:4]
    callback = RecurrentDiagnostics(**options)
    start = time.perf_counter()
    model.fit(x, y, epochs=epochs, verbose=0, callbacks=[callback])
    return callback.seconds / (time.perf_counter() - start)


CALLBACKS = {
    "default": {"inputs": False},
    "with `x`": {"inputs": True},
    "with `x` and `lyapunov`": {"inputs": True, "lyapunov": True},
}


def shares():
    units, numbers = (8, (2,)) if FLAGS.smoke else (100, (10, 100))
    return {
        name: {
            str(epochs): callback_share(units, epochs, **options)
            for epochs in numbers
        }
        for name, options in CALLBACKS.items()
        if FLAGS.only in name
    }


def tables(record):
    found, memory = {}, record.get("memory_mib")
    if record["seconds"]:
        rows = [
            [
                name,
                f"{statistics.median(times):.2g}",
                f"{min(times):.2g} to {max(times):.2g}",
                *([str(memory[name])] if memory else []),
            ]
            for name, times in record["seconds"].items()
        ]
        header = [f"diagnostic, {record['units']} units", "median, s"]
        if record["units"] is None:
            header[0] = "diagnostic"
        header += ["range, s", *(["memory, MiB"] if memory else [])]
        found["table.md"] = results.markdown(header, rows)
    if record["shares"]:
        rows = [
            [name, *(f"{100 * share:.1f} %" for share in by_epochs.values())]
            for name, by_epochs in record["shares"].items()
        ]
        (by_epochs, *_) = record["shares"].values()
        header = ["share of training time"]
        header += [f"{n} epochs" for n in by_epochs]
        found["callback.md"] = results.markdown(header, rows)
    return found


def main(argv):
    del argv
    logging.set_verbosity(logging.ERROR)
    output = results.prepare(FLAGS.output)
    before = (results.read(output) if FLAGS.add else None) or {}
    units = 8 if FLAGS.smoke else FLAGS.units
    parts = [part for part in FLAGS.part if part != "callback"]
    found = measurements(parts, units)
    found["shares"] = shares() if "callback" in FLAGS.part else {}
    record = {
        "tables": "benchmarks.diagnostics_cost",
        "units": None if parts == ["dynamics"] else units,
    }
    for key, values in found.items():
        record[key] = before.get(key, {}) | values
    results.write(output, record, tables)


if __name__ == "__main__":
    parts = ["matrices", "layers", "dynamics", "callback"]
    default = ["matrices", "layers", "callback"]
    flags.DEFINE_string("output", "docs/results/diagnostics_cost", "Results.")
    flags.DEFINE_multi_enum("part", default, parts, "What to measure.")
    flags.DEFINE_integer("units", 512, "Of matrices and layers.", 1)
    flags.DEFINE_integer("repeats", 3, "Measurements of each.", 1)
    flags.DEFINE_string("only", "", "Names that have this in them.")
    flags.DEFINE_bool("add", False, "Keep what else was measured in OUTPUT.")
    flags.DEFINE_bool("smoke", False, "Check with few units.")
    app.run(main)
