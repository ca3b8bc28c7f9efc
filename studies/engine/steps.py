"""Training and forward steps of layers, as functions to time.

A maker is a function of (size, training) that returns a step, a function
without arguments that returns when its work is done: a forward pass, and in
training a backward pass and an SGD update.
"""

import functools

import keras
import numpy as np
import pandas

from keras_rin.layers import RIN
from keras_rin.layers import MinGRU
from keras_rin.layers import RINCell

SIZE = "batch × time × features × units"
LAYERS = {
    "RIN": RIN,
    "RIN, recompute": lambda units: RIN(units, recompute=True),
    "RIN, not fused": lambda units: RIN(units, fused=False),
    "RNN(RINCell)": lambda units: keras.layers.RNN(RINCell(units)),
    "SimpleRNN": lambda units: keras.layers.SimpleRNN(
        units, "relu", recurrent_initializer="identity"
    ),
    "GRU": keras.layers.GRU,
    "LSTM": keras.layers.LSTM,
    "MinGRU": MinGRU,
    "MinGRU, parallel": functools.partial(MinGRU, parallel=True),
    "mean over time, Dense": lambda units: keras.Sequential(
        [keras.layers.GlobalAveragePooling1D(), keras.layers.Dense(units)]
    ),
}


def size_cell(size):
    """A size as a table shows it."""
    return " × ".join(map(str, size))


def by_size(records, key):
    """What records have at a key: a row for each size, a column for each layer.

    In the order measured.
    """
    frame = pandas.DataFrame(records)
    frame["size"] = frame["size"].map(size_cell)
    frame = frame.set_index(["size", "contender"])[key]
    return frame.unstack(sort=False)


def keras_layer(layer, jit_compile="auto"):
    """The maker of a layer, which is a function of units."""

    def make(size, training):
        batch, time, features, units = size
        model = keras.Sequential([keras.Input((time, features)), layer(units)])
        optimizer = keras.optimizers.SGD(1e-6)
        model.compile(optimizer, "mse", jit_compile=jit_compile)
        rng = np.random.default_rng(0)
        # A float64 copy would raise the peak memory.
        x = rng.standard_normal((batch, time, features), "float32")
        x *= 0.1
        y = np.zeros((batch, model.output_shape[-1]), "float32")
        if training:
            return lambda: model.train_on_batch(x, y)
        return lambda: model.predict_on_batch(x)

    return make


def makers():
    """{name: maker} of all layers, with and without XLA."""
    compiled = {"": "auto", ", XLA": True}
    return {
        f"{name}{how}": keras_layer(layer, jit_compile)
        for name, layer in LAYERS.items()
        for how, jit_compile in compiled.items()
    }
