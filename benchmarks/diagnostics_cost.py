"""Time and memory of the diagnostics, and of the diagnostics callback.

    python -m benchmarks.diagnostics_cost
    python -m benchmarks.diagnostics_cost --part=matrices --units=2000 \\
        --repeats=1 --output=docs/results/diagnostics_cost_2000
    python -m benchmarks.diagnostics_cost --part=dynamics \\
        --output=docs/results/dynamics_cost

Each diagnostic is called several times in two processes of its own, one that
is timed and one whose memory is measured. The seconds, the memory that the
calls need at most, and the share of the training time that the callback takes
go to OUTPUT/results.json and into tables.
"""

import functools
import statistics

import keras
import numpy as np
from absl import flags
from tqdm import tqdm

from benchmarks import contenders
from benchmarks import measuring
from experiments import results
from keras_rin import diagnostics
from keras_rin.callbacks import RecurrentDiagnostics
from keras_rin.initializers import Chain
from keras_rin.layers import RIN
from keras_rin.tasks import flip_flop

FLAGS = flags.FLAGS

OF_MATRICES = [
    "fisher_memory_curve",
    "total_memory",
    "optimal_input_vector",
    "henrici_departure",
    "numerical_radius",
    "spectral_radius",
    "transient_amplification",
]
LAYERS = {
    "SimpleRNN": keras.layers.SimpleRNN,
    "RIN": RIN,
    "GRU": keras.layers.GRU,
    "LSTM": keras.layers.LSTM,
}
CALLBACKS = {
    "default": lambda x: {},
    "with `x`": lambda x: {"x": x},
    "with `x` and `lyapunov`": lambda x: {"x": x, "lyapunov": True},
}


def matrices(units, _):
    """{diagnostic: set-up that returns the call to time}, of a chain."""
    chain = np.asarray(Chain(1.02)((units, units)), "float64")
    return {
        name: ready(getattr(diagnostics, name), chain) for name in OF_MATRICES
    }


def layers(units, _):
    """The same of layers, on 4 sequences of 100 time steps."""
    x, found = inputs(4, 100), {}
    for name in ("SimpleRNN", "LSTM"):
        layer = built(name, units)
        found[f"hidden_chain, {name}"] = ready(diagnostics.hidden_chain, layer)
        found[f"gradient_norms, {name}, 100 steps"] = ready(
            diagnostics.gradient_norms, layer, x
        )
    return found


def dynamics(_, small):
    """The same of dynamics, for states of the size in the name."""
    units, batch, steps, searches = (
        (4, 2, 5, 3) if small else (100, 16, 784, 1000)
    )
    wide, long = (6, 10) if small else (256, 2_000)
    x, one, found = inputs(batch, steps), inputs(1, long), {}
    for name in LAYERS:
        layer, large = built(name, units), built(name, wide)
        size = f"{name}, {units} units"
        found[f"Jacobians, {size}, {batch} x {steps} steps"] = ready(
            diagnostics.state_jacobians, layer, x
        )
        if name != "SimpleRNN":
            found[f"fixed points, {size}, {searches} searches"] = (
                functools.partial(fixed_points, name, units, searches)
            )
        counts = {"largest": 1, "all": None}
        if name == "LSTM":  # has two states for each unit
            counts[f"{wide} largest"] = wide
        for which, count in counts.items():
            key = f"{which} Lyapunov exponents, {name}, {wide} units"
            found[f"{key}, {long} steps"] = ready(
                diagnostics.lyapunov_spectrum, large, one, exponents=count
            )
    return found


def ready(function, *arguments, **options):
    """The set-up of a call that needs none."""
    return lambda: functools.partial(function, *arguments, **options)


def inputs(batch, steps):
    return np.random.default_rng(0).normal(size=(batch, steps, 1))


def built(name, units):
    layer = LAYERS[name](units)
    layer.build((None, None, 1))
    return layer


