"""Do the models that `preflight` passes learn, and those it warns of not?

Each of seven layers is combined with raw and with normalized inputs and with
three optimizers: Keras's default `"adam"`, Adam with gradients clipped to a
global norm of 1, and Adam with clipping, `beta_2=0.99`, warm-up to 0.003 and
cosine decay. `preflight` looks at one batch; then the model is trained on the
adding problem over 200 steps for 2,000 updates of batch 50. A model learned if
its validation loss is at most half of the baseline, the loss of a constant. The
lines to write are those of the version that was measured; later ones name other
remedies, and warn of the same models.
"""

import collections
import functools
import itertools

import keras
import numpy as np

from engine import record
from engine.many_models import ADAM
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
    baseline = adding.baseline_loss()
    return {
        "findings": [
            finding.remedy or finding.problem for finding in report.findings
        ],
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
    adams = {
        "adam": keras.optimizers.Adam(),
        "clipped": keras.optimizers.Adam(global_clipnorm=1.0),
        "clipped, warm-up and decay": keras.optimizers.Adam(
            recipe(updates, 0.003), **ADAM
        ),
    }
    model.compile(adams[optimizer], "mse")
    return model


def final_loss(run):
    """The loss after training, infinite if it diverged."""
    return float(np.nan_to_num(run["losses"][-1], nan=np.inf))


def tables(results):
    runs = sorted(results["runs"], key=final_loss)
    counts = collections.Counter(
        (bool(run["findings"]), final_loss(run) <= 0.5) for run in runs
    )
    verdicts = [
        [name, str(counts[warned, True]), str(counts[warned, False])]
        for warned, name in enumerate(("passed", "warned of"))
    ]
    columns = {
        "layer": "{layer}",
        "inputs": "{inputs}",
        "optimizer": "{optimizer}",
        "loss": lambda run: f"{run['losses'][-1]:.2g}",
        "line to write": lambda run: (
            "; ".join(map(short, run["findings"])) or "none"
        ),
    }
    return {
        "Models by the verdict before training": record.markdown(
            ["", "learned", "did not"], verdicts
        ),
        "Loss over the baseline after training, and what `preflight` said "
        "before": record.table(columns, runs, words=3),
    }


def short(remedy):
    """The word of a line that names it in a table."""
    for word in ("Normalization", "adapt", "Offset", "global_clipnorm", "RIN"):
        if word in remedy:
            return f"`{word}`"
    return remedy


SMALLEST = {"samples": 50, "length": 5}
SMALLEST["cases"] = [(OPTIMIZERS[2], INPUTS[0], "RIN")]
