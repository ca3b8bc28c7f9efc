"""Do other learning rates or a longer rung improve the ladder of lengths?

RIN(50) learns the adding problem over 200 steps, then over 500, 1,000, 2,000
and 5,000, with 2,000, 400, 200, 100 and 200 updates at learning rates of 3e-3,
3e-4 and, from the third length on, 1e-4. This is the recipe of
[short then longer](../short_then_longer/README.md) with fewer updates and lower
rates over 1,000 and 2,000 steps. The rates of the second to the fifth length
are also a third, and three times as high. After that come 10,000 steps, at
three rates. The recurrent matrix begins near the identity or as a partial
identity.

All models are trained at once, on a GPU, with JAX. Each update has 50 new
sequences; each length has a new Adam with `beta_2=0.99` and gradients clipped
to a global norm of 1, warm-up over a twentieth of its updates, and cosine
decay. All models are tested on the same 100 sequences of each length. A loss is
normalized by that of a constant prediction: 0 is perfect. A single sequence
that diverges decides the mean, so the seeds with a loss above 1 are counted.
"""

import functools
import itertools
import json

import keras
import numpy as np
from keras import ops
from short_then_longer.measure import LOW
from short_then_longer.measure import low_cell
from tqdm import tqdm

from engine import record
from engine.many_models import ManyModels
from engine.many_models import initial_weights
from engine.measurement import Variant
from engine.measurement import spread
from keras_rin.initializers import Offset
from keras_rin.initializers import PartialIdentity
from keras_rin.layers import RIN
from keras_rin.tasks import adding

# Functions of options: an initializer would draw the same for each seed.
LAYERS = {
    "RIN": functools.partial(RIN, 50),
    "RIN, partial identity": lambda **options: RIN(
        50, recurrent_initializer=Offset(PartialIdentity()), **options
    ),
}
# Length of the sequences, updates, highest learning rate.
LADDER = (
    (200, 2_000, 3e-3),
    (500, 400, 3e-4),
    (1_000, 200, 1e-4),
    (2_000, 100, 1e-4),
    (5_000, 200, 1e-4),
)
FACTORS = (1 / 3, 1, 3)  # of all rates but the first
LAST = 10_000, 60, (1e-5, 3e-5, 1e-4)  # after the ladder of factor 1
SEEDS, BATCH = 10, 50
SAMPLES, TESTS = 100, (200, 1_000, 5_000, 10_000, 30_000, 100_000)
CHUNK = 200  # time steps of a call in a test
BASELINE = adding.baseline_loss()
# Of the values and the marks, over 200 steps.
MEAN = np.array([1 / 2, 1 / 100], "float32")
DEVIATION = np.sqrt(np.array([1 / 12, 1 / 100 * 99 / 100], "float32"))


def measure(ladder=LADDER, last=LAST, tests=TESTS, seeds=SEEDS, chunk=CHUNK):
    """Trains all models length by length, and tests them after each."""
    import jax

    make = LAYERS["RIN"]
    models = ManyModels(build(make), loss)
    run_chunk = tested_in_chunks(make)
    fields = "layer", "factor", "seed"
    cases = itertools.product(LAYERS, FACTORS, range(seeds))
    cases = [dict(zip(fields, case, strict=True)) for case in cases]
    makers = {
        layer: functools.partial(build, make) for layer, make in LAYERS.items()
    }
    pairs = [(case["layer"], case["seed"]) for case in cases]
    weights = initial_weights(makers, pairs)
    rungs = []

    def climb(weights, cases, rates, length, updates):
        new_key = functools.partial(jax.random.fold_in, jax.random.key(length))
        seeds = np.array([case["seed"] for case in cases])
        settings = {
            "rate": np.array(rates, "float32"),
            "key": jax.vmap(new_key)(seeds),
        }
        weights, _ = models.train(weights, settings, batches(length), updates)
        rung = {"length": length, "updates": updates}
        rung |= {"rates": rates, "cases": cases}
        tested = {n: test(run_chunk, weights, n, chunk) for n in tests}
        rungs.append({**rung, "tests": tested})
        return weights

    for number, (length, updates, rate) in enumerate(tqdm(ladder)):
        factors = [1 if number == 0 else case["factor"] for case in cases]
        rates = [rate * factor for factor in factors]
        weights = climb(weights, cases, rates, length, updates)
    length, updates, rates = last
    rows = [n for n, case in enumerate(cases) if case["factor"] == 1]
    rates, chosen = map(list, zip(*itertools.product(rates, rows), strict=True))
    weights = [array[np.array(chosen)] for array in weights]
    cases = [cases[row] for row in chosen]
    climb(weights, cases, rates, length, updates)
    rungs = json.loads(json.dumps(rungs, default=lambda array: array.tolist()))
    return {"rungs": rungs}


