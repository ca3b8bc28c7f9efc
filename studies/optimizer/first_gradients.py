"""How large are the updates of Adam after the first gradients of a RIN?

A RIN of 50 units is trained on the adding problem over 200 steps, on normalized
inputs, for 2,000 updates of batch 50 at the learning rate 0.001, with five
seeds. Adam divides the mean of the gradients by the root mean square of those
that its second moment remembers, so while the gradients stay as large as they
were, a weight changes by about the learning rate at each update. *Update size*
is the root mean square of the change of the recurrent kernel in one update,
divided by the learning rate; it is small while the second moment remembers
gradients that were much larger. The median over 50 updates is stored.
"""

import itertools

import keras
import numpy as np

from engine import models
from engine import pictures
from engine import record
from engine.measurement import first
from engine.measurement import groups
from engine.measurement import spread
from engine.measurement import spread_of
from engine.partial_runs import PartialRuns
from keras_rin.layers import RIN
from keras_rin.tasks import adding

RATE = 1e-3
OPTIMIZERS = {
    "defaults": {},
    "beta_2=0.99": {"beta_2": 0.99},
    "global_clipnorm=1": {"global_clipnorm": 1.0},
    "beta_2=0.99, global_clipnorm=1": {"beta_2": 0.99, "global_clipnorm": 1.0},
}
WINDOW = 50


def measure(samples=10_000, epochs=10, length=200, seeds=5, partial=None):
    runs = PartialRuns(partial, ("optimizer", "seed")).complete(
        itertools.product(OPTIMIZERS, range(seeds)),
        lambda *case: train(*case, samples, epochs, length),
    )
    return {"runs": runs}


def train(optimizer, seed, samples, epochs, length):
    keras.utils.set_random_seed(seed)
    rng = np.random.default_rng(seed)
    x, y = adding.generate(rng, samples, length)
    rin = RIN(50)
    model = models.normalized(rin, x)
    model.compile(keras.optimizers.Adam(RATE, **OPTIMIZERS[optimizer]), "mse")
    watch = Updates(rin)
    model.fit(*(x, y, 50, epochs), callbacks=[watch], shuffle=False, verbose=0)
    validation = adding.generate(rng, max(1, samples // 10), length)
    loss = model.evaluate(*validation, batch_size=500, verbose=0)
    windows = np.array_split(watch.sizes, -(-len(watch.sizes) // WINDOW))
    return {
        "sizes": [float(np.median(window)) for window in windows],
        "validation loss": loss / adding.baseline_loss(),
    }


class Updates(keras.callbacks.Callback):
    """The size of each update of a recurrent kernel."""

    def __init__(self, layer):
        super().__init__()
        self.layer, self.sizes = layer, []

    def on_train_begin(self, logs=None):
        self.kernel = self.layer.get_weights()[1]

    def on_train_batch_end(self, batch, logs=None):
        before, self.kernel = self.kernel, self.layer.get_weights()[1]
        change = np.sqrt(np.mean(np.square(self.kernel - before)))
        self.sizes.append(float(change) / RATE)


def draw(results):
    """Size of the updates over the updates (median and range of five seeds)."""
    figure, axes = pictures.subplots(6.5, 4)
    optimizers = groups(results["runs"], "optimizer")
    colors = pictures.ordered_colors(len(optimizers))
    for (name, runs), color in zip(optimizers.items(), colors, strict=True):
        values = np.array([run["sizes"] for run in runs])
        updates = WINDOW * (np.arange(values.shape[1]) + 0.5)
        pictures.plot_range(axes, updates, values, name, color=color)
    axes.set(yscale="log", xlabel="update", ylabel="update size")
    axes.set_title("Adam remembers the first gradients", loc="left")
    axes.legend()
    return figure


def sizes(choose):
    """The column of a size of each run."""
    return lambda runs: spread([choose(run["sizes"]) for run in runs], 2)


def tables(results):
    columns = {
        "Adam with": first("optimizer"),
        f"update size, first {WINDOW} updates": sizes(lambda sizes: sizes[0]),
        "lowest": sizes(min),
        "halfway": sizes(lambda sizes: sizes[len(sizes) // 2]),
        "normalized validation loss": spread_of("validation loss", 2),
    }
    rows = groups(results["runs"], "optimizer").values()
    caption = "Update size and loss (median, lowest to highest of the seeds)"
    return {caption: record.table(columns, rows)}


PICTURES = {"updates.svg": draw}
SMALLEST = {"samples": 100, "epochs": 1, "length": 5, "seeds": 1}
