"""Writes down networks that know random labels by heart, without training.

    python examples/memorise_random_labels.py
    python examples/memorise_random_labels.py --points=1000 --classes=100

Builds one for each number of points, counts its parameters against the n ln n
of the theorem and asks for every label again, in float32 and in batches of
more than one size.
"""

import resource
import time

import numpy as np
import outputs
from absl import app
from absl import flags
from absl import logging
from matplotlib.figure import Figure
from tqdm import tqdm

from keras_rin.constructions import perfect_fit

FLAGS = flags.FLAGS


def fit_and_ask(n):
    rng = np.random.default_rng(FLAGS.seed)
    x = rng.normal(size=(n, FLAGS.features))
    y = rng.integers(FLAGS.classes, size=n)
    start = time.perf_counter()
    model, margin = perfect_fit(x, y)
    seconds = time.perf_counter() - start
    kilobytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {
        "points": n,
        "classes": FLAGS.classes,
        "width": model.layers[1].units,
        "parameters": model.count_params(),
        "margin": margin,
        "seconds": seconds,
        "peak_gigabytes": kilobytes * 1024 / 1e9,
        "accuracy": {
            size: accuracy(model, x, y, size) for size in FLAGS.batch_size
        },
    }


def accuracy(model, x, y, batch_size):
    logits = model.predict(x, batch_size=batch_size, verbose=0)
    return float(np.mean(logits.argmax(axis=1) == y))


def theorem(record):
    n, r = record["points"], record["classes"]
    return n * np.log(n) + r**2


def tables(record):
    rows = [
        [
            f"{run['points']:,}",
            str(run["width"]),
            f"{run['parameters']:,}",
            f"{run['parameters'] / theorem(run):.2f}",
            f"{run['margin']:.1e}",
            f"{run['seconds']:.1f}",
            f"{run['peak_gigabytes']:.2f}",
            *(f"{accuracy:.2%}" for accuracy in run["accuracy"].values()),
        ]
        for run in record["runs"]
    ]
    header = [
        "points",
        "width",
        "parameters",
        "over n ln n + r^2",
        "margin",
        "seconds to build",
        "peak memory, GB",
        *(f"right, batches of {size}" for size in record["batch_sizes"]),
    ]
    return {"table.md": outputs.markdown(header, rows)}


def draw(runs):
    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    points = [run["points"] for run in runs]
    bound = np.array([theorem(run) for run in runs])
    counts = [run["parameters"] for run in runs]
    axes.loglog(points, counts, "o-", label="perfect_fit")
    axes.loglog(points, bound, "--", label="n ln n + r^2")
    axes.set_xlabel("points with random labels, n")
    axes.set_ylabel("parameters")
    axes.legend()
    return figure


def main(argv):
    del argv
    logging.set_verbosity(logging.ERROR)
    output = outputs.prepare(FLAGS.output)
    points = [50] if FLAGS.smoke else sorted(FLAGS.points)
    runs = []
    for n in tqdm(points):
        runs.append(fit_and_ask(n))
    record = {
        "tables": "memorise_random_labels",
        "batch_sizes": FLAGS.batch_size,
        "runs": runs,
    }
    outputs.write(output, record, tables)
    outputs.save_picture(draw(runs), output / "parameters.png")


if __name__ == "__main__":
    flags.DEFINE_string(
        "output", "runs/memorise_random_labels", "Where to write."
    )
    flags.DEFINE_multi_integer(
        "points", [200, 1_000, 5_000, 20_000, 100_000], "To memorise."
    )
    flags.DEFINE_integer("features", 64, "Numbers of a point.", lower_bound=1)
    flags.DEFINE_integer("classes", 10, "Labels to draw from.", lower_bound=1)
    flags.DEFINE_multi_integer("batch_size", [333, 4_096], "To predict with.")
    flags.DEFINE_integer("seed", 0, "Of the points and the labels.")
    flags.DEFINE_bool("smoke", False, "Fifty points: does it run?")
    app.run(main)
