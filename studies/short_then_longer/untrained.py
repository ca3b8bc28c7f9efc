"""How do hidden state, loss and gradient grow with the length, untrained?

Newly initialized models with 50 units read 50 sequences of the adding problem,
whose inputs lie in [0, 1]. The normalized loss and the gradient norm are those
of update 0: median (lowest to highest) of five seeds.
"""

import itertools

import keras
import numpy as np
import tensorflow as tf
from tqdm import tqdm

import keras_rin
from engine import pictures
from engine import record
from engine.measurement import groups
from engine.measurement import spread
from keras_rin.diagnostics import state_norms
from keras_rin.initializers import Offset
from keras_rin.initializers import PartialIdentity
from keras_rin.layers import RIN
from keras_rin.tasks import adding

LENGTHS = (10, 30, 100, 300, 1_000, 3_000, 10_000)
# In the order of MODELS.
SHADES = ["#0072b2", "#0072b2", "#009e73", "#e69f00"]
DASHES = ["-", "--", "-.", "--"]
PARTIAL = "RIN, normalized, partial identity"
MODELS = {
    "RIN": RIN,
    "RIN, adapted": RIN,
    PARTIAL: lambda n: RIN(n, recurrent_initializer=Offset(PartialIdentity())),
    "GRU": keras.layers.GRU,
}


def measure(lengths=LENGTHS, units=50, seeds=range(5)):
    cases = list(itertools.product(MODELS, lengths, seeds))
    runs = [measure_model(*case, units) for case in tqdm(cases)]
    return {"runs": runs}


def measure_model(name, length, seed, units):
    """Norms of the hidden state, normalized loss and gradient norm."""
    keras.utils.set_random_seed(seed)
    x, y = adding.generate(np.random.default_rng(seed), 50, length)
    if name == PARTIAL:
        x = (x - x.mean(axis=(0, 1))) / x.std(axis=(0, 1))
    model = build(name, x, units)
    weights = [weight.value for weight in model.trainable_weights]

    @tf.function
    def loss_and_gradient_norm():
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((model(x, training=True) - y) ** 2)
        return loss, tf.linalg.global_norm(tape.gradient(loss, weights))

    norms = state_norms(model.layers[0], x)
    loss, gradient_norm = loss_and_gradient_norm()
    return {
        "model": name,
        "length": length,
        "seed": seed,
        "loss": float(loss) / adding.baseline_loss(),
        "gradient_norm": float(gradient_norm),
        "state_norms": norms[1 :: max(1, length // 100)].tolist(),
    }


def build(name, x, units):
    layer, dense = MODELS[name](units), keras.layers.Dense(1)
    model = keras.Sequential([keras.Input((None, 2)), layer, dense])
    if "adapted" in name:
        keras_rin.adapt(layer, x)
    return model


def tables(results):
    runs = groups(results["runs"], "model", "length")
    lengths = [n for n in (10, 100, 1_000, 10_000) if ("RIN", n) in runs]
    header = ["model", *(f"{length:,} steps" for length in lengths)]

    def table(key):
        rows = [
            [model]
            + [spread([r[key] for r in runs[model, n]], 2) for n in lengths]
            for model in MODELS
        ]
        return record.markdown(header, rows)

    return {
        "Normalized loss": table("loss"),
        "Gradient norm": table("gradient_norm"),
    }


def draw(results):
    """Norm of the hidden state over time; loss and gradient norm over the
    length.
    """
    runs = groups(results["runs"], "model", "length")
    lengths = sorted({length for _, length in runs})
    shown = 1_000 if 1_000 in lengths else lengths[-1]
    figure, (states, losses, gradients) = pictures.subplots(6.5, 9, 3)
    for model, color, dash in zip(MODELS, SHADES, DASHES, strict=True):
        style = {"color": color, "linestyle": dash}

        def medians(key, length, model=model):
            return np.median([r[key] for r in runs[model, length]], axis=0)

        norms = medians("state_norms", shown)
        time = 1 + np.arange(len(norms)) * max(1, shown // 100)
        states.loglog(time, norms, label=model, **style)
        for axes, key in (losses, "loss"), (gradients, "gradient_norm"):
            values = [medians(key, length) for length in lengths]
            axes.loglog(lengths, values, marker=".", **style)
    states.set_title("Centered inputs keep the state small", loc="left")
    states.set(xlabel="time step", ylabel="norm of the hidden state")
    losses.set(xlabel="sequence length", ylabel="normalized loss")
    gradients.set(xlabel="sequence length", ylabel="gradient norm")
    figure.legend(loc="outside upper center", ncols=2, fontsize="small")
    return figure


PICTURES = {"state_growth.svg": draw}
SMALLEST = {"lengths": (10,), "units": 1, "seeds": (0,)}
