"""One run of a protocol: trains a model and measures its losses.

The seed determines the data, their order and the random draws of the
initializers, so that models with one seed are compared on equal terms. The loss
measured is one without regularization, or the error rate of a classifier; less
is better. The weights are those of the epoch with the lowest validation loss.
"""

import keras
import numpy as np

import keras_rin
from benchmarks.claims import networks
from benchmarks.claims import tasks
from examples import epochs as batches
from keras_rin import diagnostics
from keras_rin.callbacks import RestoreOnNaN
from keras_rin.optimizers import AdamWithMultipliers


def run(settings):
    """The settings with the losses, or with the error if it diverged."""
    try:
        return {**settings, **measured(settings)}
    except FloatingPointError as error:  # divergence is a result too
        return {**settings, "error": str(error)}


def measured(settings):
    seed = settings["seed"]
    keras.utils.set_random_seed(seed)
    data = tasks.draw(settings, np.random.default_rng(seed))
    if settings.get("inputs") == "normalized":
        data = tasks.normalized(data)
    train, validation, test = data.splits
    rows = batches.shuffled(train, settings["batch_size"])
    model = initialized(settings, data, rows.steps)
    if settings.get("inputs") == "adapted":
        keras_rin.adapt(model, train[0])
    before = departure(model)
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
        "henrici_departure": {"before": before, "after": departure(model)},
    }


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


WARM_UP = 100  # updates of linear warm-up before the cosine decay
COMPILED = {}  # compiling takes longer than training
ASSIGNED = (  # settings that change without compiling again
    *("seed", "learning_rate", "strength", "updates", "permuted"),
    *("start", "chain_gain", "identity_gain", "scaled"),
)
CLIPS = {
    "global norm 1": {"global_clipnorm": 1.0},
    "norm 1": {"clipnorm": 1.0},
    "norm 100": {"clipnorm": 100.0},
    "value 1": {"clipvalue": 1.0},
    "none": {},
}


def optimizer(settings):
    """Adam with the clipping and schedule of a protocol."""
    options = dict(CLIPS[settings.get("clip", "norm 1")])
    rate = settings["learning_rate"]
    if "schedule" in settings:
        options["beta_2"] = 0.99
        rate = keras.optimizers.schedules.CosineDecay(
            0.0,
            settings["updates"] - WARM_UP,
            warmup_target=rate,
            warmup_steps=WARM_UP,
        )
    factor = settings.get("recurrent_rate", 1)
    multipliers = {"recurrent_kernel": factor} if factor != 1 else None
    return AdamWithMultipliers(rate, multipliers, **options)


def initialized(settings, data, steps):
    """The initialized model, in a compiled one of an earlier run if any."""
    fresh = networks.build(settings, data)
    assigned = set(ASSIGNED)
    if "schedule" in settings:  # compiled with its learning rate
        assigned -= {"learning_rate", "updates"}
    rest = {k: v for k, v in settings.items() if k not in assigned}
    model = COMPILED.setdefault(tuple(sorted(rest.items())), fresh)
    if model is fresh:
        model.compile(
            optimizer(settings),
            data.loss,
            metrics=[keras.metrics.MeanMetricWrapper(data.score, name="score")],
            jit_compile="noise" not in settings,  # XLA draws noise in 60 ms
            steps_per_execution=steps,  # a whole epoch in one call
        )
        model.optimizer.build(model.trainable_variables)
    for layer, new in zip(model.layers, fresh.layers, strict=True):
        for variable, value in zip(layer.variables, new.variables, strict=True):
            variable.assign(value)
    for variable in model.optimizer.variables:
        variable.assign(keras.ops.zeros_like(variable))
    if "schedule" not in settings:
        model.optimizer.learning_rate = settings["learning_rate"]
    if "strength" in settings:
        model.layers[0].strength.assign(settings["strength"])
    return model
