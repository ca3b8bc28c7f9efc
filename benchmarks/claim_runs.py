"""One run of a protocol: its settings in, its scores or its error out.

A seed draws the data, their order and the weights, so that contenders of one
seed differ in nothing else. A score is a loss without penalties or a share of
wrong answers: less is better. The weights are those of the best epoch on
validation data.
"""

import dataclasses
import functools
import os
from collections.abc import Callable

import keras
import numpy as np
from keras.regularizers import L2

from examples import babi_network
from examples import epochs as batches
from examples import image_data
from examples import text_data
from examples.starts import STARTS
from keras_rin.callbacks import RestoreOnNaN
from keras_rin.initializers import Chain
from keras_rin.initializers import PerGate
from keras_rin.initializers import Ramp
from keras_rin.layers import RIN
from keras_rin.layers import DeepTransitionRINCell
from keras_rin.layers import NoisyRNN
from keras_rin.layers import RINCell
from keras_rin.regularizers import IdentityOffsetL2
from keras_rin.tasks import adding
from keras_rin.tasks import babi
from keras_rin.tasks import copying
from keras_rin.tasks import sequential_pixels


def near_identity(shape, dtype=None):
    """Where RIN starts, for layers that store the effective matrix."""
    noise = keras.random.normal(shape, stddev=0.001, dtype=dtype)
    return keras.ops.eye(shape[0], dtype=dtype) + noise


def irnn(units, recurrent_initializer="identity", **arguments):
    return keras.layers.SimpleRNN(
        units, "relu", recurrent_initializer=recurrent_initializer, **arguments
    )


def noisy_rin(units, start, noise, return_sequences=False):
    cell = RINCell(units, recurrent_initializer=STARTS[start]())
    return NoisyRNN(cell, noise, return_sequences=return_sequences)


def penalised(units, penalty):
    """IRNN + noise; the strength of its penalty can be assigned."""
    strength = keras.Variable(0.0, trainable=False)
    of_one = {
        "on the offset": IdentityOffsetL2(1.0),
        "on the matrix": L2(1.0),
        "none": lambda matrix: 0.0,
    }
    layer = irnn(
        units,
        near_identity,
        recurrent_regularizer=lambda matrix: strength * of_one[penalty](matrix),
    )
    layer.strength = strength
    return layer


def gated(layer, gates, *candidate):
    """LSTM or GRU, with chains in all gates or in the candidate's alone."""
    chain, ramp = Chain(1.02), Ramp()
    mixed = [chain if gate in candidate else ramp for gate in range(gates)]
    return {
        layer.__name__: layer,
        f"{layer.__name__}, chain": functools.partial(
            layer, recurrent_initializer=PerGate(chain, gates)
        ),
        f"{layer.__name__}, mixed": functools.partial(
            layer, recurrent_initializer=PerGate(mixed, gates)
        ),
    }


def with_small_w(layer):
    """W from N(0, 0.001), as in the paper."""
    return lambda units: layer(
        units, kernel_initializer=keras.initializers.RandomNormal(stddev=0.001)
    )


LAYERS = {
    "RIN": RIN,
    "RIN, small W": with_small_w(RIN),
    "IRNN": irnn,
    "IRNN, small W": with_small_w(irnn),
    "IRNN + noise": functools.partial(
        irnn, recurrent_initializer=near_identity
    ),
    "SimpleRNN": keras.layers.SimpleRNN,
    **{
        f"RIN, {name}": lambda units, start=start, **arguments: RIN(
            units, recurrent_initializer=start(), **arguments
        )
        for name, start in STARTS.items()
    },
    "RIN-DT": lambda units: keras.layers.RNN(DeepTransitionRINCell(units)),
    **gated(keras.layers.LSTM, 4, 2),
    **gated(keras.layers.GRU, 3, 2),
}


def recurrent_layer(settings, **arguments):
    """The layer that some settings of a run name."""
    units = settings["units"]
    if "noise" in settings:
        start, noise = settings["start"], settings["noise"]
        return noisy_rin(units, start, noise, **arguments)
    if "penalty" in settings:
        return penalised(units, settings["penalty"])
    return LAYERS[settings["layer"]](units, **arguments)


@dataclasses.dataclass
class Data:
    """What to train, validate and test on, and what knowing nothing gets."""

    splits: list
    answers: int
    loss: Callable
    score: Callable  # (y, answers) -> of each sample, or each step
    baseline: float
    every_step: bool = False


def entropy(y, logits):
    return keras.losses.sparse_categorical_crossentropy(
        y, logits, from_logits=True
    )


def wrong(y, logits):
    return 1 - keras.metrics.sparse_categorical_accuracy(y, logits)


def adding_data(rng, length, train):
    splits = [adding.generate(rng, n, length) for n in (train, 1_000, 1_000)]
    loss = keras.losses.mean_squared_error
    return Data(splits, 1, loss, loss, adding.baseline_loss())


def copying_data(rng, length, train, copied):
    splits = [
        copying.generate(rng, n, length, copied) for n in (train, 1_000, 1_000)
    ]
    baseline = copying.baseline_loss(length, copied)
    return Data(splits, 9, entropy, entropy, baseline, every_step=True)


