"""How long a sequence does a network add after training on short, then longer?

A network is trained on the adding problem over 200 steps, and then over 500,
1,000, 2,000, 5,000 and 10,000 at falling learning rates: a ladder of six rungs.
Each rung has new data and a new Adam with `beta_2=0.99, global_clipnorm=1.0`,
warm-up over a twentieth of its updates, and cosine decay. The inputs are
normalized by the mean and variance of 1,000 sequences of 200 steps. The layers
have about as many weights as a RIN of 50 units; GRU and LSTM begin at a
learning rate of 0.01, and have fewer seeds, because they take longer.

All runs are tested on the same sequences, 100 of each length up to 10,000
steps, 40 of 30,000 and 20 of 100,000. A loss is normalized by that of a
constant prediction: 0 is perfect. A single sequence that diverges decides the
mean, so the sequences with a loss above 1 are counted.

A seventh rung, of 30,000 steps, has batches of 16 sequences in place of 50, and
the RIN keeps the states of few steps (`recompute=True`). A test has 10 more
sequences, of 1,000,000 steps. Of rates from 1e-5 to 1e-4, 60 and 200 updates,
and batches of 16 and 48, tried with seeds 10 to 12, 200 updates are better than
60, and 3e-5 is a little better than 1e-5, with which the ten runs had begun. An
eighth rung over 100,000 steps (60 updates at 5e-6, then 100 at 3e-6) was left
out after its results with eight of the ten seeds: it takes twice the time of
the seventh, and the median of their losses over 100,000 steps stays at 0.04.
"""

import functools
import time

import keras
import numpy as np

from engine import models
from engine import pictures
from engine import record
from engine.many_models import ADAM
from engine.many_models import recipe
from engine.measurement import Variant
from engine.measurement import groups
from engine.measurement import spread
from engine.partial_runs import PartialRuns
from keras_rin.layers import RIN
from keras_rin.tasks import adding

LAYERS = {
    "RIN": lambda: RIN(50, recompute=True),
    "GRU": lambda: keras.layers.GRU(28),
    "LSTM": lambda: keras.layers.LSTM(24),
    "SimpleRNN": lambda: keras.layers.SimpleRNN(50),  # of the demonstration
}
# Length of the sequences, sequences in a batch, updates, highest learning rate.
LADDER = (
    (200, 50, 2_000, 3e-3),
    (500, 50, 400, 3e-4),
    (1_000, 50, 400, 2e-4),
    (2_000, 50, 400, 2e-4),
    (5_000, 50, 200, 1e-4),
    (10_000, 50, 100, 1e-4),
)
LONGER = (*LADDER, (30_000, 16, 200, 1e-5))
FIRST_RATES = {"GRU": 1e-2, "LSTM": 1e-2}  # instead of that of the ladder
SEEDS = {"RIN": 10, "GRU": 3, "LSTM": 3}
TESTS = {200: 100, 1_000: 100, 5_000: 100, 10_000: 100, 30_000: 40, 100_000: 20}
PANEL = 4.8, 3.8  # inches, for two side by side, and for a phone
# A loss that counts as low, of each length.
LOW = {5_000: 0.01, 10_000: 0.02, 30_000: 0.05, 100_000: 0.05}


def measure(ladder=LADDER, tests=TESTS, seeds=SEEDS, partial=None):
    cases = [(layer, seed) for layer in seeds for seed in range(seeds[layer])]
    runs = PartialRuns(partial, ("layer", "seed"))
    make = functools.partial(train, ladder=ladder, tests=tests)
    return {"runs": runs.complete(cases, make)}


def train(layer, seed, ladder=LADDER, tests=TESTS, file=None):
    """The tests after each rung; with `file` the model is saved there."""
    rungs = []
    for model, length, seconds in climb(layer, seed, ladder):
        rung = {"length": length, "seconds": seconds}
        rungs.append({**rung, "tests": test(model, tests)})
    if file is not None:
        model.save(file)
    return {"rungs": rungs}


