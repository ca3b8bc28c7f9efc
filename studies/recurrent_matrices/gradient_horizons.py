"""How far does a gradient reach back before any training?

A cell has the gradient norm of the last hidden state with respect to an
earlier one, for newly initialized layers of 100 units on 16 sequences of the
adding problem with 1,000 steps.
"""

import keras
import numpy as np

from engine import pictures
from engine import record
from keras_rin import diagnostics
from keras_rin.initializers import Chain
from keras_rin.initializers import Offset
from keras_rin.layers import RIN
from keras_rin.tasks import adding

LAYERS = {
    "RIN": RIN,
    "RIN, offset 0.01": lambda units: RIN(
        units, recurrent_initializer=keras.initializers.RandomNormal(0, 0.01)
    ),
    "RIN chain": lambda n: RIN(n, recurrent_initializer=Offset(Chain(1.0))),
    "SimpleRNN": keras.layers.SimpleRNN,
    "LSTM": keras.layers.LSTM,
}
LAGS = (1, 10, 100, 200, 400, 1_000)


def measure(length=1_000, units=100):
    x, _ = adding.generate(np.random.default_rng(0), 16, length)
    norms = {name: gradient_norms(name, x, units) for name in LAYERS}
    return {"sizes": norms}


def gradient_norms(name, x, units):
    keras.utils.set_random_seed(0)
    layer = LAYERS[name](units)
    layer.build(x.shape)
    return diagnostics.gradient_norms(layer, x).tolist()


def tables(results):
    norms = results["sizes"]
    length = len(next(iter(norms.values()))) - 1
    lags = [lag for lag in LAGS if lag <= length]
    header = ["layer", *(f"lag {lag:,}" for lag in lags)]
    rows = [
        [name, *(f"{norm[-1 - lag]:.2g}" for lag in lags)]
        for name, norm in norms.items()
    ]
    return {"Gradient norm by lag": record.markdown(header, rows)}


def draw(results):
    """Gradient norm over the lag."""
    figure, axes = pictures.subplots(4.8, 3.8)
    for layer in "RIN", "SimpleRNN", "LSTM":
        norms = results["sizes"][layer][::-1]
        axes.plot(norms, label=layer, **pictures.STYLES[layer])
    axes.set(yscale="log", ylim=(1e-30, 1e5))
    axes.set_xlabel("time steps back from the last one")
    axes.set_ylabel("gradient norm before training")
    axes.set_title("Gradients reach back a thousand steps", loc="left")
    axes.legend()
    return figure


PICTURES = {"gradients.svg": draw}
SMALLEST = {"length": 2, "units": 1}
