"""Measures how far a gradient reaches back before any training.

    python gradient_horizons.py
    python gradient_horizons.py --length=400

The gradient norm of the last hidden state with respect to each earlier one, on
sequences of the adding problem, for newly initialized layers. Writes a table
and a picture.
"""

import json
import os
import pathlib
import shlex
import sys
from importlib.metadata import version

import keras
import numpy as np
from absl import app
from absl import flags
from matplotlib.figure import Figure
from tabulate import tabulate

from keras_rin import diagnostics
from keras_rin import plots
from keras_rin.initializers import Chain
from keras_rin.initializers import Offset
from keras_rin.layers import RIN
from keras_rin.tasks import adding

LAYERS = {
    "RIN": RIN,
    "RIN, offset 0.01": lambda units: RIN(
        units, recurrent_initializer=keras.initializers.RandomNormal(0, 0.01)
    ),
    "RIN chain": lambda units: RIN(
        units, recurrent_initializer=Offset(Chain(1.0))
    ),
    "SimpleRNN": keras.layers.SimpleRNN,
    "LSTM": keras.layers.LSTM,
}

FLAGS = flags.FLAGS


def gradient_norms(name, x):
    keras.utils.set_random_seed(0)
    layer = LAYERS[name](FLAGS.units)
    layer.build(x.shape)
    return diagnostics.gradient_norms(layer, x).tolist()


def tables(record):
    """{file: table in Markdown}: the gradient norm at some lags."""
    norms = record["sizes"]
    length = len(next(iter(norms.values()))) - 1
    lags = [lag for lag in (1, 10, 100, 200, 400, 1_000) if lag <= length]
    header = ["layer", *(f"lag {lag:,}" for lag in lags)]
    rows = [
        [name, *(f"{norm[-1 - lag]:.2g}" for lag in lags)]
        for name, norm in norms.items()
    ]
    return {"table.md": tabulate(rows, header, "github", disable_numparse=True)}


def draw(norms):
    """The first 100 lags, beside all of them."""
    figure = Figure(figsize=(9, 4), layout="constrained")
    near, far = figure.subplots(1, 2)
    plots.plot_gradient_norms({k: v[-101:] for k, v in norms.items()}, ax=near)
    plots.plot_gradient_norms(norms, ax=far)
    near.get_legend().remove()
    return figure


def main(argv):
    if argv[1:]:
        raise app.UsageError(f"Flags begin with --. Received: {argv[1:]}")
    folder = pathlib.Path(FLAGS.output)
    folder.mkdir(parents=True, exist_ok=True)
    x, _ = adding.generate(np.random.default_rng(0), 16, FLAGS.length)
    norms = {name: gradient_norms(name, x) for name in LAYERS}
    command = os.path.relpath(__file__), *sys.argv[1:]
    packages = "keras-rin", "keras", keras.backend.backend()
    record = {
        "tables": "examples.gradient_horizons",
        "command": shlex.join(["python", *command]),
        "versions": {name: version(name) for name in packages},
        "sizes": norms,
    }
    (folder / "results.new").write_text(json.dumps(record) + "\n")
    os.replace(folder / "results.new", folder / "results.json")
    for file, table in tables(record).items():
        (folder / file).write_text(table + "\n")
        print(f"\n{folder / file}\n\n{table}")
    draw(norms).savefig(folder / "gradient_horizons.png", dpi=120)


if __name__ == "__main__":
    flags.DEFINE_string("output", "runs/gradient_horizons", "Folder to write.")
    flags.DEFINE_integer("length", 1_000, "Time steps.", lower_bound=2)
    flags.DEFINE_integer("units", 100, "Units of each layer.", lower_bound=1)
    flags.register_validator("output", str.strip, "Name a folder.")
    app.run(main)
