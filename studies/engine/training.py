"""One run: trains a model and measures its losses.

The seed determines the data, their order and the random draws of the
initializers, so that models with one seed are compared on equal terms. The loss
measured is one without regularization, or the error rate of a classifier; less
is better. The weights are those of the epoch with the lowest validation loss,
also if the run diverges later.
"""

import json

import keras
import numpy as np
import tensorflow as tf

import keras_rin
from engine import data as datasets
from engine import models
from engine import record
from engine.many_models import recipe
from engine.study import Run
from keras_rin import diagnostics
from keras_rin.callbacks import RestoreOnNaN

WARM_UP = 100  # updates of linear warm-up before the cosine decay
CLIPS = {
    "global norm 1": {"global_clipnorm": 1.0},
    "norm 1": {"clipnorm": 1.0},
    "norm 100": {"clipnorm": 100.0},
    "value 1": {"clipvalue": 1.0},
    "none": {},
}
COMPILED = {}  # compiling takes longer than training


def run(setting):
    """The run of a setting; divergence is a result too."""
    keras.utils.set_random_seed(setting.seed)
    data = datasets.draw(setting)
    train, validation, test = data.splits
    steps, epochs = duration(setting, data)
    model = initialized(setting, data, steps)
    if setting.data.inputs == "adapted":
        keras_rin.adapt(model, train[0])
    before, error = departures(model), None
    best = keep_best("val_score", epochs)
    try:
        model.fit(
            batches(train, setting.training.batch_size, setting.seed, epochs),
            steps_per_epoch=steps,
            epochs=epochs,
            validation_data=validation,
            validation_batch_size=500,
            callbacks=[RestoreOnNaN(), best],
            shuffle=False,
            verbose=0,
        )
    except FloatingPointError as raised:
        error = str(raised)
        if best.best_weights is not None:
            model.set_weights(best.best_weights)
    made_on = {"processor": record.processor(), "error": error}
    if error is not None and best.best_weights is None:
        return Run(setting, **made_on, baseline=data.baseline)
    history = model.history.history

    def score(x, y):
        return model.evaluate(x, y, 500, verbose=0, return_dict=True)["score"]

    return Run(
        setting,
        **made_on,
        validation=score(*validation),
        test=score(*test),
        baseline=data.baseline,
        curve=_rounded(history["val_score"]),
        training_curve=_rounded(history["score"]),
        estimation_error=estimation_error(setting, model, test[0]),
        henrici_departure={"before": before, "after": departures(model)},
    )


def keep_best(monitor, epochs, mode="min"):
    """The callback that puts the best weights into the model at the end."""
    return keras.callbacks.EarlyStopping(
        monitor, patience=epochs, mode=mode, restore_best_weights=True
    )


def duration(setting, data):
    """Updates of an epoch, and epochs."""
    steps = -(-len(data.splits[0][1]) // setting.training.batch_size)
    return steps, -(-setting.training.updates // steps)


def batches(arrays, size, seed, epochs):
    """Of rows of arrays; their order follows from the seed and the epoch."""
    arrays = tf.nest.map_structure(tf.constant, arrays)
    count = len(tf.nest.flatten(arrays)[0])

    def rows_of(rows):
        return tf.nest.map_structure(lambda a: tf.gather(a, rows), arrays)

    def epoch(number):
        rows = tf.random.experimental.stateless_shuffle(
            tf.range(count), tf.stack([seed, number])
        )
        rows = tf.data.Dataset.from_tensor_slices(rows)
        return rows.batch(size).map(rows_of)

    numbers = tf.data.Dataset.range(epochs)
    return numbers.flat_map(epoch).prefetch(tf.data.AUTOTUNE)


def _rounded(values):
    return [float(f"{value:.4g}") for value in values]


def estimation_error(setting, model, x):
    """How hidden states change from one time step to the next.

    E[h_t - h_{t-1}] over 128 samples and all units: its mean and its largest
    magnitude over the steps, both divided by the root mean square change. None
    where no pixels are read, with noise, or where states are not finite.
    """
    if setting.data.task != "pixels" or setting.model.noise is not None:
        return None
    layer = model.layers[0]
    try:
        states = diagnostics.state_trajectories(layer, x[:128])
    except ValueError:  # of a run that diverged: not finite
        return None
    change = np.diff(states[..., : layer.cell.units], axis=1)
    scale = np.sqrt(np.mean(change**2)) or 1.0  # all may be 0
    means = change.mean(axis=(0, 2)) / scale
    return {"mean": float(means.mean()), "largest": float(abs(means).max())}


def departures(model):
    """{matrix: Henrici departure} of the first recurrent layer, if any."""
    for layer in model.layers:
        if isinstance(layer, keras.layers.RNN):
            matrices = diagnostics.recurrent_matrices(layer).items()
            return {n: diagnostics.henrici_departure(m) for n, m in matrices}
    return {}


def optimizer(setting):
    """Adam with the clipping and schedule of a setting."""
    choices = setting.training
    rate, clip = choices.learning_rate, CLIPS[choices.clip]
    if choices.schedule == "cosine":
        rate = recipe(choices.updates, rate, WARM_UP)
    return keras.optimizers.Adam(rate, beta_2=choices.beta_2, **clip)


def initialized(setting, data, steps):
    """The initialized model, in a compiled one of an earlier run if any."""
    fresh, adam = models.build(setting, data), optimizer(setting)
    options = adam.get_config() | {"name": ""}
    constant = setting.training.schedule == "constant"
    if constant:  # is set below
        options["learning_rate"] = ""
    shapes = [tuple(variable.shape) for variable in fresh.variables]
    config = _without_initializers(fresh.get_config())
    key = json.dumps([setting.data.task, steps, shapes, config, options])
    model = COMPILED.setdefault(key, fresh)
    if model is fresh:
        model.compile(
            adam,
            data.loss,
            metrics=[keras.metrics.MeanMetricWrapper(data.score, name="score")],
            # On a CPU, XLA draws noise in 60 ms and convolves at half speed.
            jit_compile=setting.model.noise is None
            and setting.model.blocks is None,
            steps_per_execution=steps,  # a whole epoch in one call
        )
        model.optimizer.build(model.trainable_variables)
    for layer, new in zip(model.layers, fresh.layers, strict=True):
        for variable, value in zip(layer.variables, new.variables, strict=True):
            variable.assign(value)
    for variable in model.optimizer.variables:
        variable.assign(keras.ops.zeros_like(variable))
    if constant:
        model.optimizer.learning_rate = setting.training.learning_rate
    return model


def _without_initializers(config):
    """What of a model's config is compiled: no initializers, no names."""
    if isinstance(config, dict):
        return {
            key: _without_initializers(value)
            for key, value in config.items()
            if key != "name" and not key.endswith("initializer")
        }
    if isinstance(config, (list, tuple)):
        return [_without_initializers(value) for value in config]
    return config
