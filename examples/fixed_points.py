"""Opens the black box: the fixed points of networks that hold three bits.

    python fixed_points.py
    python fixed_points.py --seed=0 --seed=1 --network=GRU

Trains recurrent networks on the flip-flop task, then finds the fixed points of
their states under zero input. A network that solves the task has a stable one
for each of the 8 combinations of bits, and saddles between them (Sussillo and
Barak, 2013). Writes a table of what was found and pictures of the first seed.
"""

import importlib.metadata
import json
import pathlib
import statistics
import sys

import keras
import numpy as np
from absl import app
from absl import flags
from matplotlib.figure import Figure

import keras_rin
from keras_rin import diagnostics
from keras_rin import plots
from keras_rin.tasks import flip_flop

BITS, UNITS, LENGTH, BATCH, UPDATES = 3, 24, 40, 64, 1_000
# The layer, and its learning rate at the first update.
NETWORKS = {
    "RIN, tanh": (keras_rin.layers.RIN, {"activation": "tanh"}, 0.005),
    "GRU": (keras.layers.GRU, {}, 0.01),
    "LSTM": (keras.layers.LSTM, {}, 0.01),
    "RIN, ReLU": (keras_rin.layers.RIN, {}, 0.003),
}

FLAGS = flags.FLAGS


def train(name, seed):
    """The model, and its mean squared error on new data."""
    keras.utils.set_random_seed(seed)
    kind, options, rate = NETWORKS[name]
    model = keras.Sequential(
        [
            keras.Input((LENGTH, BITS)),
            kind(UNITS, return_sequences=True, **options),
            keras.layers.Dense(BITS),
        ]
    )
    updates = max(1, int(UPDATES * FLAGS.training))
    rate = keras.optimizers.schedules.CosineDecay(rate, updates, alpha=0.01)
    optimizer = keras.optimizers.Adam(rate, global_clipnorm=1.0)
    model.compile(optimizer, "mse", jit_compile=True)
    rng = np.random.default_rng(seed)
    x, y = flip_flop.generate(rng, updates * BATCH, LENGTH, BITS)
    model.fit(x, y, batch_size=BATCH, verbose=0)
    x, y = flip_flop.generate(rng, 500, LENGTH, BITS)
    return model, model.evaluate(x, y, batch_size=500, verbose=0)


def analyse(model, seed):
    """Fixed points without input, from states along new sequences."""
    layer, read_out = model.layers
    rng = np.random.default_rng([seed, 1])
    x, _ = flip_flop.generate(rng, 50, LENGTH, BITS)
    trajectories = diagnostics.state_trajectories(layer, x)[:, 1:]
    starts = np.concatenate(trajectories)
    starts = starts[rng.permutation(len(starts))[:400]]
    starts = starts + 0.1 * rng.normal(size=starts.shape)
    found = diagnostics.fixed_points(layer, np.zeros(BITS), starts)
    spectrum = diagnostics.lyapunov_spectrum(layer, x[:10])
    outputs = keras.ops.convert_to_numpy(read_out(found.states[:, :UNITS]))
    return found, trajectories, spectrum, outputs


def combinations(found, outputs):
    """How many of the 8 have a stable point whose outputs are near them."""
    near = np.all(np.abs(np.abs(outputs) - 1) < 0.5, axis=1)
    return len(np.unique(np.sign(outputs[found.stable & near]), axis=0))


def run(name, seed):
    model, loss = train(name, seed)
    found, trajectories, spectrum, outputs = analyse(model, seed)
    record = {
        "network": name,
        "seed": seed,
        "loss": loss / flip_flop.baseline_loss(),
        "combinations": combinations(found, outputs),
        "stable": int(found.stable.sum()),
        "saddles": int((found.unstable > 0).sum()),
        "unconverged": len(found.unconverged_states),
        "largest exponent": float(spectrum.exponents[0]),
    }
    print(record)
    return record, (found, trajectories, spectrum)


def tables(record):
    """{file: table in Markdown}: a row for each network, medians of seeds."""
    header = ["network", "normalized loss", "bits held, of 8, by seed"]
    header += ["stable", "saddles", "unconverged, of 400", "largest exponent"]
    rows = [header, ["---"] * len(header)]
    for name in dict.fromkeys(run["network"] for run in record["runs"]):
        runs = [run for run in record["runs"] if run["network"] == name]
        held = ", ".join(str(run["combinations"]) for run in runs)
        counts = [
            spread(run[key] for run in runs)
            for key in ("stable", "saddles", "unconverged")
        ]
        loss = statistics.median(run["loss"] for run in runs)
        exponent = statistics.median(run["largest exponent"] for run in runs)
        rows.append([name, f"{loss:.2g}", held, *counts, f"{exponent:.2g}"])
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    return {"table.md": "\n".join(lines) + "\n"}


def spread(counts):
    low, middle, high = (f(counts) for counts in [sorted(counts)] for f in LMH)
    return f"{middle:g}" if low == high else f"{middle:g} ({low} to {high})"


LMH = (min, statistics.median, max)


def draw(analyses, folder):
    """The fixed points of each network, and spectra of all."""
    figure = Figure((4.5 * len(analyses), 4.5), layout="constrained")
    axes = figure.subplots(1, len(analyses), squeeze=False)[0]
    for ax, (name, (found, trajectories, _)) in zip(
        axes, analyses.items(), strict=True
    ):
        plots.fixed_points(found, trajectories, ax)
        ax.set_title(name)
    figure.savefig(folder / "fixed_points.png", dpi=120)
    figure = Figure((10, 4.5), layout="constrained")
    left, right = figure.subplots(1, 2)
    eigenvalues = {
        name: found.eigenvalues[found.stable]
        for name, (found, *_) in analyses.items()
    }
    plots.jacobian_spectra(eigenvalues, left)
    left.set_title("eigenvalues at stable fixed points")
    spectra = {name: spectrum for name, (*_, spectrum) in analyses.items()}
    plots.lyapunov_spectra(spectra, right)
    right.set_ylim(-4, 0.2)
    figure.savefig(folder / "spectra.png", dpi=120)


def main(argv):
    del argv
    folder = pathlib.Path(FLAGS.output)
    folder.mkdir(parents=True, exist_ok=True)
    runs, analyses = [], {}
    for name in FLAGS.network:
        for seed in FLAGS.seed:
            record, analysis = run(name, seed)
            runs.append(record)
            analyses.setdefault(name, analysis)
    packages = ("keras-rin", "keras", keras.backend.backend())
    record = {
        "tables": "fixed_points",
        "command": " ".join(["python", *sys.argv]),
        "versions": {one: importlib.metadata.version(one) for one in packages},
        "runs": runs,
    }
    (folder / "results.json").write_text(json.dumps(record) + "\n")
    for file, table in tables(record).items():
        (folder / file).write_text(table)
        print(f"\n{folder / file}\n\n{table}")
    draw(analyses, folder)


if __name__ == "__main__":
    default = ["RIN, tanh", "GRU", "LSTM"]
    flags.DEFINE_string("output", "runs/fixed_points", "Folder to write to.")
    flags.DEFINE_multi_enum("network", default, list(NETWORKS), "To train.")
    flags.DEFINE_multi_integer("seed", [0], "Repeat the flag for several.")
    flags.DEFINE_float("training", 1.0, "Share of the 1,000 updates to make.")
    app.run(main)
