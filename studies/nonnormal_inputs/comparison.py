"""Which recurrent matrix is best if the input enters where it is kept best?

A RIN of 64 ReLU units has one of six recurrent matrices at first: the identity
with noise of 0.001, which is its default, a chain of gain 1, a chain of 0.9 and
an identity of 0.1, a circular chain, a random orthogonal matrix, and one that
is kept orthogonal. Its inputs enter in a random direction (*drawn*, the
default), with weight 1 *at one unit*, or *aligned*: along the top eigenvectors
of the Fisher memory over the length of the task, one for each feature, with
weight 1. The aligned directions of a chain are its first units; in the
identity, the circular chain and an orthogonal matrix all directions are as
good, and these are what the eigenvalue routine returns.

Copying five symbols is in sequences of 60 steps, adding of 200, with 1,500
updates. Pixels are digits of 8 x 8 in one fixed random order, with 600 updates;
noisy pixels are the same with Gaussian noise of standard deviation 0.1 in the
hidden state at every step, also in tests. There are 10,000 sequences to train
on and 1,000 for each test, of digits 1,294, 143 and 360; batches of 32, Adam
with `beta_2=0.99, global_clipnorm=1.0`, warm-up over a twentieth of the updates
and cosine decay. Each model has the learning rate with which seed 100 has the
lowest validation loss, of 0.001, 0.003 and further rates that are tried until
the best is between two others; 0.00001 is the lowest, and means that no rate
trains the model. The other seeds are paired: they draw the same data for all
models. A rate of one seed may be wrong for others where runs diverge. A loss is
divided by that of a constant prediction and at most 1; the loss of pixels is
the error rate. A run has diverged if a loss of its training is not finite. Its
test loss is then 1, and it is counted. The variant of MNIST was not run.
"""

import functools
import itertools

import keras
import numpy as np

from engine import record
from engine import verdicts
from engine.data import load_images
from engine.many_models import ManyModels
from engine.many_models import initial_weights
from engine.measurement import Variant
from engine.measurement import groups
from engine.measurement import spread
from engine.partial_runs import PartialRuns
from engine.study import SOLVED
from keras_rin import tasks
from keras_rin.constraints import Orthogonal
from keras_rin.initializers import AlignedInput
from keras_rin.initializers import Chain
from keras_rin.initializers import ChainIdentity
from keras_rin.initializers import Offset
from keras_rin.initializers import OneUnitInput
from keras_rin.layers import RIN
from keras_rin.layers import NoisyRNN
from keras_rin.layers import RINCell

KEPT = "kept orthogonal"
MATRICES = {
    "identity": lambda seed: "identity",
    "chain": lambda seed: Chain(),
    "chain + identity": lambda seed: ChainIdentity(),
    "circular": lambda seed: Chain(circular=True),
    "orthogonal": lambda seed: keras.initializers.Orthogonal(seed=seed),
    KEPT: lambda seed: keras.initializers.Orthogonal(seed=seed),
}
INPUTS = "drawn", "at one unit", "aligned"
FIRST_RATES = 1e-3, 3e-3
RATES = 1e-5, 3e-5, 1e-4, 3e-4, *FIRST_RATES, 1e-2, 3e-2, 1e-1
RATE_SEED, BATCH, TEST, NOISE = 100, 32, 1_000, 0.1
FIRST_SEEDS = 3  # of all tasks, before any has more
MODELS_OF_A_PROGRAM = 18  # trained between two writes to the file
FIELDS = "task", "matrix", "inputs", "seed", "rate"
TASKS = {  # length, features, outputs, updates
    "copying": (60, 10, 9, 1_500),
    "adding": (200, 2, 1, 1_500),
    "noisy pixels": (64, 1, 10, 600),
    "pixels": (64, 1, 10, 600),
    "permuted MNIST": (784, 1, 10, 6_000),
}
SHORT = tuple(TASKS)[:4]
MODELS = list(itertools.product(MATRICES, INPUTS))


def measure(
    seeds, models=MODELS, rates=RATES, units=64, updates=None, partial=None
):
    """`seeds` is {task: how many}."""
    runs = PartialRuns(partial, FIELDS)
    complete = functools.partial(complete_runs, runs, units, updates)
    best, measured = {}, []
    for task, seed in ordered(seeds):
        if task not in best:
            best[task] = best_rates(task, models, rates, complete)
        measured += complete(
            [(task, *model, seed, best[task][model]) for model in models]
        )
    searched = [
        run
        for (task, *_, seed, _), run in runs.items()
        if seed == RATE_SEED and task in seeds
    ]
    return {"runs": measured, "rates": searched}


def ordered(seeds):
    """(task, seed), so that a measurement may end early with complete rows."""
    cases = [(task, seed) for task in seeds for seed in range(seeds[task])]
    return sorted(cases, key=lambda case: case[1] >= FIRST_SEEDS)


