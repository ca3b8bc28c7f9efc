"""Training and forward steps of layers, as functions to time.

A maker is a function of (size, training) that returns a step, a function
without arguments that returns when its work is done: a forward pass, and in
training a backward pass and an SGD update.
"""

import importlib.util

import keras
import numpy as np

from keras_rin.constraints import Orthogonal
from keras_rin.layers import RIN
from keras_rin.layers import RINCell


def lmu(units):
    """Half of the state is the memory of the last 784 steps."""
    from keras_lmu import LMU

    half = units // 2
    cell = keras.layers.SimpleRNNCell(units - half)
    return LMU(1, half, 784, hidden_cell=cell)


def cfc(units):
    from ncps.keras import CfC

    return CfC(units)


SIZE = "batch × time × features × units"
LAYERS = {
    "RIN": RIN,
    "RIN, not fused": lambda units: RIN(units, fused=False),
    "RIN, orthogonal": lambda units: RIN(
        units, recurrent_constraint=Orthogonal(offset=True)
    ),
    "RNN(RINCell)": lambda units: keras.layers.RNN(RINCell(units)),
    "SimpleRNN": lambda units: keras.layers.SimpleRNN(
        units, "relu", recurrent_initializer="identity"
    ),
    "GRU": keras.layers.GRU,
    "LSTM": keras.layers.LSTM,
    "mean over time, Dense": lambda units: keras.Sequential(
        [keras.layers.GlobalAveragePooling1D(), keras.layers.Dense(units)]
    ),
}
# Recurrent layers of other packages for Keras: (package, maker).
PEERS = {"LMU": ("keras_lmu", lmu), "CfC": ("ncps", cfc)}
LAYERS |= {
    name: layer
    for name, (package, layer) in PEERS.items()
    if importlib.util.find_spec(package)
}


def size_cell(size):
    """A size as a table shows it."""
    return " × ".join(map(str, size))


def data(size):
    batch, time, features, units = size
    rng = np.random.default_rng(0)
    # A float64 copy would raise the peak memory.
    x = rng.standard_normal((batch, time, features), "float32")
    x *= 0.1
    return x, np.zeros((batch, units), "float32")


def keras_layer(name, jit_compile="auto", policy="float32"):
    """The maker of a layer of LAYERS."""

    def make(size, training):
        _, time, features, units = size
        keras.config.set_dtype_policy(policy)
        model = keras.Sequential(
            [keras.Input((time, features)), LAYERS[name](units)]
        )
        keras.config.set_dtype_policy("float32")
        optimizer = keras.optimizers.SGD(1e-6)
        model.compile(optimizer, "mse", jit_compile=jit_compile)
        x, y = data(size)
        y = y[:, : model.output_shape[-1]]
        if training:
            return lambda: model.train_on_batch(x, y)
        return lambda: model.predict_on_batch(x)

    return make


def in_bfloat16():
    """{name: maker} of layers in mixed_bfloat16."""
    return {
        f"{name}, bfloat16": keras_layer(name, policy="mixed_bfloat16")
        for name in ("RIN", "SimpleRNN", "LSTM")
    }


def installed():
    """{name: maker} of all layers that can run here."""
    makers = {}
    for name in LAYERS:
        makers[name] = keras_layer(name)
        if keras.backend.backend() == "tensorflow":
            makers[f"{name}, XLA"] = keras_layer(name, jit_compile=True)
    return makers