def build(make):
    return keras.Sequential(
        [keras.Input((None, 2)), make(), keras.layers.Dense(1)]
    )


loss = keras.losses.MeanSquaredError()


def batches(length):
    """The function (settings of a model, update) that draws a batch."""
    import jax

    def draw(settings, update):
        key = jax.random.fold_in(settings["key"], update)
        keys = jax.random.split(key, 3)
        values = jax.random.uniform(keys[0], (BATCH, length))
        first = jax.random.randint(keys[1], (BATCH, 1), 0, length)
        distance = jax.random.randint(keys[2], (BATCH, 1), 1, length)
        steps = ops.arange(length)
        marked = (steps == first) | (steps == (first + distance) % length)
        marks = ops.cast(marked, "float32")
        y = ops.sum(values * marks, axis=1, keepdims=True)
        return normalized(ops.stack([values, marks], axis=-1)), y

    return draw


def normalized(x):
    return (x - MEAN) / DEVIATION


def tested_in_chunks(make):
    """Function (weights, states, x) of all models: (outputs, new states).

    So a sequence of any length takes little memory, and one compilation.
    """
    import jax

    layer = make(return_state=True)
    x = keras.Input((None, 2))
    _, *states = layer(x)
    before = [keras.Input(state.shape[1:]) for state in states]
    output, *states = layer(x, initial_state=before)
    y = keras.layers.Dense(1)(output)
    model = keras.Model([x, before], [y, states])
    fixed = [variable.numpy() for variable in model.non_trainable_variables]

    def run(weights, before, x):
        return model.stateless_call(weights, fixed, [x, before])[0]

    sizes = [state.shape[-1] for state in states]
    return jax.jit(jax.vmap(run, in_axes=(0, 0, None))), sizes


def test(run_chunk, weights, length, chunk):
    """Mean and median of the losses of each model, and how many are above 1."""
    run, sizes = run_chunk
    x, y = adding.generate(np.random.default_rng(length), SAMPLES, length)
    x = ops.convert_to_tensor(normalized(x))
    states = [np.zeros((len(weights[0]), SAMPLES, n), "float32") for n in sizes]
    for first in range(0, length, chunk):
        outputs, states = run(weights, states, x[:, first : first + chunk])
    squares = np.square(np.asarray(outputs, "float64") - y)[..., 0] / BASELINE
    squares = np.nan_to_num(squares, nan=np.inf)
    return {
        "mean": squares.mean(axis=1),
        "median": np.median(squares, axis=1),
        "above 1": (squares > 1).sum(axis=1),
    }


def tables(results):
    rungs = results["rungs"][-2:]
    return {
        "Mean loss over the sequences after the last two lengths (median, "
        "lowest to highest of the seeds)": table(rungs, loss_cell),
        "Seeds whose mean loss is below "
        + ", ".join(f"{low} over {int(n):,} steps" for n, low in LOW.items()): (
            table(rungs, lambda test, n: low_cell(test["mean"], int(n)))
        ),
        "Seeds with a sequence whose loss is above 1": (
            table(rungs, diverging_cell)
        ),
    }


def table(rungs, cell):
    """A row for each layer and rate, a cell for each length of the tests."""
    tested = rungs[0]["tests"]
    lengths = [n for n in tested if int(n) in LOW] or tested
    header = ["layer", "trained up to", "last rate"]
    header += [f"{int(n):,}" for n in lengths]
    rows = []
    for rung in rungs:
        models = {}
        for row, case in enumerate(rung["cases"]):
            key = case["layer"], f"{rung['rates'][row]:.2g}"
            models.setdefault(key, []).append(row)
        for (layer, rate), of_model in models.items():
            cells = []
            for n in lengths:
                test = rung["tests"][n].items()
                cells.append(
                    cell({k: np.take(v, of_model) for k, v in test}, n)
                )
            rows.append([layer, f"{rung['length']:,}", rate, *cells])
    return record.markdown(header, rows, words=1)


def loss_cell(test, _):
    return spread(test["mean"], 2)


def diverging_cell(test, _):
    return f"{np.sum(test['above 1'] > 0)} of {len(test['mean'])}"


VARIANTS = {"": Variant(backend="jax")}
SMALLEST = {"ladder": ((5, 2, 1e-3),), "last": (10, 1, (1e-5, 1e-4))}
SMALLEST |= {"tests": (5,), "seeds": 2, "chunk": 5}
