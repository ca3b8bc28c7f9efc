"""Measures recurrent networks on long sequences before any training.

    python state_growth.py
    python state_growth.py --length=10 --length=100 --seed=0

On sequences of the adding problem, whose inputs lie in [0, 1], draws the norm
of the hidden state over time, and over the sequence length the normalized loss
and the gradient norm at update 0. Each model is initialized once per seed.
"""

import itertools
import json
import os
import pathlib
import shlex
import statistics
import sys
from importlib.metadata import version

import keras
import numpy as np
import tensorflow as tf
from absl import app
from absl import flags
from matplotlib.figure import Figure
from tabulate import tabulate
from tqdm import tqdm

from keras_rin.diagnostics import state_norms
from keras_rin.initializers import Offset
from keras_rin.initializers import PartialIdentity
from keras_rin.layers import RIN
from keras_rin.tasks import adding

LINE_STYLES = ["-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 3))]
PARTIAL = "RIN, normalized, partial identity"
MODELS = {
    "RIN": RIN,
    "RIN, adapted": RIN,
    "RIN, adapted, U = 0": lambda units: RIN(
        units, recurrent_initializer="zeros"
    ),
    "RIN, adapted, U = 0, scaled": lambda units: RIN(
        units, recurrent_initializer="zeros"
    ),
    PARTIAL: lambda units: RIN(
        units, recurrent_initializer=Offset(PartialIdentity())
    ),
    "GRU": keras.layers.GRU,
}

FLAGS = flags.FLAGS


def build(name, x):
    layer, dense = MODELS[name](FLAGS.units), keras.layers.Dense(1)
    model = keras.Sequential([keras.Input((None, 2)), layer, dense])
    if "adapted" in name:
        layer.adapt(x)
    if "scaled" in name:  # W by the root of the length, the read-out by it
        length = x.shape[1]
        layer.cell.kernel.assign(layer.cell.kernel / length**0.5)
        dense.kernel.assign(dense.kernel / length)
        layer.adapt(x)
    return model


def measure(name, length, seed):
    """Norms of the hidden state, normalized loss and gradient norm."""
    keras.utils.set_random_seed(seed)
    x, y = adding.generate(np.random.default_rng(seed), 50, length)
    if name == PARTIAL:
        x = (x - x.mean(axis=(0, 1))) / x.std(axis=(0, 1))
    model = build(name, x)
    weights = [weight.value for weight in model.trainable_weights]

    @tf.function
    def loss_and_gradient_norm():
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((model(x, training=True) - y) ** 2)
        return loss, tf.linalg.global_norm(tape.gradient(loss, weights))

    norms = state_norms(model.layers[0], x)
    loss, gradient_norm = loss_and_gradient_norm()
    return {
        "model": name,
        "length": length,
        "seed": seed,
        "loss": float(loss) / adding.baseline_loss(),
        "gradient_norm": float(gradient_norm),
        "state_norms": norms[1 :: max(1, length // 100)].tolist(),
    }


def values(runs, key, name, length):
    chosen = (run for run in runs if run["length"] == length)
    return [run[key] for run in chosen if run["model"] == name]


def tables(record):
    """{file: table in Markdown}: median, lowest and highest of the seeds."""
    runs, tables = record["runs"], {}
    lengths = sorted({run["length"] for run in runs})
    lengths = [n for n in lengths if n in (10, 100, 1_000, 10_000)] or lengths
    header = ["model", *(f"{length:,} steps" for length in lengths)]
    for key in ("loss", "gradient_norm"):
        rows = [
            [name, *(spread(values(runs, key, name, n)) for n in lengths)]
            for name in MODELS
        ]
        tables[f"{key}.md"] = tabulate(
            rows, header, "github", disable_numparse=True
        )
    return tables


def spread(of):
    return f"{statistics.median(of):.2g} ({min(of):.2g} to {max(of):.2g})"


def draw(runs):
    """Norms over time, then loss and gradient norm over the length."""
    lengths = sorted({run["length"] for run in runs})
    shown = 1_000 if 1_000 in lengths else lengths[-1]
    figure = Figure(figsize=(11, 4.2), layout="constrained")
    states, *others = figure.subplots(1, 3)
    for name, style in zip(MODELS, LINE_STYLES, strict=True):
        norms = np.median(values(runs, "state_norms", name, shown), axis=0)
        time = 1 + np.arange(len(norms)) * max(1, shown // 100)
        states.loglog(time, norms, linestyle=style, label=name)
        for axes, key in zip(others, ("loss", "gradient_norm"), strict=True):
            middle = [
                statistics.median(values(runs, key, name, length))
                for length in lengths
            ]
            axes.loglog(lengths, middle, linestyle=style, marker=".")
    states.set(xlabel="time step", ylabel="norm of the hidden state")
    others[0].set(xlabel="sequence length", ylabel="normalized loss")
    others[1].set(xlabel="sequence length", ylabel="gradient norm")
    figure.legend(loc="outside upper center", ncols=3, fontsize="small")
    return figure


def main(argv):
    if argv[1:]:
        raise app.UsageError(f"Flags begin with --. Received: {argv[1:]}")
    folder = pathlib.Path(FLAGS.output)
    folder.mkdir(parents=True, exist_ok=True)
    cases = list(itertools.product(MODELS, FLAGS.length, FLAGS.seed))
    command = os.path.relpath(__file__), *sys.argv[1:]
    packages = "keras-rin", "keras", "tensorflow"
    record = {
        "tables": "examples.state_growth",
        "command": shlex.join(["python", *command]),
        "versions": {name: version(name) for name in packages},
        "runs": [measure(*case) for case in tqdm(cases)],
    }
    (folder / "results.new").write_text(json.dumps(record) + "\n")
    os.replace(folder / "results.new", folder / "results.json")
    for file, table in tables(record).items():
        (folder / file).write_text(table + "\n")
        print(f"\n{folder / file}\n\n{table}")
    draw(record["runs"]).savefig(folder / "state_growth.png", dpi=120)


if __name__ == "__main__":
    lengths = [10, 30, 100, 300, 1_000, 3_000, 10_000]
    flags.DEFINE_string("output", "runs/state_growth", "Folder to write to.")
    flags.DEFINE_multi_integer("length", lengths, "Sequence lengths.", 3)
    flags.DEFINE_integer("units", 50, "Units of each layer.", lower_bound=1)
    flags.DEFINE_multi_integer(
        "seed", [0, 1, 2, 3, 4], "One run for each.", 0, 2**32 - 1
    )
    flags.register_validator("output", str.strip, "Name a folder.")
    for name in ("length", "seed"):
        flags.register_validator(
            name, lambda v: len({*v}) == len(v), "Give each value once."
        )
    app.run(main)
