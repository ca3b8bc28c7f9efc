"""How many weights memorise random labels, without training?

`perfect_fit` constructs a network for random points in 64 dimensions with
random labels of 10 classes. The table compares its parameters with the
n ln n + r^2 of the theorem for n points and r classes, and its predictions in
float32, in batches of two sizes, with the labels.
"""

import resource
import time

import numpy as np
from tqdm import tqdm

from engine import pictures
from engine import record
from engine import verdicts
from keras_rin.constructions import perfect_fit

FEATURES = 64
POINTS = (200, 1_000, 5_000, 20_000, 100_000)
BATCH_SIZES = (333, 4_096)


def measure(points=POINTS, classes=10):
    runs = [fit(n, classes) for n in tqdm(points)]
    return {"runs": runs}


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
    columns = {
        "points": "{points:,}",
        "width": "{width}",
        "parameters": "{parameters:,}",
        "over n ln n + r^2": "{ratio:.2f}",
        "margin": "{margin:.1e}",
        "seconds to construct": "{seconds:.1f}",
        "peak memory, GB": "{peak_gigabytes:.2f}",
    }
    for size in results["runs"][0]["accuracy"]:
        columns[f"accuracy, batches of {size}"] = f"{{of {size}:.2%}}"
    rows = [
        {**run, "ratio": run["parameters"] / theorem(run)}
        | {f"of {size}": share for size, share in run["accuracy"].items()}
        for run in results["runs"]
    ]
    return {"By number of points": record.table(columns, rows)}


def draw(results):
    """Parameters over points."""
    figure, axes = pictures.subplots(6, 4)
    runs = results["runs"]
    points = [run["points"] for run in runs]
    counts = [run["parameters"] for run in runs]
    axes.loglog(points, counts, "o-", label="perfect_fit")
    bounds = [theorem(run) for run in runs]
    axes.loglog(points, bounds, "--", label="n ln n + r^2")
    axes.set(xlabel="points with random labels, n", ylabel="parameters")
    axes.legend()
    return figure


PICTURES = {"parameters.svg": draw}
SMALLEST = {"points": (1, 50), "classes": 1}


def fits_any_labels(results):
    runs = results["runs"]
    ratios = [run["parameters"] / theorem(run) for run in runs]
    accuracies = [share for run in runs for share in run["accuracy"].values()]
    points = max(run["points"] for run in runs)
    summary = f"accuracy {min(accuracies):.2%}, {min(ratios):.2f} to "
    summary += f"{max(ratios):.2f} (n ln n + r^2) parameters"
    yes = min(accuracies) == 1 and max(ratios) < 3
    answer = verdicts.answer(yes, not yes)
    return verdicts.Part(f"up to {points:,} points", summary, answer)
