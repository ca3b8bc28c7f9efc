"""One run: trains a model and measures its losses.

The seed determines the data, their order and the random draws of the
initializers. The loss is one without regularization, or the error rate of a
classifier. The weights are those of the epoch with the lowest validation loss,
also if the run diverges later.
"""

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
from keras_rin.layers import ResidualRNN

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
    keras.utils.set_random_seed(setting["seed"])
    data = datasets.draw(setting)
    train, validation, test = data.splits
    steps = -(-len(train[1]) // setting["batch_size"])
    epochs = -(-setting["updates"] // steps)
    model = initialized(setting, data, steps)
    if setting["inputs"] == "adapted":
        keras_rin.adapt(model, train[0])
    before, error = departures(model), None
    best = keras.callbacks.EarlyStopping(
        "val_score", patience=epochs, mode="min", restore_best_weights=True
    )
    try:
        model.fit(
            batches(train, setting["batch_size"], setting["seed"], epochs),
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
    if setting["task"] != "pixels" or setting["noise"] is not None:
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
        if isinstance(layer, ResidualRNN):  # its matrix differs by step
            return {}
        if isinstance(layer, keras.layers.RNN):
            matrices = diagnostics.recurrent_matrices(layer).items()
            return {n: diagnostics.henrici_departure(m) for n, m in matrices}
    return {}


def optimizer(setting):
    """Adam with the clipping and schedule of a setting."""
    rate, clip = setting["learning_rate"], CLIPS[setting["clip"]]
    if setting["schedule"] == "cosine":
        rate = recipe(setting["updates"], rate, WARM_UP)
    return keras.optimizers.Adam(rate, beta_2=setting["beta_2"], **clip)


def initialized(setting, data, steps):
    """The initialized model, in the compiled one of another seed if any."""
    fresh, key = models.build(setting, data), setting.at(seed=None)
    constant = setting["schedule"] == "constant"
    if constant:
        key = key.at(learning_rate=None)  # it is set below
    model = COMPILED.setdefault(key, fresh)
    if model is fresh:
        model.compile(
            optimizer(setting),
            data.loss,
            metrics=[keras.metrics.MeanMetricWrapper(data.score, name="score")],
            # On a CPU, XLA draws noise in 60 ms and convolves at half speed.
            jit_compile=setting["noise"] is None and setting["blocks"] is None,
            steps_per_execution=steps,  # a whole epoch in one call
        )
        model.optimizer.build(model.trainable_variables)
    for layer, new in zip(model.layers, fresh.layers, strict=True):
        for variable, value in zip(layer.variables, new.variables, strict=True):
            variable.assign(value)
    for variable in model.optimizer.variables:
        variable.assign(keras.ops.zeros_like(variable))
    if constant:
        model.optimizer.learning_rate = setting["learning_rate"]
    return model
