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

Each layer's own learning rate, of 0.001, 0.003, 0.01 and 0.03, had the highest
accuracy in cross-validation on the training recordings, the smaller one in a
tie.
"""

import pathlib
import tempfile

import numpy as np

from engine import record
from engine.measurement import example
from engine.measurement import spread

SHARED = 0.003
PERCENT = (10, 25, 50, 75, 100)


def measure(seeds=range(3), epochs=8, units=64, names=()):
    activity = example("activity")
    splits = activity.load("BasicMotions")
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
    figure = example("activity").draw(results["layers"], results["chance"])
    title = "RIN, GRU and LSTM need half a recording, SimpleRNN all of it"
    figure.axes[0].set_title(title, loc="left")
    return figure


def tables(results):
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


PICTURES = {"accuracy.svg": draw}
SMALLEST = {"seeds": (0,), "epochs": 1, "units": 2, "names": ("RIN",)}
