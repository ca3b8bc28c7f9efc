"""Constructs networks that memorise random labels, without training.

    python memorise_random_labels.py
    python memorise_random_labels.py --points=1000 --classes=100

For each number of points n, compares the parameters of the network with the
n ln n of the theorem, and its predictions in float32, in batches of more than
one size, with the labels.
"""

import json
import os
import pathlib
import resource
import shlex
import sys
import time
from importlib.metadata import version

import numpy as np
from absl import app
from absl import flags
from matplotlib.figure import Figure
from tabulate import tabulate
from tqdm import tqdm

from keras_rin.constructions import perfect_fit

FEATURES = 64
BATCH_SIZES = (333, 4_096)  # to predict with

FLAGS = flags.FLAGS


def fit(n):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, FEATURES))
    y = rng.integers(FLAGS.classes, size=n)
    begin = time.perf_counter()
    model, margin = perfect_fit(x, y)
    seconds = time.perf_counter() - begin
    kilobytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    accuracy = {}
    for size in BATCH_SIZES:
        logits = model.predict(x, batch_size=size, verbose=0)
        accuracy[str(size)] = float(np.mean(logits.argmax(axis=1) == y))
    return {
        "points": n,
        "classes": FLAGS.classes,
        "width": model.layers[1].units,
        "parameters": model.count_params(),
        "margin": margin,
        "seconds": seconds,
        "peak_gigabytes": kilobytes * 1024 / 1e9,
        "accuracy": accuracy,
    }


def theorem(run):
    n, r = run["points"], run["classes"]
    return n * np.log(n) + r**2


def tables(record):
    """{file: table in Markdown}, one row for each number of points."""
    header = ["points", "width", "parameters", "over n ln n + r^2", "margin"]
    header += ["seconds to construct", "peak memory, GB"]
    sizes = record["runs"][0]["accuracy"]
    header += [f"accuracy, batches of {size}" for size in sizes]
    rows = [
        [
            f"{run['points']:,}",
            run["width"],
            f"{run['parameters']:,}",
            f"{run['parameters'] / theorem(run):.2f}",
            f"{run['margin']:.1e}",
            f"{run['seconds']:.1f}",
            f"{run['peak_gigabytes']:.2f}",
            *(f"{accuracy:.2%}" for accuracy in run["accuracy"].values()),
        ]
        for run in record["runs"]
    ]
    return {"table.md": tabulate(rows, header, "github", disable_numparse=True)}


def draw(runs):
    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    points = [run["points"] for run in runs]
    counts = [run["parameters"] for run in runs]
    axes.loglog(points, counts, "o-", label="perfect_fit")
    bounds = [theorem(run) for run in runs]
    axes.loglog(points, bounds, "--", label="n ln n + r^2")
    axes.set(xlabel="points with random labels, n", ylabel="parameters")
    axes.legend()
    return figure


def main(argv):
    if argv[1:]:
        raise app.UsageError(f"Flags begin with --. Received: {argv[1:]}")
    folder = pathlib.Path(FLAGS.output)
    folder.mkdir(parents=True, exist_ok=True)
    command = os.path.relpath(__file__), *sys.argv[1:]
    packages = "keras-rin", "keras", "numpy"
    record = {
        "tables": "examples.memorise_random_labels",
        "command": shlex.join(["python", *command]),
        "versions": {name: version(name) for name in packages},
        "runs": [fit(n) for n in tqdm(sorted(FLAGS.points))],
    }
    (folder / "results.new").write_text(json.dumps(record) + "\n")
    os.replace(folder / "results.new", folder / "results.json")
    for file, table in tables(record).items():
        (folder / file).write_text(table + "\n")
        print(f"\n{folder / file}\n\n{table}")
    draw(record["runs"]).savefig(folder / "parameters.png", dpi=120)


if __name__ == "__main__":
    points = [200, 1_000, 5_000, 20_000, 100_000]
    output = "runs/memorise_random_labels"
    flags.DEFINE_string("output", output, "Folder to write to.")
    flags.DEFINE_multi_integer("points", points, "Repeat the flag.", 1)
    flags.DEFINE_integer("classes", 10, "Classes of labels.", lower_bound=1)
    flags.register_validator("output", str.strip, "Name a folder.")
    flags.register_validator(
        "points", lambda v: len({*v}) == len(v), "Give each value once."
    )
    app.run(main)
