"""Do the models that `preflight` passes learn, and those it warns of not?

Each of seven layers is combined with raw and with normalized inputs and with
three optimizers: Keras's default `"adam"`, Adam with gradients clipped to a
global norm of 1, and Adam with clipping, `beta_2=0.99`, warm-up to 0.003 and
cosine decay. `preflight` looks at one batch; then the model is trained on the
adding problem over 200 steps for 2,000 updates of batch 50. A model learned if
its validation loss is at most half of the baseline, the loss of a constant.
The runs are stored as they end, in `partial.jsonl`, and a second start goes on
from there.
"""

import collections
import functools
import itertools

import keras
import numpy as np

from engine import record
from engine.many_models import recipe
from engine.models import normalized
from engine.partial_runs import PartialRuns
from keras_rin.diagnostics import preflight
from keras_rin.initializers import Offset
from keras_rin.initializers import PartialIdentity
from keras_rin.layers import RIN
from keras_rin.tasks import adding

LAYERS = {
    "RIN": lambda: RIN(50),
    "RIN, partial identity": lambda: RIN(
        50, recurrent_initializer=Offset(PartialIdentity())
    ),
    "RIN, Offset forgotten": lambda: RIN(
        50, recurrent_initializer=PartialIdentity()
    ),
    "IRNN": lambda: keras.layers.SimpleRNN(
        50, "relu", recurrent_initializer="identity"
    ),
    "SimpleRNN": lambda: keras.layers.SimpleRNN(50),
    "GRU": lambda: keras.layers.GRU(28),
    "LSTM": lambda: keras.layers.LSTM(24),
}
INPUTS = "normalized", "raw"
OPTIMIZERS = "adam", "clipped", "clipped, warm-up and decay"
CASES = tuple(itertools.product(OPTIMIZERS, INPUTS, LAYERS))
BATCH, EPOCHS = 50, 10


def measure(samples=10_000, length=200, cases=CASES, partial=None):
    rng = np.random.default_rng(0)
    x, y = adding.generate(rng, samples, length)
    validation = adding.generate(rng, samples // 10, length)
    stored = PartialRuns(partial, ("optimizer", "inputs", "layer"))
    run = functools.partial(train, x, y, validation)
    return {"runs": stored.complete(cases, run)}


def train(x, y, validation, *case):
    model = build(*case, x, updates=EPOCHS * len(x) // BATCH)
    report = preflight(model, x, y)
    options = {"batch_size": BATCH, "epochs": EPOCHS, "verbose": 0}
    options |= {"callbacks": [keras.callbacks.TerminateOnNaN()]}
    history = model.fit(x, y, validation_data=validation, **options).history
    baseline, norms = report.baseline_loss, report.layers[0].state_norms
    return {
        "findings": [finding.remedy for finding in report.findings],
        "loss at update 0": report.loss / baseline,
        "gradient norm": report.gradient_norm,
        "state norms": [float(norms[step]) for step in (1, -1)],
        "first step": float(report.layers[0].gradient_norms[0]),
        "losses": [loss / baseline for loss in history["val_loss"]],
    }


def build(optimizer, inputs, layer, x, updates):
    keras.utils.set_random_seed(0)
    layer = LAYERS[layer]()
    if inputs == "normalized":
        model = normalized(layer, x)
    else:
        read_out = keras.layers.Dense(1)
        model = keras.Sequential([keras.Input((None, 2)), layer, read_out])
    model.compile(make_optimizers(updates)[optimizer], "mse")
    return model


def make_optimizers(updates):
    decay = recipe(updates, 0.003)
    adams = (
        keras.optimizers.Adam(),
        keras.optimizers.Adam(global_clipnorm=1.0),
        keras.optimizers.Adam(decay, beta_2=0.99, global_clipnorm=1.0),
    )
    return dict(zip(OPTIMIZERS, adams, strict=True))


def final_loss(run):
    """The loss after training, infinite if it diverged."""
    return float(np.nan_to_num(run["losses"][-1], nan=np.inf))


def learned(run):
    """Whether the loss is at most half of the baseline."""
    return final_loss(run) <= 0.5


def tables(results):
    runs = results["runs"]
    counts = [
        ["passed", *outcomes(run for run in runs if not run["findings"])],
        ["warned of", *outcomes(run for run in runs if run["findings"])],
    ]
    columns = {
        "layer": "{layer}",
        "inputs": "{inputs}",
        "optimizer": "{optimizer}",
        "loss": lambda run: f"{run['losses'][-1]:.2g}",
        "gradient norm at update 0": "{gradient norm:.2g}",
        "norm of the last state": "{state norms[1]:.2g}",
        "gradient norm at step 0": "{first step:.1g}",
        "line to write": lambda run: (
            "; ".join(map(short, run["findings"])) or "none"
        ),
    }
    return {
        "Models by the verdict before training": record.markdown(
            ["", "learned", "did not"], counts
        ),
        "Loss over the baseline after training, and what `preflight` measured "
        "before": record.table(columns, sorted(runs, key=final_loss), words=3),
    }


def outcomes(runs):
    """How many runs learned and how many did not, as cells."""
    counts = collections.Counter(map(learned, runs))
    return [str(counts[True]), str(counts[False])]


def short(remedy):
    """The word of a line that names it in a table."""
    for word in ("Normalization", "Offset", "global_clipnorm", "RIN"):
        if word in remedy:
            return f"`{word}`"
    return remedy


SMALLEST = {"samples": 50, "length": 5}
SMALLEST["cases"] = [(OPTIMIZERS[2], INPUTS[0], "RIN")]
