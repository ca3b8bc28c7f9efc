"""Do layers of other packages learn what RIN, GRU and LSTM learn?

LMU of the package keras-lmu and CfC of ncps beside RIN, GRU and LSTM, all with
about as many weights as the RIN. Half of the state of LMU is its memory of one
mixture of the features, which reaches as far back as a training sequence is
long; the backbone of CfC has as many units as its state. Three seeds at each
learning rate; no rate is chosen, all are shown. XLA compiles everything.

Adding: RIN of 50 units; 2,000 updates with batches of 50 sequences of 200
steps, as at the start of [short then longer](../short_then_longer/README.md),
which has GRU and LSTM. A loss is the mean over 100 sequences, normalized by
that of a constant prediction: 0 is perfect.

Recordings: RIN of 64 units, trained by the functions of `examples/activity.py`
on BasicMotions and GunPoint (see [archive](../archive/README.md)) for 16 epochs
of 25 updates with batches of 16; and for as many epochs as last about as long
as those 16 of RIN. How long an epoch lasts is measured in turns before that;
such times differ by up to a half from one start to the next.
"""

import functools
import itertools

import keras
import numpy as np

from engine import models
from engine import record
from engine import steps
from engine.many_models import ADAM
from engine.many_models import recipe
from engine.measurement import Variant
from engine.measurement import example
from engine.measurement import groups
from engine.measurement import spread
from engine.partial_runs import PartialRuns
from engine.timing import in_turns
from keras_rin.layers import RIN
from keras_rin.tasks import adding

RATES = (0.001, 0.003, 0.01, 0.03)
LENGTH, BATCH, TESTS = 200, 50, {200: 100, 1_000: 100, 5_000: 100}
TIMED = 10  # epochs
NAMES = ("RIN", "GRU", "LSTM", "LMU", "CfC")


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
    recordings=(),
    names=NAMES,
    rates=RATES,
    seeds=3,
    updates=2_000,
    epochs=16,
    units=50,
    tests=TESTS,
    partial=None,
):
    recognize = functools.cache(recognition)

    def train(data, *case):
        if data == "adding":
            return add(updates, units, tests, *case)
        return recognize(data, names, epochs, units)(*case)

    runs = PartialRuns(partial, ("data", "layer", "rate", "seed"))
    data = recordings or ["adding"]
    cases = itertools.product(data, names, rates, range(seeds))
    return {"runs": runs.complete(cases, train)}


def add(updates, units, tests, name, rate, seed):
    """Trains on adding; the losses over the lengths of `tests`."""
    keras.utils.set_random_seed(seed)
    rng = np.random.default_rng(seed)
    x, y = adding.generate(rng, BATCH * min(updates, 200), LENGTH)
    make = layers(LENGTH)[name]
    units = models.as_many_weights(make, units, x.shape[-1])
    model = models.normalized(make(units), x)
    optimizer = keras.optimizers.Adam(recipe(updates, rate), **ADAM)
    model.compile(optimizer, "mse", jit_compile=True)
    epochs = max(1, updates // 200)
    model.fit(x, y, batch_size=BATCH, epochs=epochs, verbose=0)
    weights = model.layers[1].count_params()
    return {"weights": weights, "tests": test(model, tests)}


def test(model, tests):
    """{length: the normalized loss, the mean over new sequences}."""
    losses = {}
    for length, samples in tests.items():
        x, y = adding.generate(np.random.default_rng(length), samples, length)
        loss = model.evaluate(x, y, samples, verbose=0)
        losses[str(length)] = {"mean": loss / adding.baseline_loss()}
    return losses


def recognition(data, names, epochs, units):
    """The function (name, rate, seed) that trains on recordings."""
    activity = example("activity")
    train_set, test_set, classes = activity.load(data)
    makers = layers(max(map(len, train_set[0])))
    activity.LAYERS.update({name: (makers[name], None) for name in names})
    built = {
        name: activity.build(name, train_set[0], len(classes), units)
        for name in names
    }

    def train(name, *training):
        return activity.train(built[name], *train_set, *training)

    def accuracy(name, *training):
        if train(name, *training) == np.inf:
            return 0.0
        return activity.accuracies(built[name], *test_set)[-1]

    times = epoch_times(train, names)

    def run(name, rate, seed):
        equal = max(1, round(epochs * min(1, times["RIN"] / times[name])))
        accuracies = {n: accuracy(name, rate, seed, n) for n in {epochs, equal}}
        return {
            "weights": built[name].layers[1].count_params(),
            "milliseconds": times[name],
            "epochs": equal,
            "accuracy": accuracies[epochs],
            "accuracy in equal time": accuracies[equal],
        }

    return run


def epoch_times(train, names):
    """{name: milliseconds of an epoch}, without those of a new start."""
    for name in names:
        train(name, RATES[0], 0, 1)  # compiles
    starts = itertools.product(names, (1, 1 + TIMED))
    times = in_turns(
        {
            (name, epochs): functools.partial(train, name, RATES[0], 0, epochs)
            for name, epochs in starts
        },
        3,
    )
    return {
        name: float(
            np.median(np.subtract(times[name, 1 + TIMED], times[name, 1]))
        )
        / TIMED
        for name in names
    }


def tables(results):
    runs = results["runs"]
    if "tests" in runs[0]:
        return {
            "Loss after training on 200 steps, at each learning rate (median, "
            "lowest to highest of the seeds)": adding_table(runs)
        }
    return {
        "Accuracy on the test set after equally many updates, at each learning "
        "rate (median, lowest to highest of the seeds); ms an epoch": (
            accuracy_table(runs, "accuracy", "milliseconds")
        ),
        "Accuracy in equal time, after the number of epochs beside it": (
            accuracy_table(runs, "accuracy in equal time", "epochs")
        ),
    }


def adding_table(runs):
    lengths = list(runs[0]["tests"])
    rows = [
        [
            layer,
            f"{layer_runs[0]['weights']:,}",
            rate,
            *(
                spread([run["tests"][n]["mean"] for run in of_rate], 2)
                for n in lengths
            ),
        ]
        for layer, layer_runs in groups(runs, "layer").items()
        for rate, of_rate in groups(layer_runs, "rate").items()
    ]
    header = ["layer", "weights", "rate", *(f"{int(n):,}" for n in lengths)]
    return record.markdown(header, rows)


def accuracy_table(runs, key, beside):
    rows = [
        [
            data,
            layer,
            f"{layer_runs[0]['weights']:,}",
            f"{layer_runs[0][beside]:.3g}",
            *(
                spread([run[key] for run in of_rate])
                for of_rate in groups(layer_runs, "rate").values()
            ),
        ]
        for data, of_data in groups(runs, "data").items()
        for layer, layer_runs in groups(of_data, "layer").items()
    ]
    rates = groups(runs, "rate")
    header = ["data", "layer", "weights", beside, *map(str, rates)]
    return record.markdown(header, rows, words=2)


VARIANTS = {
    "": Variant("Adding", {"names": ("RIN", "LMU", "CfC"), "rates": RATES[:3]}),
    "recordings": Variant(
        "Recordings", {"recordings": ("BasicMotions", "GunPoint"), "units": 64}
    ),
}
SMALLEST = {
    "names": ("RIN", "GRU"),
    "rates": RATES[:1],
    "seeds": 1,
    "updates": 2,
    "units": 4,
    "tests": {5: 2},
}
