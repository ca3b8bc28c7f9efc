"""The uncompiled Keras model of a run, from its settings."""

import functools

import keras
from keras.regularizers import L2

from examples import babi_network
from examples.starts import GATED
from examples.starts import STARTS
from keras_rin.constraints import Orthogonal
from keras_rin.initializers import ChainIdentity
from keras_rin.initializers import Offset
from keras_rin.initializers import PartialIdentity
from keras_rin.layers import RIN
from keras_rin.layers import DeepTransitionRINCell
from keras_rin.layers import NoisyRNN
from keras_rin.layers import ResidualDenseStack
from keras_rin.layers import RINCell
from keras_rin.models import residual_convnet
from keras_rin.regularizers import IdentityOffsetL2


def noisy_rin(units, start, noise, return_sequences=False):
    cell = RINCell(units, recurrent_initializer=STARTS[start]())
    return NoisyRNN(cell, noise, return_sequences=return_sequences)


def penalised(units, penalty):
    """IRNN + noise, with an assignable regularization strength."""
    strength = keras.Variable(0.0, trainable=False)
    of_one = {
        "on the offset": IdentityOffsetL2(1.0),
        "on the matrix": L2(1.0),
        "none": lambda matrix: 0.0,
    }
    layer = babi_network.LAYERS["IRNN + noise"](
        units,
        recurrent_regularizer=lambda matrix: strength * of_one[penalty](matrix),
    )
    layer.strength = strength
    return layer


def with_small_w(layer):
    """With W drawn from N(0, 0.001), as in Hu et al. 2018."""
    return lambda units: layer(
        units, kernel_initializer=keras.initializers.RandomNormal(stddev=0.001)
    )


LAYERS = {
    **babi_network.LAYERS,  # RIN, IRNN, IRNN + noise, LSTM
    "RIN, partial identity": functools.partial(
        RIN, recurrent_initializer=Offset(PartialIdentity())
    ),
    "RIN, zero offset": functools.partial(RIN, recurrent_initializer="zeros"),
    "RIN, small W": with_small_w(RIN),
    "IRNN, small W": with_small_w(babi_network.LAYERS["IRNN"]),
    "RIN-DT": lambda units: keras.layers.RNN(DeepTransitionRINCell(units)),
    "SimpleRNN": keras.layers.SimpleRNN,
    **{
        f"RIN, {name}": lambda units, start=start, **arguments: RIN(
            units, recurrent_initializer=start(), **arguments
        )
        for name, start in STARTS.items()
    },
    "RIN, kept orthogonal": functools.partial(
        RIN,
        recurrent_initializer=Offset("orthogonal"),
        recurrent_constraint=Orthogonal(offset=True),
    ),
    **{
        name: functools.partial(getattr(keras.layers, name.split()[0]), **start)
        for name, start in GATED.items()
    },
}


def recurrent_layer(settings, **arguments):
    """The recurrent layer of a run."""
    units = settings["units"]
    if "noise" in settings:
        start, noise = settings["start"], settings["noise"]
        return noisy_rin(units, start, noise, **arguments)
    if "penalty" in settings:
        return penalised(units, settings["penalty"])
    if "chain_gain" in settings:
        start = ChainIdentity(settings["chain_gain"], settings["identity_gain"])
        return RIN(units, recurrent_initializer=Offset(start), **arguments)
    return LAYERS[settings["layer"]](units, **arguments)


def recurrent(settings, data):
    """One recurrent layer, or `layers` of them, and a linear read-out."""
    features, read_out = data.splits[0][0].shape[-1], data.answers
    sequences = {"return_sequences": True}
    below = [
        recurrent_layer(settings, **sequences)
        for _ in range(settings.get("layers", 1) - 1)
    ]
    last = recurrent_layer(settings, **(sequences if data.every_step else {}))
    answer = keras.layers.Dense(read_out)
    model = keras.Sequential(
        [keras.Input((None, features)), *below, last, answer]
    )
    if settings.get("scaled"):
        scale_to_length(last.cell.kernel, answer.kernel, settings["length"])
    return model


def scale_to_length(kernel, read_out, length):
    """Loss and gradient at update 0 then do not depend on the length."""
    kernel.assign(kernel / length**0.5)
    read_out.assign(read_out / length)


CONVOLUTION_STARTS = {
    "small variance": None,
    "glorot_uniform": "glorot_uniform",
    "he_normal": "he_normal",
}


def convolutional(settings, data):
    """`residual_convnet` on small images, its read-out fixed or trained."""
    model = residual_convnet(
        data.splits[0][0].shape[1:],
        data.answers,
        stem=8,
        widths=(8, 16, 32),
        blocks=settings["blocks"],
        kernel_initializer=CONVOLUTION_STARTS[settings["start"]],
    )
    if settings["read_out"] == "fixed":
        return model
    mean = model.get_layer("mean").output
    return keras.Model(model.inputs, keras.layers.Dense(data.answers)(mean))


def dense(settings, data):
    """A stack of `depth` residual units with `neurons` hidden units in all."""
    width = settings["neurons"] // settings["depth"]
    return keras.Sequential(
        [
            keras.Input(data.splits[0][0].shape[1:]),
            keras.layers.Flatten(),
            ResidualDenseStack(settings["depth"], width),
            keras.layers.Dense(data.answers),
        ]
    )


def answers_questions(settings, data):
    x, _ = data.splits[0]
    return babi_network.build_model(
        settings["layer"], data.answers, x["story"].shape[1], settings["units"]
    )


def build(settings, data):
    if settings["task"] == "babi":
        return answers_questions(settings, data)
    if settings["task"] == "images":
        kind = convolutional if "blocks" in settings else dense
        return kind(settings, data)
    return recurrent(settings, data)
