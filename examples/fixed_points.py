"""Finds the fixed points of trained networks that remember three bits.

    python fixed_points.py
    python fixed_points.py --seed=0 --seed=1 --network=GRU

Trains recurrent networks on the flip-flop task, then finds the fixed points of
their states under zero input. A network that solves the task has a stable one
for each of the 8 combinations of bits, and saddles between them (Sussillo and
Barak, 2013). Writes a table of all runs and pictures of the first seed.
"""

import json
import os
import pathlib
import shlex
import statistics
import sys
from importlib.metadata import version

import keras
import numpy as np
from absl import app
from absl import flags
from matplotlib.figure import Figure
from tabulate import tabulate

import keras_rin
from keras_rin import diagnostics
from keras_rin import plots
from keras_rin.tasks import flip_flop

UNITS, LENGTH, BATCH, UPDATES = 24, 40, 64, 1_000
# The layer, and its learning rate at the first update.
NETWORKS = {
    "RIN, tanh": (keras_rin.layers.RIN, {"activation": "tanh"}, 0.005),
    "GRU": (keras.layers.GRU, {}, 0.01),
    "LSTM": (keras.layers.LSTM, {}, 0.01),
    "RIN, ReLU": (keras_rin.layers.RIN, {}, 0.003),
}

FLAGS = flags.FLAGS


def train(name, seed):
    """The trained model, and its normalized loss on new data."""
    keras.utils.set_random_seed(seed)
    kind, options, rate = NETWORKS[name]
    layer = kind(UNITS, return_sequences=True, **options)
    model = keras.Sequential(
        [keras.Input((LENGTH, 3)), layer, keras.layers.Dense(3)]
    )
    rate = keras.optimizers.schedules.CosineDecay(rate, FLAGS.updates, 0.01)
    optimizer = keras.optimizers.Adam(rate, global_clipnorm=1.0)
    model.compile(optimizer, "mse", jit_compile=True)
    rng = np.random.default_rng(seed)
    x, y = flip_flop.generate(rng, FLAGS.updates * BATCH, LENGTH)
    model.fit(x, y, batch_size=BATCH, verbose=0)
    x, y = flip_flop.generate(rng, 500, LENGTH)
    loss = model.evaluate(x, y, batch_size=500, verbose=0)
    return model, loss / flip_flop.baseline_loss()


def analyse(layer, seed):
    """States along new sequences, fixed points, and Lyapunov exponents."""
    rng = np.random.default_rng([seed, 1])
    x, _ = flip_flop.generate(rng, 50, LENGTH)
    trajectories = diagnostics.state_trajectories(layer, x)[:, 1:]
    starts = rng.permutation(np.concatenate(trajectories))[:400]
    starts = starts + 0.3 * rng.normal(size=starts.shape)
    fixed_points = diagnostics.fixed_points(layer, starts, x=np.zeros(3))
    return (
        trajectories,
        fixed_points,
        diagnostics.lyapunov_spectrum(layer, x[:10]),
    )


def run(name, seed):
    model, loss = train(name, seed)
    layer, read_out = model.layers
    trajectories, fixed_points, spectrum = analyse(layer, seed)
    outputs = read_out(fixed_points.states[fixed_points.stable, :UNITS])
    outputs = keras.ops.convert_to_numpy(outputs)
    near = np.all(np.abs(np.abs(outputs) - 1) < 0.5, axis=1)
    record = {
        "network": name,
        "seed": seed,
        "loss": loss,
        "combinations": len(np.unique(np.sign(outputs[near]), axis=0)),
        "stable": int(fixed_points.stable.sum()),
        "saddles": int((fixed_points.expanding > 0).sum()),
        "unconverged": len(fixed_points.unconverged_states),
        "exponent": float(spectrum.exponents[0]),
    }
    print(record)
    return record, (trajectories, fixed_points, spectrum)


def tables(record):
    """{file: table in Markdown}: a row for each network."""
    header = ["network", "normalized loss", "combinations found, of 8, by seed"]
    header += ["stable", "saddles", "unconverged, of 400", "largest exponent"]
    rows = []
    for name in dict.fromkeys(run["network"] for run in record["runs"]):
        runs = [run for run in record["runs"] if run["network"] == name]
        combinations = ", ".join(str(run["combinations"]) for run in runs)
        keys = ["stable", "saddles", "unconverged", "exponent"]
        loss, *others = (spread(runs, key) for key in ["loss", *keys])
        rows.append([name, loss, combinations, *others])
    return {"table.md": tabulate(rows, header, "github", disable_numparse=True)}


def spread(runs, key):
    """Median, and lowest and highest where they differ."""
    values = [run[key] for run in runs]
    low, middle, high = (
        f"{f(values):.2g}" for f in (min, statistics.median, max)
    )
    return middle if low == high else f"{middle} ({low} to {high})"


def draw(analyses, folder):
    rows = -(-len(analyses) // 2)
    figure = Figure((9, 4.8 * rows), layout="constrained")
    axes = figure.subplots(rows, 2, squeeze=False).ravel()
    pairs = zip(axes, analyses.items(), strict=False)
    for ax, (name, (trajectories, fixed_points, _)) in pairs:
        plots.plot_fixed_points(fixed_points, trajectories, ax=ax)
        ax.set_title(name)
    figure.savefig(folder / "fixed_points.png", dpi=120)
    figure = Figure((10, 4.5), layout="constrained")
    left, right = figure.subplots(1, 2)
    spectra, eigenvalues = {}, {}
    for name, (_, fixed_points, spectra[name]) in analyses.items():
        eigenvalues[name] = fixed_points.eigenvalues[fixed_points.stable]
    plots.plot_jacobian_spectra(eigenvalues, ax=left)
    left.set_title("Jacobians at stable fixed points")
    plots.plot_lyapunov_spectra(spectra, ax=right)
    right.set_ylim(-4, 0.2)
    figure.savefig(folder / "spectra.png", dpi=120)


def main(argv):
    if argv[1:]:
        raise app.UsageError(f"Flags begin with --. Received: {argv[1:]}")
    folder = pathlib.Path(FLAGS.output)
    folder.mkdir(parents=True, exist_ok=True)
    runs, analyses = [], {}
    for name in FLAGS.network:
        for seed in FLAGS.seed:
            record, analysis = run(name, seed)
            runs.append(record)
            analyses.setdefault(name, analysis)
    command = os.path.relpath(__file__), *sys.argv[1:]
    packages = "keras-rin", "keras", keras.backend.backend()
    record = {
        "tables": "examples.fixed_points",
        "command": shlex.join(["python", *command]),
        "versions": {name: version(name) for name in packages},
        "runs": runs,
    }
    (folder / "results.new").write_text(json.dumps(record) + "\n")
    os.replace(folder / "results.new", folder / "results.json")
    for file, table in tables(record).items():
        (folder / file).write_text(table + "\n")
        print(f"\n{folder / file}\n\n{table}")
    draw(analyses, folder)


if __name__ == "__main__":
    names = list(NETWORKS)
    flags.DEFINE_string("output", "runs/fixed_points", "Folder to write to.")
    flags.DEFINE_multi_enum("network", names[:3], names, "Networks to train.")
    flags.DEFINE_multi_integer("seed", [0], "One run for each.", 0, 2**32 - 1)
    flags.DEFINE_integer("updates", UPDATES, "Updates of the training.", 1)
    flags.register_validator("output", str.strip, "Name a folder.")
    for name in ("network", "seed"):
        flags.register_validator(
            name, lambda v: len({*v}) == len(v), "Give each value once."
        )
    app.run(main)
