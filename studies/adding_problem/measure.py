"""Which layer solves the adding problem over 400 time steps?

Layers with about equal numbers of weights, each with its own learning rate and
on normalized inputs, as in `examples/adding_problem.py`. RIN has partial
identity initialization and a learning rate of 0.003, of which U has a quarter;
IRNN, a SimpleRNN with ReLU and identity initialization, and SimpleRNN have
0.001, LSTM and GRU 0.01. The rates were chosen beforehand from other studies,
not tuned for this comparison. The normalized loss is the test loss over that of
a constant predictor: median (lowest to highest) of three seeds.
"""

import itertools
import pathlib
import statistics
import tempfile

import keras
import numpy as np
from tqdm import tqdm

from engine import record
from engine.measurement import Measurement
from engine.measurement import groups
from keras_rin import plots
from keras_rin.callbacks import RestoreOnNaN
from keras_rin.initializers import Offset
from keras_rin.initializers import PartialIdentity
from keras_rin.layers import RIN
from keras_rin.optimizers import AdamWithMultipliers
from keras_rin.tasks import adding

BATCH, WARM_UP = 50, 100
# The layer, and its learning rate.
LAYERS = {
    "RIN": (
        lambda: RIN(50, recurrent_initializer=Offset(PartialIdentity())),
        0.003,
    ),
    "IRNN": (
        lambda: keras.layers.SimpleRNN(
            50, activation="relu", recurrent_initializer="identity"
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
    return {"runs": runs}, {"learning_curves": draw(runs)}


def train(seed, name, splits, epochs):
    keras.utils.set_random_seed(seed)
    (x, y), validation, test = splits
    model = build(name, x, epochs)
    run = {"layer": name, "seed": seed, "parameters": model.count_params()}
    with tempfile.TemporaryDirectory() as folder:
        best = pathlib.Path(folder, "best.keras")
        checkpoint = keras.callbacks.ModelCheckpoint(
            best, "val_loss", save_best_only=True
        )
        try:
            model.fit(
                *(x, y, BATCH, epochs),
                callbacks=[RestoreOnNaN(), checkpoint],
                validation_data=validation,
                verbose=0,
            )
        except FloatingPointError as error:
            run["diverged"] = str(error)
        losses = model.history.history.get("val_loss", [])
        if best.exists():
            model = keras.models.load_model(best)
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
        loss = f"{statistics.median(losses):.2g}"
        loss += f" ({min(losses):.2g} to {max(losses):.2g})"
        rows.append([layer, f"{runs[0]['parameters']:,}", diverged, loss])
    header = ["layer", "parameters", "diverged", "normalized loss"]
    return {"Test set": record.markdown(header, rows)}


def draw(runs):
    """The learning curve of each layer: median and range of the seeds."""
    curves = {
        layer: [run["validation"] for run in runs]
        for layer, runs in groups(runs, "layer").items()
    }
    ylabel = "normalized loss, validation data"
    figure = plots.plot_learning_curves(curves, ylabel=ylabel, baseline=1)
    figure.axes[0].set_yscale("log")
    return figure


STUDY = Measurement(
    __file__,
    __doc__,
    measure,
    tables,
    {"learning_curves": "Learning curves: median and range over three seeds"},
    smallest={"length": 2, "samples": 1, "epochs": 1, "seeds": (0,)}
    | {"names": ("RIN",)},
)

if __name__ == "__main__":
    STUDY.main()
