"""How many weights memorise random labels, without training?

`perfect_fit` constructs a network for random points in 64 dimensions with
random labels of 10 classes. The table compares its parameters with the
n ln n + r^2 of the theorem for n points and r classes, and its predictions in
float32, in batches of two sizes, with the labels.
"""

import resource
import time

import numpy as np
from matplotlib.figure import Figure
from tqdm import tqdm

from engine import record
from engine.measurement import Measurement
from keras_rin.constructions import perfect_fit

FEATURES = 64
POINTS = (200, 1_000, 5_000, 20_000, 100_000)
BATCH_SIZES = (333, 4_096)


def measure(points=POINTS, classes=10):
    runs = [fit(n, classes) for n in tqdm(points)]
    return {"runs": runs}, {"parameters": draw(runs)}


def fit(n, classes):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, FEATURES))
    y = rng.integers(classes, size=n)
    start = time.perf_counter()
    model, margin = perfect_fit(x, y)
    seconds = time.perf_counter() - start
    kilobytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    accuracy = {}
    for size in BATCH_SIZES:
        logits = model.predict(x, batch_size=size, verbose=0)
        accuracy[str(size)] = float(np.mean(logits.argmax(axis=1) == y))
    return {
        "points": n,
        "classes": classes,
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


def tables(results):
    header = ["points", "width", "parameters", "over n ln n + r^2", "margin"]
    header += ["seconds to construct", "peak memory, GB"]
    sizes = results["runs"][0]["accuracy"]
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
        for run in results["runs"]
    ]
    return {"By number of points": record.markdown(header, rows)}


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


STUDY = Measurement(
    __file__,
    __doc__,
    measure,
    tables,
    {"parameters": "Parameters over points"},
    smallest={"points": (1, 50), "classes": 1},
)

if __name__ == "__main__":
    STUDY.main()
