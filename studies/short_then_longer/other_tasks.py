"""Does training on short sequences first help on tasks other than adding?

On the adding problem it decides whether a RIN is right at any length
([ladder](#ladder)). Five tasks of another kind: copying five symbols over 60
steps, three flip-flops over 200, characters of tiny Shakespeare in windows of
200, and the recordings of GunPoint, 150 steps, and BasicMotions, 100,
normalized. A network has one recurrent layer, a RIN of
32 units or one with about as many weights, and a linear read-out: at every
step, of recordings after the last.

It is trained for 1,200 updates with batches of 32, either all at full length,
or 800 at a quarter of it and then 400 at full length and a tenth of the
learning rate, which is half as much work. A quarter of a recording is every
fourth of its steps. Adam has `beta_2=0.99`, gradients clipped to a global norm
of 1, warm-up over a twentieth of the updates, and cosine decay, anew at each
length.

A loss is the mean over the test set (100 sequences of a task that is drawn),
normalized by the baseline. Of recordings it is the share of wrong answers,
normalized by that of a guess. It is at most 1, which also stands for a run that
diverged. All rates and seeds of a layer are trained at once, with JAX.
"""

import functools
import itertools
import types

import keras
import numpy as np
from keras import ops

from engine import data
from engine import recordings
from engine.many_models import ManyModels
from engine.many_models import initial_weights
from engine.measurement import Variant
from engine.measurement import spread
from engine.models import as_many_weights
from engine.partial_runs import PartialRuns
from engine.record import table
from keras_rin.layers import RIN
from keras_rin.tasks import flip_flop

LAYERS = {
    "RIN": RIN,
    "GRU": functools.partial(keras.layers.GRU, use_cudnn=False),
    "LSTM": functools.partial(keras.layers.LSTM, use_cudnn=False),
}
TASKS = "copying", "flip-flop", "text", "GunPoint", "BasicMotions"
# (steps are divided by, part of the updates, factor of the rate), in turn.
SCHEDULES = {
    "full length": ((1, 1, 1),),
    "short first": ((4, 2 / 3, 1), (1, 1 / 3, 1 / 10)),
}
RATES = (0.001, 0.003, 0.01, 0.03)
UNITS, UPDATES, BATCH, SEEDS, SAMPLES, TESTED = 32, 1_200, 32, 3, 6_400, 100


def measure(tasks=TASKS, layers=tuple(LAYERS), partial=None, **sizes):
    runs = PartialRuns(partial, ("task", "layer", "schedule"))
    cases = itertools.product(tasks, layers, SCHEDULES)
    return {"runs": runs.complete(cases, functools.partial(train, **sizes))}


def train(task, layer, schedule, units=UNITS, updates=UPDATES, seeds=SEEDS):
    """{rate: losses of the seeds} on the test set, at full length."""
    import jax

    rng = np.random.default_rng(0)
    rates, numbers = zip(*itertools.product(RATES, range(seeds)), strict=True)
    keys = jax.vmap(jax.random.key)(np.array(numbers))
    full = draw(task, 1, rng)
    make = functools.partial(build, layer, units, full)
    many = ManyModels(make(), lambda *y: ops.mean(full.loss(*y)))
    weights = initial_weights({"": make}, [("", seed) for seed in numbers])
    finite = True
    for divisor, part, factor in SCHEDULES[schedule]:
        settings = {"rate": np.array(rates, "float32") * factor, "key": keys}
        batch = batches(*draw(task, divisor, rng).splits[0])
        weights, seen = many.train(
            weights, settings, batch, round(part * updates)
        )
        finite &= np.isfinite(seen).all(axis=1)
    x, y = full.splits[-1]
    losses = jax.vmap(lambda w: ops.mean(full.score(y, many.outputs(w, x))))
    losses = np.asarray(jax.jit(losses)(weights)) / full.baseline
    losses = np.where(finite, np.fmin(losses, 1), 1)
    by_rate = losses.reshape(len(RATES), seeds).tolist()
    return {"losses": dict(zip(map(str, RATES), by_rate, strict=True))}


def draw(task, divisor, rng):
    """The data of a task, of as many steps divided by an integer."""
    if task in ("copying", "text"):
        length = {"copying": 60, "text": 200}[task] // divisor
        setting = types.SimpleNamespace(length=length, copied=5, train=SAMPLES)
        drawn = data.TASKS[task](setting, rng)
        drawn.splits[-1] = [part[:TESTED] for part in drawn.splits[-1]]
        return drawn
    if task == "flip-flop":
        sizes, length = (SAMPLES, TESTED), 200 // divisor
        splits = [flip_flop.generate(rng, n, length) for n in sizes]
        loss = keras.losses.mean_squared_error
        baseline = flip_flop.baseline_loss()
        return data.Data(splits, 3, loss, loss, baseline, every_step=True)
    parts = recordings.read(task)
    splits = [(part.x[:, ::divisor], part.y) for part in parts]
    classes = int(parts[0].y.max()) + 1
    baseline = 1 - 1 / classes
    return data.Data(splits, classes, data.entropy, data.wrong, baseline)


def build(layer, units, of):
    features = of.splits[0][0].shape[-1]
    units = as_many_weights(LAYERS[layer], units, features)
    return keras.Sequential(
        [
            keras.Input((None, features)),
            LAYERS[layer](units, return_sequences=of.every_step),
            keras.layers.Dense(of.answers),
        ]
    )


def batches(x, y):
    """The function (settings of a model, update) that draws a batch."""
    import jax

    x, y = ops.convert_to_tensor(x), ops.convert_to_tensor(y)

    def draw(settings, update):
        key = jax.random.fold_in(settings["key"], update)
        rows = jax.random.randint(key, (BATCH,), 0, len(x))
        return x[rows], y[rows]

    return draw


def tables(results):
    columns = {name: f"{{{name}}}" for name in ("task", "layer", "schedule")}
    for rate in map(str, RATES):
        columns[rate] = lambda run, rate=rate: spread(run["losses"][rate], 2)
    return {
        "Normalized loss at each learning rate (median, lowest to highest of "
        "the seeds)": table(columns, results["runs"], words=3)
    }


VARIANTS = {"": Variant(backend="jax")}
SMALLEST = {"tasks": ("copying", "GunPoint"), "layers": ("RIN",)}
SMALLEST |= {"units": 2, "updates": 3, "seeds": 1}
