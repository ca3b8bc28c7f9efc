"""One run of a protocol: trains a model and measures its losses.

The seed determines the data, their order and the random draws of the
initializers, so that models with one seed are compared on equal terms. The loss
measured is one without regularization, or the error rate of a classifier; less
is better. The weights are those of the epoch with the lowest validation loss,
also if the run diverges later.
"""

import json
import time

import keras
import numpy as np
import tensorflow as tf

import keras_rin
from experiments import data as tasks
from experiments import models
from experiments import results
from keras_rin import diagnostics
from keras_rin.callbacks import RestoreOnNaN
from keras_rin.optimizers import AdamWithMultipliers

HYPERPARAMETERS = {"updates", "batch_size", "learning_rate", "schedule", "clip"}
HYPERPARAMETERS |= {"recurrent_multiplier", "inputs", "beta_2", "averaging"}
WARM_UP = 100  # updates of linear warm-up before the cosine decay
CLIPS = {
    "global norm 1": {"global_clipnorm": 1.0},
    "norm 1": {"clipnorm": 1.0},
    "norm 100": {"clipnorm": 100.0},
    "value 1": {"clipvalue": 1.0},
    "none": {},
}
VALUES = {  # of hyperparameters that are words
    "schedule": ["constant", "cosine"],
    "clip": CLIPS,
    "inputs": ["raw", "adapted", "normalized"],
}
COMPILED = {}  # compiling takes longer than training
TIMED = 20  # updates, four times: the first time compiles them


def run(settings, own=None):
    """The settings with the losses, and with the error if it diverged.

    `own` are the layers of the protocol.
    """
    seed, size = settings["seed"], settings["batch_size"]
    data = drawn(settings)
    train, validation, test = data.splits
    steps, epochs = duration(settings, data)
    model = initialized(settings, data, steps, own)
    if settings.get("inputs") == "adapted":
        keras_rin.adapt(model, train[0])
    before = departure(model)
    best = keras.callbacks.EarlyStopping(
        "val_score", patience=epochs, mode="min", restore_best_weights=True
    )
    callbacks = [RestoreOnNaN(), best]
    if settings.get("averaging"):  # before `best`, which keeps the average
        callbacks.insert(1, keras.callbacks.SwapEMAWeights(swap_on_epoch=True))
    found = {**settings, "processor": results.processor()}
    try:
        model.fit(
            batches(train, size, seed, epochs),
            steps_per_epoch=steps,
            epochs=epochs,
            validation_data=validation,
            validation_batch_size=500,
            callbacks=callbacks,
            shuffle=False,
            verbose=0,
        )
    except FloatingPointError as error:  # divergence is a result too
        found["error"] = str(error)
        if best.best_weights is None:
            return {**found, "baseline": data.baseline}
        model.set_weights(best.best_weights)

    curve = model.history.history["val_score"]

    def score(x, y):
        made = model.evaluate(x, y, 500, verbose=0, return_dict=True)
        return made["score"]

    return {
        **found,
        "validation": score(*validation),
        "test": score(*test),
        "baseline": data.baseline,
        "curve": rounded(curve),
        "training_curve": rounded(model.history.history["score"]),
        **estimation_error(settings, model, test[0]),
        "henrici_departure": {"before": before, "after": departure(model)},
    }


def estimate(settings, own=None):
    """The settings with the seconds that a run takes, from a few updates.

    Neither compiling nor drawing the data is counted.
    """
    data = drawn(settings)
    train, validation, _ = data.splits
    model = initialized(settings, data, TIMED, own)
    ends = []
    model.fit(
        batches(train, settings["batch_size"], settings["seed"], 4 * TIMED),
        steps_per_epoch=TIMED,
        epochs=4,
        callbacks=[
            keras.callbacks.LambdaCallback(
                on_epoch_end=lambda *_: ends.append(time.perf_counter())
            )
        ],
        shuffle=False,
        verbose=0,
    )
    model.evaluate(*validation, 500, verbose=0)  # compiles
    before = time.perf_counter()
    model.evaluate(*validation, 500, verbose=0)
    validating = time.perf_counter() - before
    steps, epochs = duration(settings, data)
    updating = float(np.median(np.diff(ends))) / TIMED
    return {**settings, "seconds": epochs * (steps * updating + validating)}


def drawn(settings):
    """The data of a run, normalized if its settings say so."""
    keras.utils.set_random_seed(settings["seed"])
    data = tasks.draw(settings, np.random.default_rng(settings["seed"]))
    if settings.get("inputs") == "normalized":
        data = tasks.normalized(data)
    return data


