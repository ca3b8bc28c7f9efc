"""Chains of layers at random, with which every format is tested."""

import keras
import numpy as np
from keras import layers

from keras_rin.layers import RIN
from keras_rin.layers import DeepTransitionRINCell
from keras_rin.layers import MinGRU
from keras_rin.layers import RINCell

STREAMS, STEPS, TOKENS = 2, 60, 6
ACTIVATIONS = sorted(
    name
    for name, function in vars(keras.activations).items()
    if getattr(keras.activations, name, None) is function
    and getattr(function, "__module__", "").endswith("activations.activations")
    and name not in ("glu", "sparsemax", "threshold")
)
# Of cells, since a state must not grow.
BOUNDED = ["tanh", "relu", "elu", "hard_tanh", "sigmoid", "softsign", "mish"]
SHRINKING = keras.initializers.Identity(-0.5)


def _rin(units, activation, **options):
    return RIN(units, activation, recurrent_initializer=SHRINKING, **options)


def _rnn(cell):
    return lambda units, activation, **options: layers.RNN(
        cell(units, activation), **options
    )


def _deep_transition(units, activation):
    return DeepTransitionRINCell(
        units, activation, recurrent_initializer=SHRINKING
    )


def _two_cells(units, activation):
    last = RINCell(units, activation, recurrent_initializer=SHRINKING)
    return [layers.LSTMCell(3), layers.GRUCell(4, reset_after=False), last]


# By name: what makes a layer of units, an activation and further options.
CELLS = {
    "RIN": _rin,
    "RIN without bias": lambda *a, **k: _rin(*a, use_bias=False, **k),
    "SimpleRNN": layers.SimpleRNN,
    "GRU": layers.GRU,
    "GRU, reset first": lambda *a, **k: layers.GRU(*a, reset_after=False, **k),
    "LSTM": layers.LSTM,
    "LSTM of hard gates": lambda *a, **k: layers.LSTM(
        *a, recurrent_activation="hard_sigmoid", use_bias=False, **k
    ),
    "deep transition": _rnn(_deep_transition),
    "MinGRU": MinGRU,
    "three cells": _rnn(_two_cells),
}
BETWEEN = {
    "dense": lambda name: layers.Dense(4, name),
    "distributed": lambda name: layers.TimeDistributed(layers.Dense(4, name)),
    "activation": layers.Activation,
    "layer normalization": lambda name: layers.LayerNormalization(),
    "batch normalization": lambda name: layers.BatchNormalization(),
    "rescaling": lambda name: layers.Rescaling(0.5, offset=0.1),
    "dropout": lambda name: layers.Dropout(0.5),
    "relu": lambda name: layers.ReLU(0.8, negative_slope=0.1, threshold=0.2),
    "leaky relu": lambda name: layers.LeakyReLU(0.1),
    "elu": lambda name: layers.ELU(0.5),
}
FRONTS = ["numbers", "normalized", "tokens", "masked tokens"]
# What LiteRT computes in 16 bits, and without a jump, at which a rounding error
# would become as large as the jump.
IN_INTEGERS = {
    "activations": ["tanh", "relu", "linear", "sigmoid", "silu", "softplus"],
    "bounded": ["tanh", "sigmoid", "relu"],
    "between": [
        *("dense", "distributed", "activation", "batch normalization"),
        *("rescaling", "dropout", "leaky relu"),
    ],
    "fronts": FRONTS[:2],
}


def random_chain(
    seed,
    activations=ACTIVATIONS,
    bounded=BOUNDED,
    between=tuple(BETWEEN),
    fronts=FRONTS,
):
    """A model of a chain of layers, and inputs (streams, steps, ...) of it.

    Each cell, activation and kind of input has a seed below 29.
    """
    keras.utils.set_random_seed(seed)
    rng = np.random.default_rng(seed)
    front = fronts[seed % len(fronts)]
    name = activations[seed % len(activations)]
    parts = _front(front)
    for number in range(rng.integers(1, 4)):
        cell = list(CELLS)[(seed + 4 * number) % len(CELLS)]
        of_cell = bounded[rng.integers(len(bounded))]
        parts.append(CELLS[cell](5, of_cell, return_sequences=True))
        for kind in rng.choice(between, rng.integers(3), replace=False):
            # Masked tokens: a Softmax layer would get the mask.
            parts.append(BETWEEN[kind](name))
    if rng.random() < 0.3:
        parts.append(CELLS["RIN"](3, "tanh"))  # returns its last output alone
    if rng.random() < 0.7:
        parts.append(layers.Dense(2, name))
    model = _nested(parts, rng)
    _move_from_initial_values(model, rng)
    return model, _inputs(front, rng)


def _front(front):
    if "tokens" in front:
        return [
            keras.Input((None,), dtype="int32"),
            layers.Embedding(TOKENS, 3, mask_zero=front == "masked tokens"),
        ]
    inputs = [keras.Input((None, 3))]
    if front == "normalized":
        mean, variance = [1.0, -2.0, 3.0], [4.0, 0.25, 1.0]
        inputs.append(layers.Normalization(mean=mean, variance=variance))
    return inputs


def _nested(parts, rng):
    """A model of the parts, of which some may be a model within the model."""
    first, *parts = parts
    if rng.random() < 0.5:
        begin = rng.integers(2) if len(parts) > 1 else 0
        end = rng.integers(begin + 1, len(parts) + 1)
        tensor = first
        for part in parts[:begin]:
            tensor = part(tensor)
        inner = keras.Sequential(
            [keras.Input(tensor.shape[1:], dtype=tensor.dtype)]
        )
        for part in parts[begin:end]:
            inner.add(part)
        parts[begin:end] = [inner]
    return keras.Sequential([first, *parts])


def _move_from_initial_values(model, rng):
    """Biases, gains and moments that are 0 or 1 would hide a fault."""
    for weight in model.weights:
        if "recurrent" not in weight.name and "count" not in weight.name:
            noise = 0.1 * rng.random(weight.shape)
            weight.assign(weight + noise.astype("float32"))
    for layer in model.layers:
        if isinstance(layer, layers.Normalization):
            layer.finalize_state()


def _inputs(front, rng):
    if "tokens" in front:
        return rng.integers(TOKENS, size=(STREAMS, STEPS)).astype("int32")
    x = rng.normal(size=(STREAMS, STEPS, 3)).astype("float32")
    if front == "normalized":
        x = x * np.float32([2.0, 0.5, 1.0]) + np.float32([1.0, -2.0, 3.0])
    return x