def climb(layer, seed, ladder=LADDER):
    """Yields the model after each rung, the length, seconds of training."""
    keras.utils.set_random_seed(seed)
    rng = np.random.default_rng(seed)
    x, _ = adding.generate(rng, 1_000, ladder[0][0])
    model = models.normalized(LAYERS[layer](), x)
    # XLA runs the loop of gated layers faster; RIN compiles its own.
    jit = True if layer in FIRST_RATES else "auto"
    for rung, (length, batch, updates, rate) in enumerate(ladder):
        x, y = adding.generate(rng, batch * min(updates, 200), length)
        if rung == 0:
            rate = FIRST_RATES.get(layer, rate)
        start = time.process_time()
        optimizer = keras.optimizers.Adam(recipe(updates, rate), **ADAM)
        model.compile(optimizer, "mse", jit_compile=jit)
        epochs = max(1, updates // 200)
        model.fit(x, y, batch_size=batch, epochs=epochs, verbose=0)
        yield model, length, time.process_time() - start


def test(model, tests):
    """{length: loss}; the model is compiled with XLA to save time."""
    losses = {}
    model.compile(jit_compile=True)
    for length, samples in tests.items():
        x, y = adding.generate(np.random.default_rng(length), samples, length)
        error = model.predict(x, batch_size=samples, verbose=0) - y
        squares = np.square(error.astype("float64")) / adding.baseline_loss()
        squares = np.nan_to_num(squares, nan=np.inf)
        losses[str(length)] = {
            "mean": float(squares.mean()),
            "median": float(np.median(squares)),
            "above 1": int((squares > 1).sum()),
            "samples": samples,
        }
    return losses


def losses_at(runs, rung, length):
    """The mean losses of runs over a length after a rung, one a seed."""
    return [run["rungs"][rung]["tests"][str(length)]["mean"] for run in runs]


def diverging(runs, length):
    """How many runs end with a sequence whose loss is above 1."""
    tests = [run["rungs"][-1]["tests"][str(length)] for run in runs]
    return sum(test["above 1"] > 0 for test in tests)


def draw(axes, runs, rung, label, **line):
    """Draws median and range of the seeds over the length of the tests."""
    lengths = [int(length) for length in runs[0]["rungs"][rung]["tests"]]
    losses = np.array([losses_at(runs, rung, length) for length in lengths])
    # Far above the baseline the loss says only that a sequence diverges.
    losses = np.clip(losses.T, 0, 10)
    pictures.plot_range(axes, lengths, losses, label, marker="o", **line)


def rungs_figure(results):
    """Normalized loss over the length of the test sequences, after each rung
    (median and range of the seeds).
    """
    figure, axes = loss_panel()
    runs = groups(results["runs"], "layer")["RIN"]
    stages = runs[0]["rungs"]
    colors = pictures.ordered_colors(len(stages))
    for rung, (stage, color) in enumerate(zip(stages, colors, strict=True)):
        draw(axes, runs, rung, f"{stage['length']:,} steps", color=color)
    axes.set_title("Longer rungs help beyond their own length", loc="left")
    axes.legend(title="RIN, trained on up to", fontsize=8, labelspacing=0.1)
    return figure


def layers_figure(results):
    """Normalized loss over the length of the test sequences after the last rung
    (median and range of the seeds).
    """
    figure, axes = loss_panel()
    layers = groups(results["runs"], "layer")
    if len(layers) == 1:
        return None
    lengths = [rung["length"] for rung in results["runs"][0]["rungs"]]
    for layer in "RIN", "GRU", "LSTM":
        if layer in layers:
            draw(axes, layers[layer], -1, layer, **pictures.STYLES[layer])
    title = f"Trained on {lengths[0]:,} to {lengths[-1]:,} steps"
    axes.set_title(title, loc="left")
    axes.legend()
    return figure


def loss_panel():
    figure, axes = pictures.subplots(*PANEL)
    axes.axhline(1, color="grey", linewidth=1)
    axes.set(xscale="log", xlabel="time steps of the test sequences")
    axes.set(yscale="log", ylabel="normalized loss (baseline = 1)")
    return figure, axes


def tables(results):
    runs = results["runs"]
    return {
        "Normalized loss after each rung, the mean over the sequences (median, "
        "lowest to highest of the seeds)": rung_table(
            runs, lambda losses, _: spread(losses, 2)
        ),
        "Seeds whose mean loss after the last two rungs is below "
        + ", ".join(f"{low} over {n:,} steps" for n, low in LOW.items()): (
            rung_table(runs, low_cell, LOW, last=2)
        ),
        "Seeds with a sequence whose loss is above 1 after the last rung, and "
        "seconds of training (of the processor; of six rungs by the clock, "
        "beside other work, so only their ratios count)": diverging_table(runs),
    }


def rung_table(runs, cell, lengths=None, last=0):
    """`cell(losses, length)` of the tests after each rung, or the last ones."""
    stages = runs[0]["rungs"]
    tested = list(map(int, stages[0]["tests"]))
    lengths = [n for n in lengths or tested if n in tested]
    rows = [
        [layer, f"{stages[rung]['length']:,}"]
        + [cell(losses_at(of_layer, rung, n), n) for n in lengths]
        for layer, of_layer in groups(runs, "layer").items()
        for rung in range(len(stages))[-last:]
    ]
    header = ["layer", "trained up to", *(f"{n:,}" for n in lengths)]
    return record.markdown(header, rows, words=2)


def low_cell(losses, length):
    """How many of the losses over sequences of this length are low."""
    low = sum(loss < LOW[length] for loss in losses)
    return f"{low} of {len(losses)}"


def diverging_table(runs):
    lengths = [n for n in runs[0]["rungs"][0]["tests"] if int(n) >= 5_000]
    rows, of_rin = [], None
    for layer, of_layer in groups(runs, "layer").items():
        seconds = [sum(r["seconds"] for r in run["rungs"]) for run in of_layer]
        of_rin = of_rin or np.median(seconds)  # the first layer
        counts = [diverging(of_layer, n) for n in lengths]
        ratio = f"{np.median(seconds) / of_rin:.2g}"
        rows.append([layer, len(of_layer), *counts, spread(seconds), ratio])
    header = ["layer", "seeds", *(f"{int(n):,}" for n in lengths)]
    header += ["seconds", "seconds over those of RIN"]
    return record.markdown(header, rows)


VARIANTS = {
    "": Variant("Six rungs"),
    "longer": Variant(
        "Seven rungs",
        {"ladder": LONGER, "seeds": {"RIN": 10}}
        | {"tests": TESTS | {1_000_000: 10}},
    ),
}
PICTURES = {
    "rungs.svg": rungs_figure,
    "layers.svg": layers_figure,
}
SMALLEST = {"seeds": {"RIN": 1, "GRU": 1}, "tests": {5: 4, 10: 4}}
SMALLEST["ladder"] = (5, 4, 2, 1e-3), (10, 4, 2, 1e-4)