def best_rates(task, models, rates, complete):
    """{model: the rate of the lowest validation loss, between two others}"""
    tried, best = dict.fromkeys(models, FIRST_RATES), {}
    while open_models := [model for model in models if model not in best]:
        keys = [
            (task, *model, RATE_SEED, rate)
            for model in open_models
            for rate in tried[model]
        ]
        runs = groups(complete(keys), "matrix", "inputs")
        for model in open_models:
            losses = {run["rate"]: run["validation"] for run in runs[model]}
            rate = min(losses, key=losses.get)
            place = rates.index(rate)
            if rate == min(losses) and place > 0:
                tried[model] = rates[place - 1], *tried[model]
            elif rate == max(losses) and place < len(rates) - 1:
                tried[model] = *tried[model], rates[place + 1]
            else:
                best[model] = rate
    return best


def complete_runs(runs, units, updates, keys):
    """The runs of keys; those missing are trained, and stored."""
    missing = [key for key in keys if key not in runs]
    by_program = {}
    for key in missing:
        by_program.setdefault((key[3], key[1] == KEPT), []).append(key)
    for (seed, _), every in by_program.items():
        for start in range(0, len(every), MODELS_OF_A_PROGRAM):
            chunk = every[start : start + MODELS_OF_A_PROGRAM]
            outcomes = train(chunk[0][0], seed, chunk, units, updates)
            for key, outcome in zip(chunk, outcomes, strict=True):
                runs[key] = outcome
    return [runs[key] for key in keys]


def train(task, seed, keys, units, updates=None):
    """The losses of models of one task, seed and constraint."""
    import jax

    updates = updates or TASKS[task][-1]
    models, rates = zip(*((key[1:3], key[-1]) for key in keys), strict=True)
    many, weights, losses, tests = trained(
        task, seed, models, rates, units, updates
    )
    diverged = ~np.isfinite(losses).all(axis=1)
    predict = jax.jit(
        lambda weights, inputs: jax.lax.map(
            lambda of_model: many.outputs(of_model, inputs), weights
        )
    )
    scores = []
    for number, (x, y) in enumerate(tests):
        outputs = predict(weights, inputs_of(task, x, updates + number))
        scores.append([score(task, y, np.array(o)) for o in outputs])
    return [
        {"validation": validation, "test": test, "diverged": bool(lost)}
        for validation, test, lost in zip(*scores, diverged, strict=True)
    ]


def trained(task, seed, models, rates, units, updates):
    """ManyModels, the trained weights, losses, and the data of two tests."""
    rng = np.random.default_rng(seed)
    (x, y), *tests = datasets(task, rng)
    rows = rng.integers(len(y), size=(updates, BATCH))
    makers = {
        model: functools.partial(build, task, *model, seed, units)
        for model in models
    }
    loss = (
        keras.losses.MeanSquaredError()
        if task == "adding"
        else keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    )
    kind = NoisyModels if task == "noisy pixels" else ManyModels
    many = kind(makers[models[0]](), loss)

    def batch(settings, update):
        chosen = keras.ops.take(rows, update, axis=0)
        inputs = inputs_of(task, keras.ops.take(x, chosen, axis=0), update)
        return inputs, keras.ops.take(y, chosen, axis=0)

    weights = initial_weights(makers, [(model, seed) for model in models])
    settings = {"rate": np.array(rates, "float32")}
    return many, *many.train(weights, settings, batch, updates), tests


def datasets(task, rng):
    """(x, y) to train, validate and test on."""
    length, features = TASKS[task][:2]
    if features > 1:
        options = {"copied": 5} if task == "copying" else {}
        generate = getattr(tasks, task).generate
        splits = [
            generate(rng, samples, length, **options)
            for samples in (10_000, TEST, TEST)
        ]
        if task == "copying":  # as integers, a tenth of the memory
            splits = [(x.argmax(axis=2).astype("uint8"), y) for x, y in splits]
        return splits
    name = "mnist" if task == "permuted MNIST" else "digits"
    order = np.random.default_rng(0).permutation(length)
    return [
        (tasks.sequential_pixels.generate(x, order), y)
        for x, y in load_images(name)
    ]


def inputs_of(task, x, update):
    if task == "copying":
        return keras.ops.one_hot(x, TASKS[task][1])
    return (x, update) if task == "noisy pixels" else x


class NoisyModels(ManyModels):
    """Models with other noise at each update, which comes with the inputs."""

    def outputs(self, weights, x):
        x, update = x
        counter = keras.ops.cast(update, "uint32")
        states = [keras.ops.stack([seed, counter]) for seed, _ in self.fixed]
        return self.model.stateless_call(weights, states, x)[0]