def fixed_points(name, units, searches):
    """Trains a layer; the call searches from near its trajectories."""
    layer = LAYERS[name](units, activation="tanh", return_sequences=True)
    rng = np.random.default_rng(0)
    model = keras.Sequential(
        [keras.Input((30, 3)), layer, keras.layers.Dense(3)]
    )
    rate = keras.optimizers.schedules.CosineDecay(
        0.003, 40 * searches // 64 + 1
    )
    optimizer = keras.optimizers.Adam(rate, global_clipnorm=1.0)
    model.compile(optimizer, "mse", jit_compile=True)
    model.fit(*flip_flop.generate(rng, 40 * searches, 30), 64, verbose=0)
    x, _ = flip_flop.generate(rng, 50, 30)
    states = diagnostics.state_trajectories(layer, x)[:, 1:]
    states = rng.permutation(np.concatenate(states))[:searches]
    states = states + 0.3 * rng.normal(size=states.shape)
    return functools.partial(diagnostics.fixed_points, layer, states)


PARTS = {"matrices": matrices, "layers": layers, "dynamics": dynamics}


def timed(part, units, small, repeats, name):
    """Seconds of each call."""
    function = PARTS[part](units, small)[name]()
    times = measuring.in_turns({name: function}, repeats)[name]
    return [ms / 1e3 for ms in times]


def grown(part, units, small, repeats, name):
    """MiB that one of the calls needs at most, its result included."""
    function = PARTS[part](units, small)[name]()

    def calls():
        for _ in range(repeats):
            function()

    return round(measuring.growth(calls))


def callback_share(units, epochs, options):
    """The callback's share of `fit` on data like digits, by its own count."""
    x, y = contenders.data((1437, 64, 1, units))
    model = keras.Sequential([RIN(units)])
    model.compile("adam", "mse")
    callback = RecurrentDiagnostics(**options(x[:4]))
    ms = measuring.milliseconds(
        lambda: model.fit(x, y, epochs=epochs, verbose=0, callbacks=[callback])
    )
    return 1e3 * callback.seconds / ms


def measure():
    small = FLAGS.smoke
    units, repeats = (8, 1) if small else (FLAGS.units, FLAGS.repeats)
    parts = [part for part in FLAGS.part if part in PARTS]
    jobs = [
        (part, units, small, repeats, name)
        for part in parts
        for name in PARTS[part](units, small)
    ]
    seconds, memory, shares = {}, {}, {}
    for *job, name in tqdm(jobs):
        if small:
            seconds[name], memory[name] = timed(*job, name), grown(*job, name)
            continue
        seconds[name] = measuring.alone(timed, *job, name)
        memory[name] = measuring.alone(
            grown, *job, name, environment=measuring.RETURNS_MEMORY
        )
    if "callback" in FLAGS.part:
        size, numbers = (8, (2,)) if small else (100, (10, 100))
        shares = {
            name: {str(n): callback_share(size, n, of) for n in numbers}
            for name, of in CALLBACKS.items()
        }
    return {
        "units": None if parts == ["dynamics"] else units,
        "seconds": seconds,
        "memory_mib": memory,
        "shares": shares,
    }


def tables(record):
    found = {}
    if record["seconds"]:
        sized = f", {record['units']} units" if record["units"] else ""
        rows = [
            [
                name,
                f"{statistics.median(times):.2g}",
                f"{min(times):.2g} to {max(times):.2g}",
                str(record["memory_mib"][name]),
            ]
            for name, times in record["seconds"].items()
        ]
        header = [f"diagnostic{sized}", "median, s", "range, s", "memory, MiB"]
        found["table.md"] = results.markdown(header, rows)
    if record["shares"]:
        rows = [
            [name, *(f"{100 * share:.1f} %" for share in by_epochs.values())]
            for name, by_epochs in record["shares"].items()
        ]
        epochs = next(iter(record["shares"].values()))
        header = ["share of training time", *(f"{n} epochs" for n in epochs)]
        found["callback.md"] = results.markdown(header, rows)
    return found


if __name__ == "__main__":
    parts = [*PARTS, "callback"]
    default = ["matrices", "layers", "callback"]
    flags.DEFINE_multi_enum("part", default, parts, "What to measure.")
    flags.register_validator(
        "part", lambda v: len({*v}) == len(v), "Give each value once."
    )
    flags.DEFINE_integer("units", 512, "Units of matrices and layers.", 2)
    flags.DEFINE_integer("repeats", 3, "Measurements of each diagnostic.", 1)
    measuring.main(__file__, measure, tables)