def duration(settings, data):
    """Updates of an epoch, and epochs."""
    steps = -(-len(data.splits[0][1]) // settings["batch_size"])
    return steps, -(-settings["updates"] // steps)


def batches(arrays, size, seed, epochs):
    """Of rows of arrays; their order follows from the seed and the epoch."""
    arrays = tf.nest.map_structure(tf.constant, arrays)
    count = len(tf.nest.flatten(arrays)[0])

    def epoch(number):
        rows = tf.random.experimental.stateless_shuffle(
            tf.range(count), tf.stack([seed, number])
        )
        return (
            tf.data.Dataset.from_tensor_slices(rows)
            .batch(size)
            .map(
                lambda rows: tf.nest.map_structure(
                    lambda array: tf.gather(array, rows), arrays
                )
            )
        )

    numbers = tf.data.Dataset.range(epochs)
    return numbers.flat_map(epoch).prefetch(tf.data.AUTOTUNE)


def rounded(values):
    return [float(f"{value:.4g}") for value in values]


def estimation_error(settings, model, x):
    """How hidden states change from one time step to the next.

    E[h_t - h_{t-1}] over 128 samples and all units: its mean and its largest
    magnitude over the steps, both divided by the root mean square change.
    """
    if settings["task"] != "pixels" or "noise" in settings:
        return {}
    layer = model.layers[0]
    try:
        states = diagnostics.state_trajectories(layer, x[:128])
    except ValueError:  # of a run that diverged: not finite
        return {}
    change = np.diff(states[..., : layer.cell.units], axis=1)
    scale = np.sqrt(np.mean(change**2)) or 1.0  # all may be 0
    means = change.mean(axis=(0, 2)) / scale
    ends = {"mean": means.mean(), "largest": np.abs(means).max()}
    return {"estimation_error": {n: float(v) for n, v in ends.items()}}


def departure(model):
    """{matrix: Henrici departure} of the first recurrent layer, if any."""
    for layer in model.layers:
        if isinstance(layer, keras.layers.RNN):
            matrices = diagnostics.recurrent_matrices(layer)
            return {
                name: diagnostics.henrici_departure(matrix)
                for name, matrix in matrices.items()
            }
    return {}


def optimizer(settings):
    """Adam with the clipping, schedule and averaging of a protocol."""
    options = dict(CLIPS[settings.get("clip", "norm 1")])
    cosine = settings.get("schedule") == "cosine"
    options["beta_2"] = settings.get("beta_2", 0.99 if cosine else 0.999)
    if momentum := settings.get("averaging"):
        options |= {"use_ema": True, "ema_momentum": momentum}
    rate = settings["learning_rate"]
    if cosine:
        rate = keras.optimizers.schedules.CosineDecay(
            0.0,
            settings["updates"] - WARM_UP,
            warmup_target=rate,
            warmup_steps=WARM_UP,
        )
    factor = settings.get("recurrent_multiplier", 1)
    multipliers = {"recurrent_kernel": factor} if factor != 1 else None
    return AdamWithMultipliers(rate, multipliers, **options)


def initialized(settings, data, steps, own):
    """The initialized model, in a compiled one of an earlier run if any."""
    fresh = models.build(settings, data, own)
    adam = optimizer(settings)
    options = adam.get_config() | {"name": ""}
    cosine = settings.get("schedule") == "cosine"
    if not cosine:  # is set below
        options["learning_rate"] = ""
    key = json.dumps(
        [
            settings["task"],
            steps,
            [tuple(variable.shape) for variable in fresh.variables],
            _but_initializers(fresh.get_config()),
            options,
        ]
    )
    model = COMPILED.setdefault(key, fresh)
    if model is fresh:
        model.compile(
            adam,
            data.loss,
            metrics=[keras.metrics.MeanMetricWrapper(data.score, name="score")],
            # On a CPU, XLA draws noise in 60 ms and convolves at half speed.
            jit_compile=not {"noise", "blocks"} & settings.keys(),
            steps_per_execution=steps,  # a whole epoch in one call
        )
        model.optimizer.build(model.trainable_variables)
    for layer, new in zip(model.layers, fresh.layers, strict=True):
        for variable, value in zip(layer.variables, new.variables, strict=True):
            variable.assign(value)
    for variable in model.optimizer.variables:
        variable.assign(keras.ops.zeros_like(variable))
    if not cosine:
        model.optimizer.learning_rate = settings["learning_rate"]
    return model


def _but_initializers(config):
    """What of a model's config is compiled: no initializers, no names."""
    if isinstance(config, dict):
        return {
            key: _but_initializers(value)
            for key, value in config.items()
            if key != "name" and not key.endswith("initializer")
        }
    if isinstance(config, (list, tuple)):
        return [_but_initializers(value) for value in config]
    return config
