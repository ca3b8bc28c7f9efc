"""One run of a protocol: its settings in, its scores or its error out.

A seed draws the data, their order and the weights, so that contenders of one
seed differ in nothing else. A score is a loss without penalties or a share of
wrong answers: less is better. The weights are those of the best epoch on
validation data.
"""

import functools

import keras
import numpy as np
from keras.regularizers import L2

from benchmarks import claim_tasks
from examples import babi_network
from examples import epochs as batches
from examples.starts import GATED
from examples.starts import STARTS
from keras_rin.callbacks import RestoreOnNaN
from keras_rin.layers import RIN
from keras_rin.layers import DeepTransitionRINCell
from keras_rin.layers import NoisyRNN
from keras_rin.layers import RINCell
from keras_rin.regularizers import IdentityOffsetL2


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
    layer = babi_network.LAYERS["IRNN + noise"](
        units,
        recurrent_regularizer=lambda matrix: strength * of_one[penalty](matrix),
    )
    layer.strength = strength
    return layer


def with_small_w(layer):
    """W from N(0, 0.001), as in the paper."""
    return lambda units: layer(
        units, kernel_initializer=keras.initializers.RandomNormal(stddev=0.001)
    )


LAYERS = {
    **babi_network.LAYERS,  # RIN, IRNN, IRNN + noise, LSTM
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
    **{
        name: functools.partial(getattr(keras.layers, name.split()[0]), **start)
        for name, start in GATED.items()
    },
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


def run(settings):
    """The settings with what came of them."""
    try:
        return {**settings, **scores(settings)}
    except FloatingPointError as error:  # a run that fails is a result too
        return {**settings, "error": str(error)}


def scores(settings):
    seed = settings["seed"]
    keras.utils.set_random_seed(seed)
    data = claim_tasks.draw(settings, np.random.default_rng(seed))
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
