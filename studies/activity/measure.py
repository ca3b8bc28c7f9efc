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
the training recordings, of which four parts were left out in turn, each with
about as many recordings of each class; the smaller one in a tie. These were
measured by the variant `rates` of commit 9bb2c1e; at 0.03 each run of RIN
diverged:

| layer | 0.001 | 0.003 | 0.01 | 0.03 |
|---|---|---|---|---|
| RIN | 0.975 | 0.925 | 0.925 | 0.500 |
| SimpleRNN | 0.750 | 0.725 | 0.675 | 0.450 |
| GRU | 0.600 | 0.925 | 0.850 | 0.850 |
| LSTM | 0.850 | 0.900 | 0.975 | 0.975 |
"""

import itertools
import pathlib
import statistics
import tempfile
import time

import numpy as np

from engine import record
from engine import recordings
from engine.measurement import spread
from engine.models import LAYERS
from keras_rin import plots
from keras_rin.export import export_streaming

OWN_RATES = {"RIN": 0.001, "SimpleRNN": 0.001, "GRU": 0.003, "LSTM": 0.01}
SHARED = 0.003
PERCENT = (10, 25, 50, 75, 100)


def measure(seeds=range(3), epochs=8, units=64, names=tuple(LAYERS)):
    train, test = recordings.read("BasicMotions")
    layers = [
        compare(name, train, test, seeds, epochs, units) for name in names
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


def tables(results):
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


PICTURES = {"accuracy.svg": draw}
SMALLEST = {"seeds": (0,), "epochs": 1, "units": 2, "names": ("RIN",)}
