"""Do layers of other packages recognize recordings as RIN, GRU and LSTM do?

LMU of the package keras-lmu and CfC of ncps beside RIN, GRU and LSTM, all with
about as many weights as a RIN of 64 units. Half of the state of LMU is its
memory of one mixture of the features, which reaches as far back as a training
sequence is long; the backbone of CfC has as many units as its state. All are
trained by the functions of `examples/activity.py` on BasicMotions and GunPoint
(see [archive](../archive/README.md)) for 16 epochs of 25 updates with batches
of 16. Three seeds at each learning rate; no rate is chosen, all are shown. XLA
compiles everything.

On the adding problem, where a RIN and CfC learn and LMU does not, and in equal
training time, where the order of RIN, GRU and LSTM depends on the data, the
layers were compared as well; both parts were removed.
"""

import functools
import itertools

import keras
import numpy as np

from engine import record
from engine import steps
from engine.measurement import example
from engine.measurement import groups
from engine.measurement import spread
from engine.partial_runs import PartialRuns
from keras_rin.layers import RIN

RATES = (0.001, 0.003, 0.01, 0.03)
NAMES = ("RIN", "GRU", "LSTM", "LMU", "CfC")
DATA = ("BasicMotions", "GunPoint")


def layers(length):
    """{name: function of units that makes a layer}."""
    return {
        "RIN": RIN,
        "GRU": keras.layers.GRU,
        "LSTM": keras.layers.LSTM,
        "LMU": lambda units, **options: steps.lmu(2 * units, length, **options),
        "CfC": lambda units, **options: steps.cfc(
            units, backbone_units=units, **options
        ),
    }


def measure(
    names=NAMES, rates=RATES, seeds=3, epochs=16, units=64, partial=None
):
    runs = PartialRuns(partial, ("data", "layer", "rate", "seed"))
    cases = itertools.product(DATA, names, rates, range(seeds))
    make = functools.partial(recognize, epochs, units)
    return {"runs": runs.complete(cases, make)}


def recognize(epochs, units, data, name, rate, seed):
    model, train_set, test_set = built(data, name, units)
    activity = example("activity")
    loss = activity.train(model, *train_set, rate, seed, epochs)
    diverged = loss == np.inf
    accuracy = 0 if diverged else activity.accuracies(model, *test_set)[-1]
    weights = model.layers[1].count_params()
    return {"weights": weights, "accuracy": accuracy}


@functools.cache
def built(data, name, units):
    """A compiled model, and recordings to train and to test on."""
    activity = example("activity")
    train_set, test_set, classes = activity.load(data)
    layer = layers(max(map(len, train_set[0])))[name]
    activity.LAYERS[name] = layer, None
    model = activity.build(name, train_set[0], len(classes), units)
    return model, train_set, test_set


def tables(results):
    runs = results["runs"]
    rows = [
        [data, layer, f"{of_layer[0]['weights']:,}"]
        + [
            spread([run["accuracy"] for run in of_rate])
            for of_rate in groups(of_layer, "rate").values()
        ]
        for (data, layer), of_layer in groups(runs, "data", "layer").items()
    ]
    header = ["data", "layer", "weights", *map(str, groups(runs, "rate"))]
    caption = "Accuracy on the test set at each learning rate (median, lowest "
    caption += "to highest of the seeds)"
    return {caption: record.markdown(header, rows, words=2)}


SMALLEST = {"names": ("RIN", "GRU"), "rates": RATES[:1], "seeds": 1}
SMALLEST |= {"epochs": 1, "units": 4}
