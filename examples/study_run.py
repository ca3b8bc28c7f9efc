"""One run of a study, and its record: a score, or the error it ended with."""

import collections.abc
import dataclasses
import functools
import json
import math

import keras
import numpy as np
import outputs
import starts

from keras_rin.callbacks import RestoreOnNaN
from keras_rin.layers import RIN
from keras_rin.tasks import adding
from keras_rin.tasks import copying


@dataclasses.dataclass
class Task:
    generate: collections.abc.Callable  # (rng, samples, length) -> x, y
    baseline: collections.abc.Callable  # length -> the loss of knowing nothing
    answers: int
    loss: keras.losses.Loss
    every_step: bool


SHAPE = {"copied": 3, "symbols": 8}
TASKS = {
    "adding": Task(
        generate=adding.generate,
        baseline=lambda length: adding.baseline_loss(),
        answers=1,
        loss=keras.losses.MeanSquaredError(),
        every_step=False,
    ),
    "copying": Task(
        generate=functools.partial(copying.generate, **SHAPE),
        baseline=functools.partial(copying.baseline_loss, **SHAPE),
        answers=1 + SHAPE["symbols"],
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        every_step=True,
    ),
}
STARTS = [name for name in starts.STARTS if name != "feedback chain"]


def write(settings, path):
    """Makes the run; its record stands at `path` once it is whole."""
    try:
        result = {"score": score(**settings)}
    except Exception as error:  # a run that fails is a result as well
        result = {"error": f"{type(error).__name__}: {error}"}
    outputs.save_text(json.dumps({"settings": settings, **result}), path)


def score(task, start, learning_rate, seed, units, length, samples, epochs):
    """The loss on test data as a share of that of knowing nothing."""
    keras.utils.set_random_seed(seed)
    rng, task = np.random.default_rng(seed), TASKS[task]
    recurrent = RIN(
        units,
        recurrent_initializer=starts.STARTS[start](),
        return_sequences=task.every_step,
    )
    model = keras.Sequential([recurrent, keras.layers.Dense(task.answers)])
    model.compile(keras.optimizers.Adam(learning_rate, clipnorm=1), task.loss)
    model.fit(
        *task.generate(rng, samples, length),
        epochs=epochs,
        verbose=0,
        callbacks=[RestoreOnNaN()],
    )
    loss = model.evaluate(*task.generate(rng, 1_000, length), verbose=0)
    if not math.isfinite(loss):
        raise FloatingPointError(f"The loss on test data is {loss}.")
    return loss / task.baseline(length)
