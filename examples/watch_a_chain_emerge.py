"""Trains from an orthogonal initialization, then looks for a hidden chain.

    python watch_a_chain_emerge.py

Each network learns to read handwritten digits one pixel at a time. Before and
after training, a pulse puts the units in order; during training, a callback
logs the departure of the recurrent matrix from normality. Writes one table and
two pictures.
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
from sklearn.datasets import load_digits
from tabulate import tabulate
from tqdm.keras import TqdmCallback

from keras_rin import diagnostics
from keras_rin import plots
from keras_rin.callbacks import RecurrentDiagnostics
from keras_rin.initializers import Offset
from keras_rin.layers import RIN
from keras_rin.tasks import sequential_pixels

FLAGS = flags.FLAGS


def load():
    """Pairs (sequences, labels) to train and test on."""
    data = load_digits()
    order = np.random.default_rng(0).permutation(len(data.target))
    x = sequential_pixels.generate(data.images[order] / 16)
    y = data.target[order]
    return (x[503:], y[503:]), (x[:360], y[:360])


def build():
    start = Offset("orthogonal")
    rin = RIN(FLAGS.units, "elu", recurrent_initializer=start, name="rin")
    read_out = keras.layers.Dense(10)
    model = keras.Sequential([keras.Input((None, 1)), rin, read_out])
    model.compile(
        keras.optimizers.Adam(0.001, clipnorm=1.0),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    return model


def measure(rin):
    """The chain found, and the numbers of it that the table has."""
    chain = diagnostics.hidden_chain(rin)
    weights = chain.mean_weight["recurrent"]
    weight = dict(zip(chain.difference, weights, strict=True))
    matrix = diagnostics.recurrent_matrices(rin)["recurrent"]
    return chain, {
        "mean weight to the next unit": weight[1],
        "mean weight to the unit before": weight[-1],
        "Henrici departure": diagnostics.henrici_departure(matrix),
    }


def train(seed):
    """One network: the chains before and after, and its record."""
    keras.utils.set_random_seed(seed)
    (x, y), test = load()
    model = build()
    rin = model.get_layer("rin")
    chain_before, before = measure(rin)
    progress = TqdmCallback(verbose=0, desc=f"seed {seed}")
    history = model.fit(
        x,
        y,
        epochs=FLAGS.epochs,
        verbose=0,
        callbacks=[RecurrentDiagnostics(budget=None), progress],
    ).history
    chain_after, after = measure(rin)
    after["test accuracy"] = model.evaluate(*test, verbose=0)[1]
    return (chain_before, chain_after), {
        "seed": seed,
        "before": before,
        "after": after,
        "henrici_departure": history["rin_henrici_departure"],
    }


def tables(record):
    """{file: table in Markdown}: median, lowest and highest of the seeds."""
    rows = []
    for label in record["runs"][0]["after"]:
        row = [label]
        for when in ("before", "after"):
            runs = [run[when] for run in record["runs"]]
            values = [run[label] for run in runs if label in run]
            row.append(spread(values) if values else "")
        rows.append(row)
    header = ["orthogonal initialization", "before training", "after training"]
    return {"table.md": tabulate(rows, header, "github", disable_numparse=True)}


def spread(values):
    middle = statistics.median(values)
    return f"{middle:.3g} ({min(values):.3g} to {max(values):.3g})"


def draw_chains(chains):
    figure = Figure(figsize=(9, 4), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    for number, when in enumerate(("before", "after")):
        hidden_chains = [pair[number] for pair in chains]
        plots.plot_hidden_chain(
            hidden_chains, reach=FLAGS.units // 2, ax=panels[number]
        )
        panels[number].set_title(f"{when} training, {len(chains)} networks")
    return figure


def main(argv):
    if argv[1:]:
        raise app.UsageError(f"Flags begin with --. Received: {argv[1:]}")
    folder = pathlib.Path(FLAGS.output)
    folder.mkdir(parents=True, exist_ok=True)
    chains, runs = zip(*map(train, FLAGS.seed), strict=True)
    command = os.path.relpath(__file__), *sys.argv[1:]
    packages = "keras-rin", "keras", keras.backend.backend()
    record = {
        "tables": "examples.watch_a_chain_emerge",
        "command": shlex.join(["python", *command]),
        "versions": {name: version(name) for name in packages},
        "runs": runs,
    }
    (folder / "results.new").write_text(json.dumps(record) + "\n")
    os.replace(folder / "results.new", folder / "results.json")
    for file, table in tables(record).items():
        (folder / file).write_text(table + "\n")
        print(f"\n{folder / file}\n\n{table}")
    draw_chains(chains).savefig(folder / "hidden_chain.png", dpi=120)
    curves = {"orthogonal": [run["henrici_departure"] for run in runs]}
    figure = plots.plot_learning_curves(curves, ylabel="Henrici departure")
    figure.savefig(folder / "henrici_departure.png", dpi=120)


if __name__ == "__main__":
    output = "runs/watch_a_chain_emerge"
    flags.DEFINE_string("output", output, "Folder to write to.")
    flags.DEFINE_integer("units", 50, "Units of the layer.", lower_bound=2)
    flags.DEFINE_integer("epochs", 60, "Epochs of training.", lower_bound=1)
    flags.DEFINE_multi_integer(
        "seed", [0, 1, 2, 3, 4], "One network each.", 0, 2**32 - 1
    )
    flags.register_validator("output", str.strip, "Name a folder.")
    flags.register_validator(
        "seed", lambda v: len({*v}) == len(v), "Give each value once."
    )
    app.run(main)
