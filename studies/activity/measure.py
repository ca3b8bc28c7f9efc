"""Which layer recognizes motions from a smart watch, with as many weights?

BasicMotions, from the UCR and UEA archives: 40 recordings to train on and 40 to
test on, of an accelerometer and a gyroscope, 100 steps of 6 channels, 4
classes. 8 epochs of 25 updates, with batches of 16 recordings, Adam with
`beta_2=0.99` and gradients clipped to a global norm of 1, and cosine decay;
only the answer after the last step is trained. Median (lowest to highest) of
three seeds; kB is the size of the LiteRT file of the run with the lowest
training loss. An accuracy of 40 recordings changes by 0.025 with one of them.
The seconds of an epoch are a median, on two cores. The microseconds of a step
are those of [streaming](../exports/README.md).

Each layer's own learning rate has the highest accuracy in cross-validation on
the training recordings, of which four parts are left out in turn, each with
about as many recordings of each class; the smaller one in a tie.
"""

import itertools
import pathlib
import statistics
import tempfile
import time

import numpy as np

from engine import record
from engine import recordings
from engine.measurement import Variant
from engine.measurement import groups
from engine.measurement import spread
from engine.models import LAYERS
from keras_rin import plots
from keras_rin.export import export_streaming

OWN_RATES = {"RIN": 0.001, "SimpleRNN": 0.001, "GRU": 0.003, "LSTM": 0.01}
RATES = (0.001, 0.003, 0.01, 0.03)
SHARED = 0.003
PERCENT = (10, 25, 50, 75, 100)


def measure(folds=0, seeds=range(3), epochs=8, units=64, names=()):
    train, test = recordings.read("BasicMotions")
    if folds:
        return {"runs": cross_validate(train, folds, seeds, epochs, units)}
    layers = [
        compare(name, train, test, seeds, epochs, units)
        for name in names or LAYERS
    ]
    chance = float(np.bincount(test.y).max() / len(test.y))
    return {"chance": chance, "layers": layers}


def compare(name, train, test, seeds, epochs, units):
    """Trains a layer at its own rate and at the shared one, and exports it.

    The run of the lowest training loss at the layer's own rate is exported.
    """
    model = recordings.build(LAYERS[name], train, units)
    own, lowest, runs = OWN_RATES[name], np.inf, []
    for rate, seed in itertools.product(dict.fromkeys([own, SHARED]), seeds):
        start = time.perf_counter()
        loss = recordings.train(model, train, rate, seed, epochs)
        seconds = (time.perf_counter() - start) / epochs
        run = {"rate": rate, "seed": seed, "loss": loss, "seconds": seconds}
        runs.append(run | {"accuracies": recordings.accuracies(model, test)})
        if rate == own and loss < lowest:
            lowest, weights = loss, model.get_weights()
    model.set_weights(weights)
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "model.tflite")
        export_streaming(model, path, format="litert", verbose=False)
        size = path.stat().st_size
    results = {"layer": name, "weights": model.count_params(), "own": own}
    return results | {"runs": runs, "kB": size / 1000}


def draw(results):
    """Accuracy after each part of the recordings."""
    if "chance" not in results:  # the variant of learning rates
        return None
    curves = {
        of["layer"]: [run["accuracies"] for run in runs_at(of, of["own"])]
        for of in results["layers"]
    }
    figure = plots.plot_learning_curves(
        curves, ylabel="accuracy, test data", baseline=results["chance"]
    )
    (axes,) = figure.axes
    axes.set_xlabel("part of the recording (%)")
    title = "RIN, GRU and LSTM need half a recording, SimpleRNN all of it"
    axes.set_title(title, loc="left")
    return figure


def runs_at(result, rate):
    return [run for run in result["runs"] if run["rate"] == rate]


def cross_validate(every, folds, seeds, epochs, units):
    """Of each layer, fold, rate and seed, how many are right of how many."""
    runs = []
    for name, fold in itertools.product(LAYERS, range(folds)):
        is_out = recordings.parts(every.y, folds) == fold
        train, test = (
            recordings.Recordings(*(of[rows] for of in every))
            for rows in (~is_out, is_out)
        )
        model = recordings.build(LAYERS[name], train, units)
        for rate, seed in itertools.product(RATES, seeds):
            loss = recordings.train(model, train, rate, seed, epochs)
            right = recordings.accuracies(model, test)[-1] * len(test.y)
            run = {"layer": name, "fold": fold, "rate": rate, "seed": seed}
            run |= {"loss": loss, "right": round(right), "of": len(test.y)}
            runs.append(run)
    return runs


def tables(results):
    if "runs" in results:
        return {"Accuracy in cross-validation": cross_validation(results)}
    rows = [row(result) for result in results["layers"]]
    header = ["layer", "weights", "own rate", "accuracy"]
    header += [f"accuracy at {SHARED:g}", "seconds an epoch", "kB"]
    rows.append(["most frequent class", "0", "", f"{results['chance']:.3g}"])
    along = []
    for result in results["layers"]:
        own_runs = runs_at(result, result["own"])
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


def row(result):
    at_own, at_shared = (
        spread([run["accuracies"][-1] for run in runs_at(result, rate)])
        for rate in (result["own"], SHARED)
    )
    seconds = [run["seconds"] for run in result["runs"]]  # the first compiles
    cells = [result["layer"], f"{result['weights']:,}", f"{result['own']:g}"]
    cells += [at_own, at_shared]
    cells.append(f"{statistics.median(seconds[1:] or seconds):.2g}")
    return [*cells, f"{result['kB']:.0f}"]


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