def pixels_data(rng, images="digits", train=None, permuted=False, pooled=1):
    parts = image_data.load(images, os.environ.get("TFDS_DATA_DIR"))
    height, width = parts[0][0].shape[1:3]
    order = None
    if permuted:
        steps = height * width // pooled**2
        order = sequential_pixels.permutation(np.random.default_rng(0), steps)
    splits = [
        (sequential_pixels.generate(pool(x, pooled), order), y)
        for x, y in parts
    ]
    if train is not None:
        splits[0] = _some(rng, splits[0], train)
    chance = sequential_pixels.chance_accuracy(splits[2][1])
    return Data(splits, 10, entropy, wrong, 1 - chance)


def characters_data(rng, length, train):
    splits, baseline = text_data.splits(text_data.read(), length)
    splits = [_some(rng, split, train) for split in splits]
    answers = splits[0][0].shape[-1]
    return Data(splits, answers, entropy, entropy, baseline, every_step=True)


def _some(rng, split, count):
    rows = rng.permutation(len(split[1]))[:count]
    return tuple(part[rows] for part in split)


def babi_data(rng, number):
    """Questions about stories; BABI_DIR is the folder of their files."""
    splits, words = babi_network.load(os.environ["BABI_DIR"], number)
    (_, known), _, (_, asked) = splits
    chance = babi.chance_accuracy(known, asked)
    loss = keras.losses.sparse_categorical_crossentropy
    return Data(splits, len(words), loss, wrong, 1 - chance)


def pool(images, size):
    """The mean of each square of `size` x `size` pixels."""
    if size == 1:
        return images
    samples, height, width = images.shape[:3]
    squares = images.reshape(samples, height // size, size, width // size, size)
    return squares.mean(axis=(2, 4), dtype="float32") / 255


TASKS = {
    "adding": (adding_data, {"length", "train"}),
    "copying": (copying_data, {"length", "train", "copied"}),
    "pixels": (pixels_data, {"images", "train", "permuted", "pooled"}),
    "text": (characters_data, {"length", "train"}),
    "babi": (babi_data, {"number"}),
}


def run(settings):
    """The settings with what came of them."""
    try:
        return {**settings, **scores(settings)}
    except FloatingPointError as error:  # a run that fails is a result too
        return {**settings, "error": str(error)}


def scores(settings):
    seed = settings["seed"]
    keras.utils.set_random_seed(seed)
    make, names = TASKS[settings["task"]]
    known = {name: settings[name] for name in names if name in settings}
    data = make(np.random.default_rng(seed), **known)
    train, validation, test = data.splits
    model = start(settings, data)
    rows = batches.shuffled(train, settings["batch_size"])
    end = -(-settings["updates"] // rows.steps)
    best = keras.callbacks.EarlyStopping(
        "val_score", patience=end, mode="min", restore_best_weights=True
    )
    model.fit(
        rows.stream(seed, 0, end),
        steps_per_epoch=rows.steps,
        epochs=end,
        validation_data=validation,
        validation_batch_size=500,
        callbacks=[RestoreOnNaN(), best],
        shuffle=False,
        verbose=0,
    )

    def score(x, y):
        found = model.evaluate(x, y, 500, verbose=0, return_dict=True)
        return found["score"]

    return {
        "validation": score(*validation),
        "test": score(*test),
        "baseline": data.baseline,
        "best_update": (best.best_epoch + 1) * rows.steps,
    }


COMPILED = {}  # to compile takes longer than to train
ASSIGNED = ("seed", "learning_rate", "strength", "updates")


def start(settings, data):
    """A network at its start, in one that an earlier run had compiled."""
    fresh = network(settings, data)
    rest = {k: v for k, v in settings.items() if k not in ASSIGNED}
    model = COMPILED.setdefault(tuple(sorted(rest.items())), fresh)
    if model is fresh:
        model.compile(
            keras.optimizers.Adam(clipnorm=1),
            data.loss,
            metrics=[keras.metrics.MeanMetricWrapper(data.score, name="score")],
            jit_compile=True,
        )
        model.optimizer.build(model.trainable_variables)
    for layer, new in zip(model.layers, fresh.layers, strict=True):
        for variable, value in zip(layer.variables, new.variables, strict=True):
            variable.assign(value)
    for variable in model.optimizer.variables:
        variable.assign(keras.ops.zeros_like(variable))
    model.optimizer.learning_rate = settings["learning_rate"]
    if "strength" in settings:
        model.layers[0].strength.assign(settings["strength"])
    return model


def network(settings, data):
    x, _ = data.splits[0]
    if settings["task"] == "babi":
        steps = x["story"].shape[1]
        return babi_network.build_model(
            settings["layer"], data.answers, steps, settings["units"]
        )
    several = {"return_sequences": True} if data.every_step else {}
    return keras.Sequential(
        [
            keras.Input((None, x.shape[-1])),
            recurrent_layer(settings, **several),
            keras.layers.Dense(data.answers),
        ]
    )