def build(task, matrix, inputs, seed, units):
    length, features, outputs, _ = TASKS[task]
    recurrent = MATRICES[matrix](seed)
    options = {"recurrent_initializer": Offset(recurrent)}
    if matrix == "identity":
        options = {}  # with its noise
    if inputs == "aligned":
        options["kernel_initializer"] = AlignedInput(recurrent, horizon=length)
    elif inputs == "at one unit":
        options["kernel_initializer"] = OneUnitInput()
    if matrix == KEPT:
        options["recurrent_constraint"] = Orthogonal(offset=True)
    if task == "noisy pixels":
        layer = NoisyRNN(RINCell(units, **options), NOISE, seed=seed)
    else:
        layer = RIN(units, return_sequences=task == "copying", **options)
    read_out = keras.layers.Dense(outputs)
    return keras.Sequential([keras.Input((length, features)), layer, read_out])


def score(task, y, outputs):
    """The normalized loss, at most 1; 1 where it is not finite."""
    outputs = outputs.astype("float64")
    if task == "adding":
        value = np.mean((y - outputs) ** 2) / tasks.adding.baseline_loss()
    elif task == "copying":
        exponents = outputs - outputs.max(axis=-1, keepdims=True)
        log_sums = np.log(np.exp(exponents).sum(axis=-1))
        chosen = np.take_along_axis(exponents, y[..., None], -1)[..., 0]
        baseline = tasks.copying.baseline_loss(y.shape[1], copied=5)
        value = np.mean(log_sums - chosen) / baseline
    else:
        chance = tasks.sequential_pixels.chance_accuracy(y)
        value = np.mean(outputs.argmax(axis=-1) != y) / (1 - chance)
        value = value if np.isfinite(outputs).all() else 1
    return float(min(1, np.nan_to_num(value, nan=1.0)))


def tables(results):
    searched = groups(results["rates"], "task", "matrix", "inputs")
    rows = []
    by_model = groups(results["runs"], "task", "matrix", "inputs")
    for model, runs in by_model.items():
        every = [*runs, *searched[model]]
        solved = sum(run["test"] < SOLVED for run in runs)
        diverged = sum(run["diverged"] for run in every)
        rows.append(
            [*model, spread([run["test"] for run in runs], 2)]
            + [f"{runs[0]['rate']:g}", f"{solved} of {len(runs)}"]
            + [f"{diverged} of {len(every)}"]
        )
    caption = (
        "Test loss (median, lowest to highest of the seeds), seeds whose loss "
        "is below 0.5, and diverged runs, also of the search for rates"
    )
    header = ["task", "matrix", "inputs", "normalized loss", "learning rate"]
    table = record.markdown([*header, "solved", "diverged"], rows, words=3)
    return {caption: table}


def comparison(first, second, expect="better", among=SHORT, within=0.05):
    """A finding: the losses of two models (matrix, inputs), task by task."""

    def find(results):
        runs = groups(results["runs"], "task", "matrix", "inputs")
        parts = []
        for task in among:
            losses = [
                {run["seed"]: run["test"] for run in runs.get(model, [])}
                for model in ((task, *first), (task, *second))
            ]
            if all(losses):
                parts.append(verdicts.compare(*losses, expect, within, task))
        return parts

    return find


DRAWN, ONE, ALIGNED = INPUTS
NOISELESS = "copying", "adding", "pixels"
wave_against_identity = comparison(("circular", ONE), ("identity", DRAWN))
wave_against_drawn = comparison(("circular", ONE), ("circular", DRAWN))
chain_against_orthogonal = comparison(
    ("chain", ALIGNED), ("orthogonal", DRAWN), among=NOISELESS
)
chain_against_identity = comparison(
    ("chain", ALIGNED), ("identity", DRAWN), among=NOISELESS
)
chain_in_noise = comparison(
    ("chain", ALIGNED), ("orthogonal", DRAWN), among=("noisy pixels",)
)
aligned_chain = comparison(("chain", ALIGNED), ("chain", DRAWN))
aligned_orthogonal = comparison(
    ("orthogonal", ALIGNED), ("orthogonal", DRAWN), expect="equal"
)
open_against_circular = comparison(("chain", ALIGNED), ("circular", ALIGNED))
kept_against_free = comparison((KEPT, DRAWN), ("orthogonal", DRAWN))


VARIANTS = {
    "": Variant("Four tasks", {"seeds": dict.fromkeys(SHORT, 10)}, "jax"),
    "mnist": Variant("MNIST", {"seeds": {"permuted MNIST": 10}}, "jax"),
}
SMALLEST = {"seeds": {"copying": 1, "noisy pixels": 1}}
SMALLEST |= {"units": 12, "updates": 2, "rates": FIRST_RATES}
SMALLEST["models"] = ("chain", "aligned"), (KEPT, "at one unit")
