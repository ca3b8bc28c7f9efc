"""Which layer recognizes motions from a smart watch, with as many weights?

BasicMotions, from the UCR and UEA archives: 40 recordings to train on and 40 to
test on, of an accelerometer and a gyroscope, 100 steps of 6 channels, 4
classes. This is the table of `examples/activity.py`, which reads the data with
sktime: 8 epochs of 25 updates, with batches of 16 recordings, Adam with
`beta_2=0.99` and gradients clipped to a global norm of 1, and cosine decay;
only the answer after the last step is trained. Median (lowest to highest) of
three seeds; kB is the size of the LiteRT file of the run with the lowest
training loss. An accuracy of 40 recordings changes by 0.025 with one of them.
The seconds of an epoch are a median, on two cores. The microseconds of a step,
which the example also prints, differ by a factor of two from start to start;
[streaming](../exports/README.md) measures them with care.

Each layer's own learning rate has the highest accuracy in cross-validation on
the training recordings, of which four parts are left out in turn, each with
about as many recordings of each class; the smaller one in a tie.
"""

import itertools
import pathlib
import tempfile

import numpy as np
from tqdm import tqdm

from engine import record
from engine.measurement import Variant
from engine.measurement import example
from engine.measurement import groups
from engine.measurement import spread
from engine.recordings import parts

RATES = (0.001, 0.003, 0.01, 0.03)
SHARED = 0.003
PERCENT = (10, 25, 50, 75, 100)


def measure(folds=0, seeds=range(3), epochs=8, units=64, names=()):
    activity = example("activity")
    splits = activity.load("BasicMotions")
    if folds:
        runs = cross_validate(activity, splits, folds, seeds, epochs, units)
        return {"runs": runs}
    with tempfile.TemporaryDirectory() as folder:
        results = [
            activity.compare(
                *(name, splits, pathlib.Path(folder), SHARED),
                *(seeds, epochs, units),
            )
            for name in names or activity.LAYERS
        ]
    labels = splits[1][1]
    chance = float(np.bincount(labels).max() / len(labels))
    return {"chance": chance, "layers": results}


def draw(results):
    """Accuracy after each part of the recordings."""
    if "chance" not in results:  # the variant of learning rates
        return None
    figure = example("activity").draw(results["layers"], results["chance"])
    title = "RIN, GRU and LSTM need half a recording, SimpleRNN all of it"
    figure.axes[0].set_title(title, loc="left")
    return figure


def cross_validate(activity, splits, folds, seeds, epochs, units):
    """Of each layer, fold, rate and seed, how many are right of how many."""
    (x, y), _, classes = splits
    runs, cases = [], list(itertools.product(activity.LAYERS, range(folds)))
    for name, fold in tqdm(cases):
        left_out = parts(y, folds) == fold
        train, test = (
            ([x[row] for row in np.flatnonzero(rows)], y[rows])
            for rows in (~left_out, left_out)
        )
        model = activity.build(name, train[0], len(classes), units)
        for rate, seed in itertools.product(RATES, seeds):
            loss = activity.train(model, *train, rate, seed, epochs)
            right = activity.accuracies(model, *test)[-1] * len(test[1])
            run = {"layer": name, "fold": fold, "rate": rate, "seed": seed}
            run |= {"loss": loss, "right": round(right), "of": len(test[1])}
            runs.append(run)
    return runs


def tables(results):
    if "runs" in results:
        return {"Accuracy in cross-validation": cross_validation(results)}
    activity = example("activity")
    rows = [activity.row(result, SHARED) for result in results["layers"]]
    header = [name for name in rows[0] if name != "µs a step"]
    rows = [[row[name] for name in header] for row in rows]
    rows.append(["most frequent class", "0", "", f"{results['chance']:.3g}"])
    along = []
    for result in results["layers"]:
        own_runs = [
            run for run in result["runs"] if run["rate"] == result["own"]
        ]
        after = (
            [run["accuracies"][at - 1] for run in own_runs] for at in PERCENT
        )
        along.append([result["layer"], *map(spread, after)])
    after = [f"after {percent} %" for percent in PERCENT]
    return {
        "Test set": record.markdown(header, rows),
        "Accuracy along the recordings, each layer at its own rate": (
            record.markdown(["layer", *after], along)
        ),
    }


def cross_validation(results):
    rows = []
    for layer, of_layer in groups(results["runs"], "layer").items():
        cells = [layer]
        for runs in groups(of_layer, "rate").values():
            right, of = (sum(run[k] for run in runs) for k in ("right", "of"))
            diverged = sum(run["loss"] == np.inf for run in runs)
            note = f", {diverged} of {len(runs)} diverged" if diverged else ""
            cells.append(f"{right / of:.3f}{note}")
        rows.append(cells)
    return record.markdown(["layer", *map(str, RATES)], rows)


PICTURES = {"accuracy.svg": draw}
VARIANTS = {
    "": Variant("Test set"),
    "rates": Variant("Learning rates", {"folds": 4, "seeds": (0,)}),
}
SMALLEST = {"seeds": (0,), "epochs": 1, "units": 2, "names": ("RIN",)}
