"""Which layer solves the adding problem over 400 time steps?

Layers with about equal numbers of weights, each with its own learning rate and
on normalized inputs. RIN has partial identity initialization and a learning
rate of 0.003, of which U has a quarter; IRNN, a SimpleRNN with ReLU and
identity initialization, and SimpleRNN have 0.001, LSTM and GRU 0.01. The rates
were chosen beforehand from other studies, not tuned for this comparison. The
normalized loss is the test loss over that of a constant predictor: median
(lowest to highest) of three seeds.
"""

import itertools

import keras
import numpy as np
from tqdm import tqdm

from engine import record
from engine import training
from engine.measurement import groups
from engine.measurement import learning_curves
from engine.measurement import spread
from keras_rin.callbacks import RestoreOnNaN
from keras_rin.initializers import Offset
from keras_rin.initializers import PartialIdentity
from keras_rin.layers import RIN
from keras_rin.optimizers import AdamWithMultipliers
from keras_rin.tasks import adding

BATCH, WARM_UP = 50, 100
PARTIAL = Offset(PartialIdentity())
# The layer, and its learning rate.
LAYERS = {
    "RIN": (lambda: RIN(50, recurrent_initializer=PARTIAL), 0.003),
    "IRNN": (
        lambda: keras.layers.SimpleRNN(
            50, "relu", recurrent_initializer="identity"
        ),
        0.001,
    ),
    "SimpleRNN": (lambda: keras.layers.SimpleRNN(50), 0.001),
    "LSTM": (lambda: keras.layers.LSTM(24), 0.01),
    "GRU": (lambda: keras.layers.GRU(28), 0.01),
}


def measure(
    length=400, samples=10_000, epochs=10, seeds=range(3), names=tuple(LAYERS)
):
    rng = np.random.default_rng(0)
    sizes = samples, 1_000, 1_000
    splits = [adding.generate(rng, size, length) for size in sizes]
    cases = list(itertools.product(seeds, names))
    runs = [train(*case, splits, epochs) for case in tqdm(cases)]
    return {"runs": runs}


def train(seed, name, splits, epochs):
    keras.utils.set_random_seed(seed)
    (x, y), validation, test = splits
    model = build(name, x, epochs)
    run = {"layer": name, "seed": seed, "parameters": model.count_params()}
    best = training.keep_best("val_loss", epochs)
    options = {"callbacks": [RestoreOnNaN(), best], "verbose": 0}
    try:
        model.fit(x, y, BATCH, epochs, validation_data=validation, **options)
    except FloatingPointError as error:
        run["diverged"] = str(error)
        if best.best_weights is not None:
            model.set_weights(best.best_weights)
    losses = model.history.history.get("val_loss", [])
    loss = model.evaluate(*test, batch_size=500, verbose=0)
    run["validation"] = [loss / adding.baseline_loss() for loss in losses]
    return {**run, "test": loss / adding.baseline_loss()}


def build(name, x, epochs):
    layer, learning_rate = LAYERS[name]
    normalization = keras.layers.Normalization()
    normalization.adapt(x)
    model = keras.Sequential(
        [keras.Input((None, 2)), normalization, layer(), keras.layers.Dense(1)]
    )
    rate = keras.optimizers.schedules.CosineDecay(
        0.0,
        max(1, epochs * -(-len(x) // BATCH) - WARM_UP),
        warmup_target=learning_rate,
        warmup_steps=WARM_UP,
    )
    multipliers = {"recurrent_kernel": 100 / x.shape[1]}
    optimizer = AdamWithMultipliers(
        rate,
        multipliers if name == "RIN" else None,
        beta_2=0.99,
        global_clipnorm=1.0,
    )
    model.compile(optimizer, "mse", jit_compile=True)
    return model


def tables(results):
    rows = []
    for layer, runs in groups(results["runs"], "layer").items():
        losses = [run["test"] for run in runs]
        diverged = f"{sum('diverged' in run for run in runs)} of {len(runs)}"
        parameters = f"{runs[0]['parameters']:,}"
        rows.append([layer, parameters, diverged, spread(losses, 2)])
    header = ["layer", "parameters", "diverged", "normalized loss"]
    return {"Test set": record.markdown(header, rows)}


def draw(results):
    """Learning curves: median and range over three seeds."""
    ylabel = "normalized loss, validation data"
    figure = learning_curves(results["runs"], ylabel, baseline=1)
    figure.axes[0].set_yscale("log")
    title = "LSTM and GRU reach lower losses, SimpleRNN learns nothing"
    figure.axes[0].set_title(title, loc="left")
    return figure


PICTURES = {"learning_curves.svg": draw}
SMALLEST = {"length": 2, "samples": 1, "epochs": 1, "seeds": (0,)} | {
    "names": ("RIN",)
}
