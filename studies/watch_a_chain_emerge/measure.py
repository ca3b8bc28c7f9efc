"""Does training build a chain into a recurrent matrix?

Five networks of 50 units with orthogonal initialization learn to read
handwritten digits one pixel at a time. Before and after training, a pulse puts
the units in order, as `hidden_chain` does. A cell has the median (lowest to
highest) of five seeds.
"""

import keras
from matplotlib.figure import Figure
from tqdm import tqdm

from engine import record
from engine.data import load_images
from engine.measurement import spread
from keras_rin import diagnostics
from keras_rin import plots
from keras_rin.callbacks import RecurrentDiagnostics
from keras_rin.initializers import Offset
from keras_rin.layers import RIN
from keras_rin.tasks import sequential_pixels


def measure(units=50, epochs=60, seeds=range(5)):
    runs, chains = [], {"before": [], "after": []}
    for seed in tqdm(seeds):
        run, before, after = measure_network(seed, units, epochs)
        runs.append(run)
        chains["before"].append(before)
        chains["after"].append(after)
    figures = {"hidden_chain": draw(chains, units)}
    return {"initializer": "orthogonal", "runs": runs, "figures": figures}


def measure_network(seed, units, epochs):
    """The record of one network, and its chains before and after."""
    keras.utils.set_random_seed(seed)
    train, _, test = (
        (sequential_pixels.generate(x), y) for x, y in load_images("digits")
    )
    model = build(units)
    rin = model.get_layer("rin")
    chain_before, before = measure_chain(rin)
    history = model.fit(
        *train,
        epochs=epochs,
        verbose=0,
        callbacks=[RecurrentDiagnostics(budget=None)],
    ).history
    chain_after, after = measure_chain(rin)
    after["test accuracy"] = model.evaluate(*test, verbose=0)[1]
    run = {
        "seed": seed,
        "before": before,
        "after": after,
        "henrici_departure": history["rin_henrici_departure"],
    }
    return run, chain_before, chain_after


def build(units):
    initializer = Offset("orthogonal")
    rin = RIN(units, "elu", recurrent_initializer=initializer, name="rin")
    model = keras.Sequential(
        [keras.Input((None, 1)), rin, keras.layers.Dense(10)]
    )
    model.compile(
        keras.optimizers.Adam(0.001, clipnorm=1.0),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    return model


def measure_chain(rin):
    """The hidden chain, and the rows of the table."""
    chain = diagnostics.hidden_chain(rin)
    weights = chain.mean_weight["recurrent"]
    weight = dict(zip(chain.difference, weights, strict=True))
    matrix = diagnostics.recurrent_matrices(rin)["recurrent"]
    return chain, {
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


def draw(chains, units):
    figure = Figure(figsize=(9, 4), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    for axes, (when, hidden_chains) in zip(panels, chains.items(), strict=True):
        plots.plot_hidden_chain(hidden_chains, reach=units // 2, ax=axes)
        axes.set_title(f"{when} training, {len(hidden_chains)} networks")
    return figure


PICTURES = {"hidden_chain": "Mean weight over the order difference"}
SMALLEST = {"units": 8, "epochs": 1, "seeds": (0,)}
