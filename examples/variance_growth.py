"""Growth of the activations through residual blocks before any training.

    python variance_growth.py

Sends standard normal noise through untrained blocks x + C2(relu(C1 x)) of one
width, without normalization. A table and a picture have the standard deviation
behind each block over that of the noise, for four initializers.
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
from absl import logging
from matplotlib.figure import Figure
from tabulate import tabulate
from tqdm import tqdm

from keras_rin.initializers import SmallVarianceNormal
from keras_rin.layers import ResidualConv2D

SHOWN = (1, 9, 18, 27)  # the paper's network has nine blocks in each stage
INITIALIZERS = {
    "SmallVarianceNormal, 1 / (k^2 c)": lambda filters: SmallVarianceNormal(),
    "1 / (k sqrt(c))": lambda filters: keras.initializers.RandomNormal(
        stddev=1 / (3 * filters**0.5)
    ),
    "glorot_uniform": lambda filters: keras.initializers.GlorotUniform(),
    "he_normal": lambda filters: keras.initializers.HeNormal(),
}

FLAGS = flags.FLAGS


def growth(name, filters, blocks):
    """Standard deviation behind each block, over that of the noise."""
    x = keras.random.normal((4, 16, 16, filters))
    deviations = [np.std(keras.ops.convert_to_numpy(x))]
    for _ in range(blocks):
        block = ResidualConv2D(
            filters,
            use_bias=False,
            kernel_initializer=INITIALIZERS[name](filters),
            output_initializer=INITIALIZERS[name](filters),
        )
        x = block(x)
        deviations.append(np.std(keras.ops.convert_to_numpy(x)))
    return [float(value / deviations[0]) for value in deviations[1:]]


def tables(record):
    """{file: table in Markdown}: median over the draws."""
    rows = []
    for run in record["runs"]:
        blocks = [[draw[block - 1] for draw in run["draws"]] for block in SHOWN]
        medians = [f"{statistics.median(block):,.5g}" for block in blocks]
        rows.append([run["initializer"], *medians])
    header = ["initializer of both kernels", *(f"block {n}" for n in SHOWN)]
    return {"table.md": tabulate(rows, header, "github", disable_numparse=True)}


def draw(runs):
    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    for run, style in zip(runs, ["-", "--", "-.", ":"], strict=True):
        median = np.median(run["draws"], 0)
        blocks = np.arange(1, len(median) + 1)
        axes.plot(blocks, median, style, label=run["initializer"])
    axes.set(xlabel="block", ylabel="standard deviation (input = 1)")
    axes.set_yscale("log")
    axes.legend()
    return figure


def main(argv):
    if argv[1:]:
        raise app.UsageError(f"Flags begin with --. Received: {argv[1:]}")
    logging.set_verbosity(logging.ERROR)
    folder = pathlib.Path(FLAGS.output)
    folder.mkdir(parents=True, exist_ok=True)
    keras.utils.set_random_seed(0)
    runs = [
        {
            "initializer": name,
            "draws": [
                growth(name, FLAGS.filters, max(SHOWN))
                for _ in range(FLAGS.draws)
            ],
        }
        for name in tqdm(INITIALIZERS)
    ]
    command = os.path.relpath(__file__), *sys.argv[1:]
    packages = "keras-rin", "keras", keras.backend.backend()
    record = {
        "tables": "examples.variance_growth",
        "command": shlex.join(["python", *command]),
        "versions": {name: version(name) for name in packages},
        "runs": runs,
    }
    (folder / "results.new").write_text(json.dumps(record) + "\n")
    os.replace(folder / "results.new", folder / "results.json")
    for file, table in tables(record).items():
        (folder / file).write_text(table + "\n")
        print(f"\n{folder / file}\n\n{table}\n")
    draw(runs).savefig(folder / "growth.png", dpi=120)


if __name__ == "__main__":
    flags.DEFINE_string("output", "runs/variance_growth", "Folder to write.")
    flags.DEFINE_integer("filters", 64, "Channels of each block.", 1)
    flags.DEFINE_integer("draws", 3, "Draws of noise and kernels.", 1)
    flags.register_validator("output", str.strip, "Name a folder.")
    app.run(main)
