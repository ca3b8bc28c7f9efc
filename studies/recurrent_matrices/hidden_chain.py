"""Does training build a chain into a recurrent matrix?

Five networks of 50 units with orthogonal initialization learn to read
handwritten digits one pixel at a time. Before and after training, a pulse puts
the units in order, as `hidden_chain` does. A cell has the median (lowest to
highest) of five seeds.
"""

import keras
import numpy as np
from tqdm import tqdm

from engine import pictures
from engine import record
from engine import verdicts
from engine.data import load_images
from engine.measurement import spread
from keras_rin import diagnostics
from keras_rin import plots
from keras_rin.diagnostics import HiddenChain
from keras_rin.initializers import Offset
from keras_rin.layers import RIN
from keras_rin.tasks import sequential_pixels


def measure(units=50, epochs=60, seeds=range(5)):
    runs = [measure_network(seed, units, epochs) for seed in tqdm(seeds)]
    return {"initializer": "orthogonal", "runs": runs}


def measure_network(seed, units, epochs):
    keras.utils.set_random_seed(seed)
    train, _, test = (
        (sequential_pixels.generate(x), y) for x, y in load_images("digits")
    )
    model = build(units)
    rin = model.get_layer("rin")
    weights_before, before = measure_chain(rin)
    model.fit(*train, epochs=epochs, verbose=0)
    weights_after, after = measure_chain(rin)
    after["test accuracy"] = model.evaluate(*test, verbose=0)[1]
    return {
        "seed": seed,
        "before": before,
        "after": after,
        "weights": {"before": weights_before, "after": weights_after},
    }


def build(units):
    initializer = Offset("orthogonal")
    rin = RIN(units, "elu", recurrent_initializer=initializer, name="rin")
    read_out = keras.layers.Dense(10)
    model = keras.Sequential([keras.Input((None, 1)), rin, read_out])
    adam = keras.optimizers.Adam(0.001, clipnorm=1.0)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(adam, loss, metrics=["accuracy"])
    return model


def measure_chain(rin):
    """The mean weights by difference in order, and the rows of the table."""
    chain = diagnostics.hidden_chain(rin)
    weights = chain.mean_weight["recurrent"].tolist()
    weight = dict(zip(chain.difference, weights, strict=True))
    matrix = diagnostics.recurrent_matrices(rin)["recurrent"]
    return weights, {
        "mean weight to the next unit": weight[1],
        "mean weight to the unit before": weight[-1],
        "Henrici departure": diagnostics.henrici_departure(matrix),
    }


def tables(results):
    rows = []
    for label in results["runs"][0]["after"]:
        row = [label]
        for when in ("before", "after"):
            runs = [run[when] for run in results["runs"]]
            values = [run[label] for run in runs if label in run]
            row.append(spread(values) if values else "")
        rows.append(row)
    header = ["orthogonal initialization", "before training", "after training"]
    return {"Five networks": record.markdown(header, rows)}


def draw(results):
    """Mean weight over the order difference."""
    runs = results["runs"]
    figure, axes = pictures.subplots(6, 4)
    units = (len(runs[0]["weights"]["after"]) + 1) // 2
    chains = [chain(run["weights"], units) for run in runs]
    plots.plot_hidden_chain(chains, reach=units // 2, ax=axes)
    axes.set_title("Weights to the units that follow grow", loc="left")
    return figure


def chain(weights, units):
    """A hidden chain before and after training, as if of two gates."""
    means = {f"{when} training": np.array(w) for when, w in weights.items()}
    errors = {name: np.zeros(2 * units - 1) for name in means}
    difference = np.arange(1 - units, units)
    return HiddenChain(difference, means, errors, np.arange(units), None)


PICTURES = {"hidden_chain.svg": draw}
SMALLEST = {"units": 8, "epochs": 1, "seeds": (0,)}


def training_increases_nonnormality(results):
    before, after = (
        [run[when]["Henrici departure"] for run in results["runs"]]
        for when in ("before", "after")
    )
    return verdicts.difference(after, before)


def training_hides_a_chain(results):
    """Mean weights to the next and to the previous unit, after training."""
    to_next, to_previous = (
        [run["after"][f"mean weight to the {unit}"] for run in results["runs"]]
        for unit in ("next unit", "unit before")
    )
    return verdicts.difference(to_next, to_previous)
