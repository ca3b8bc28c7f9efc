"""Trains from an orthogonal start, then looks for the chain that hides.

    python examples/watch_a_chain_emerge.py
    python examples/watch_a_chain_emerge.py --start=identity

Each network learns to read handwritten digits one pixel at a time. Before and
after, a pulse puts its units in order; while it trains, a callback follows how
far its recurrence is from normal. One table and two pictures.
"""

import statistics

import image_data
import keras
import outputs
from absl import app
from absl import flags
from absl import logging
from matplotlib.figure import Figure
from tqdm.keras import TqdmCallback

from keras_rin import diagnostics
from keras_rin import plots
from keras_rin.callbacks import RecurrentDiagnostics
from keras_rin.initializers import Chain
from keras_rin.initializers import Offset
from keras_rin.layers import RIN
from keras_rin.tasks import sequential_pixels

STARTS = {
    "orthogonal": lambda: Offset("orthogonal"),
    "identity": lambda: "zeros",
    "chain": lambda: Offset(Chain()),
}

FLAGS = flags.FLAGS


def build_model(features, classes):
    start = STARTS[FLAGS.start]()
    rin = RIN(FLAGS.units, "elu", recurrent_initializer=start, name="rin")
    model = keras.Sequential(
        [keras.Input((None, features)), rin, keras.layers.Dense(classes)]
    )
    model.compile(
        keras.optimizers.Adam(FLAGS.learning_rate, clipnorm=1.0),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    return model


def look(rin):
    """The chain found, and what of it goes into the results file."""
    found = diagnostics.hidden_chain(rin)
    weight = dict(
        zip(found.difference, found.mean_weight["recurrent"], strict=True)
    )
    matrix = diagnostics.recurrent_matrices(rin)["recurrent"]
    return found, {
        "mean weight to the next unit": weight[1],
        "mean weight to the unit before": weight[-1],
        "Henrici departure": diagnostics.henrici_departure(matrix),
    }


def watch(seed, splits):
    """Trains one network: the chains before and after, and its record."""
    keras.utils.set_random_seed(seed)
    (x, y), (x_test, y_test) = splits
    model = build_model(x.shape[-1], int(y.max()) + 1)
    rin = model.get_layer("rin")
    chain_before, before = look(rin)
    history = model.fit(
        x,
        y,
        epochs=1 if FLAGS.smoke else FLAGS.epochs,
        verbose=0,
        callbacks=[
            RecurrentDiagnostics(budget=None),
            TqdmCallback(verbose=0, desc=f"seed {seed}"),
        ],
    )
    chain_after, after = look(rin)
    after["test accuracy"] = model.evaluate(x_test, y_test, verbose=0)[1]
    return (chain_before, chain_after), {
        "seed": seed,
        "before": before,
        "after": after,
        "henrici_departure": history.history["rin_henrici_departure"],
    }


def tables(record):
    """Before and after training, median and range over the networks."""
    runs = record["runs"]
    rows = []
    for label in runs[0]["after"]:
        cells = [
            _spread([run[when][label] for run in runs if label in run[when]])
            for when in ("before", "after")
        ]
        rows.append([label, *cells])
    header = [
        f"{record['start']} initialization",
        "before training",
        "after training",
    ]
    return {"table.md": outputs.markdown(header, rows)}


def _spread(values):
    if not values:
        return ""
    middle = statistics.median(values)
    return f"{middle:.3g} ({min(values):.3g} to {max(values):.3g})"


def draw(chains, runs, output):
    figure = Figure(figsize=(9, 4), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    for ax, when, found in zip(
        axes, ("before", "after"), zip(*chains, strict=True), strict=True
    ):
        plots.hidden_chain(list(found), reach=FLAGS.units // 2, ax=ax)
        ax.set_title(f"{when} training, {len(runs)} networks")
    outputs.save_picture(figure, output / "hidden_chain.png")
    curves = {FLAGS.start: [run["henrici_departure"] for run in runs]}
    figure = plots.learning_curves(curves, ylabel="Henrici departure")
    outputs.save_picture(figure, output / "henrici_departure.png")


def main(argv):
    del argv
    logging.set_verbosity(logging.ERROR)
    output = outputs.prepare(FLAGS.output)
    train, _, test = image_data.load("digits")
    splits = [(sequential_pixels.generate(x), y) for x, y in (train, test)]
    if FLAGS.smoke:
        splits = [(x[:64], y[:64]) for x, y in splits]
    chains, runs = zip(*(watch(s, splits) for s in FLAGS.seed), strict=True)
    record = {"tables": "watch_a_chain_emerge", "start": FLAGS.start}
    outputs.write(output, {**record, "runs": runs}, tables)
    draw(chains, runs, output)


if __name__ == "__main__":
    flags.DEFINE_string(
        "output", "runs/watch_a_chain_emerge", "Where to write."
    )
    flags.DEFINE_enum("start", "orthogonal", list(STARTS), "Of the recurrence.")
    flags.DEFINE_integer("units", 50, "Width of the layer.", lower_bound=2)
    flags.DEFINE_integer("epochs", 60, "Epochs of training.", lower_bound=1)
    flags.DEFINE_float("learning_rate", 1e-3, "Of Adam.", lower_bound=0)
    flags.DEFINE_multi_integer("seed", [0, 1, 2, 3, 4], "One network each.")
    flags.DEFINE_bool("smoke", False, "One epoch on 64 samples: does it run?")
    app.run(main)
