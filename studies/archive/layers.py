"""Which recurrent layer is most accurate over eight data sets?

Eight data sets of the UCR and UEA archives, which come with the packages sktime
and aeon: movements, speech, electricity, outlines of leaves and of arrow heads,
24 to 427 time steps. Each channel is normalized by its mean and deviation in
the training set. A model is one recurrent layer and a dense layer that reads
its last state, or the mean of its states. Layers have 64 units; GRU and LSTM
also fewer, with about as many weights as a RIN of 64. Training: 1,000 updates
with batches of 16 recordings; Adam with `beta_2=0.99`, gradients clipped to a
global norm of 1, warm-up over a twentieth of the updates, and cosine decay.

The learning rate (0.001, 0.003, 0.01 or 0.03) and the read-out of each model
are those with the highest accuracy in cross-validation on the training set:
four parts, each with about as many recordings of each class, are left out in
turn (in a tie the smaller rate, then the last state). Ten seeds are then
trained on the whole training set. A run whose loss is no number is wrong
throughout.

All seeds, rates and read-outs of an architecture are trained at once, on a GPU,
with JAX. All recurrent layers with a ReLU are one architecture with different
initial weights: an IRNN, whose V is trained, is a RIN that begins at U = 0 with
small W.

Two more parts changed no verdict, and were removed: the next rate, 0.0003 or
0.1, where cross-validation chose an end of the grid; and GRU and LSTM after as
many updates as take as long as 1,000 of a RIN.
"""

import functools
import itertools

import keras
import numpy as np
from keras import ops
from scipy import stats

from engine import record
from engine import recordings as data
from engine.many_models import ManyModels
from engine.many_models import initial_weights
from engine.measurement import Variant
from engine.measurement import groups
from engine.models import as_many_weights
from engine.partial_runs import PartialRuns
from engine.verdicts import mean_interval
from engine.verdicts import mean_of
from keras_rin.initializers import Chain
from keras_rin.initializers import Offset
from keras_rin.initializers import PartialIdentity
from keras_rin.layers import RIN

UNITS, BATCH, UPDATES, FOLDS, SEEDS = 64, 16, 1_000, 4, 10
DATA = tuple(data.PACKAGES)
PREDICTED = 32  # recordings in a batch of predictions
RATES = (0.001, 0.003, 0.01, 0.03)
READ_OUTS = ("last state", "mean of states")


def begun(make_initializer):
    """The function that makes a RIN whose V begins with an initializer.

    One that is made once would draw the same weights for each seed.
    """
    return lambda units, **options: RIN(
        units, recurrent_initializer=Offset(make_initializer()), **options
    )


# {architecture: {model: function of units and options that makes the layer}}
ARCHITECTURES = {
    "RIN": {
        "RIN": RIN,
        "RIN, partial identity": begun(PartialIdentity),
        "RIN, chain": begun(Chain),
        "RIN, orthogonal": begun(keras.initializers.Orthogonal),
        "IRNN": lambda units, **options: RIN(
            units,
            kernel_initializer=keras.initializers.RandomNormal(stddev=0.001),
            recurrent_initializer="zeros",
            **options,
        ),
    },
    "SimpleRNN": {"SimpleRNN": keras.layers.SimpleRNN},
}
for gated in keras.layers.GRU, keras.layers.LSTM:
    for size in "weights", "units":
        name = f"{gated.__name__}, as many {size}"
        layer = functools.partial(gated, use_cudnn=False)
        ARCHITECTURES[name] = {name: layer}


def measure(names=DATA, architectures=ARCHITECTURES, partial=None, **sizes):
    runs = PartialRuns(partial, ("data", "architecture")).complete(
        itertools.product(names, architectures),
        functools.partial(train, **sizes),
    )
    return {"runs": runs}


def train(name, architecture, updates=UPDATES, seeds=SEEDS, units=UNITS):
    """Trains the models of an architecture on a data set.

    Returns {model: {rate and read-out: how many are right}}, of the part that
    each fold leaves out and, for each seed, of the test set; -1 is a run that
    diverged.
    """
    import jax

    recordings, test = data.read(name)
    layers = ARCHITECTURES[architecture]
    layer = next(iter(layers.values()))
    if architecture.endswith("as many weights"):
        units = as_many_weights(layer, units, recordings.x.shape[-1])
    many = ManyModels(build(layer, units, recordings), loss)
    # A run of the first seed without each part, and of each seed with all.
    runs = [(0, part) for part in range(FOLDS)]
    runs += [(seed, None) for seed in range(seeds)]
    cases = list(itertools.product(layers, RATES, READ_OUTS, runs))
    of_models, rates, read_outs, runs = zip(*cases, strict=True)
    seeds, left_out = zip(*runs, strict=True)
    makers = {
        model: functools.partial(build, layer, units, recordings)
        for model, layer in layers.items()
    }
    pairs = list(zip(of_models, seeds, strict=True))
    parts = data.parts(recordings.y, FOLDS)
    settings = {
        "rate": np.array(rates, "float32"),
        "mean": np.array(read_outs) == READ_OUTS[1],
        "key": jax.vmap(jax.random.key)(np.array(seeds)),
        "rows": np.array([parts != part for part in left_out]),
    }
    weights, losses = many.train(
        initial_weights(makers, pairs), settings, batches(recordings), updates
    )
    diverged = ~np.isfinite(losses).all(axis=1)
    fold, whole = (
        predict(many, weights, settings["mean"], of)
        for of in (recordings, test)
    )
    results = {model: {} for model in layers}
    for number, (model, rate, how, (_, part)) in enumerate(cases):
        right = whole[number] if part is None else fold[number][parts == part]
        counts = {"fold": [], "test": []}
        counts = results[model].setdefault(f"{rate:g}, {how}", counts)
        count = -1 if diverged[number] else int(right.sum())
        counts["test" if part is None else "fold"].append(count)
    return {"models": results, "sizes": {"test": len(test.y)}}


def build(layer, units, recordings):
    x = keras.Input((None, recordings.x.shape[-1]))
    share = keras.Input((None,))  # of each time step in the read-out
    states = layer(units, return_sequences=True)(x)
    state = keras.layers.Dot(axes=1)([share, states])
    classes = int(recordings.y.max()) + 1
    return keras.Model([x, share], keras.layers.Dense(classes)(state))


loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def batches(recordings):
    """The function (settings of a model, update) that draws a batch."""
    import jax

    x, lengths, y = map(ops.convert_to_tensor, recordings)

    def draw(settings, update):
        key = jax.random.fold_in(settings["key"], update)
        allowed = ops.cast(settings["rows"], "float32")
        rows = jax.random.choice(
            key, len(y), (BATCH,), replace=False, p=allowed / ops.sum(allowed)
        )
        share = shares(lengths[rows], settings["mean"], x.shape[1])
        return [x[rows], share], y[rows]

    return draw


def shares(lengths, mean, steps):
    """What each time step adds to the read-out `(recordings, steps)`."""
    step, lengths = ops.arange(steps), lengths[:, None]
    last = ops.cast(step == lengths - 1, "float32")
    inside = ops.cast(step < lengths, "float32")
    return ops.where(mean, inside / ops.cast(lengths, "float32"), last)


def predict(models, weights, mean, recordings):
    """Whether each model is right about each recording."""
    import jax

    @jax.jit
    def right(weights, mean, x, lengths, y):
        share = shares(lengths, mean, x.shape[1])
        logits = models.outputs(weights, [x, share])
        return ops.argmax(logits, axis=-1) == y

    right = jax.vmap(right, in_axes=(0, 0, None, None, None))
    count = len(recordings.y)
    answers = []
    for first in range(0, count, PREDICTED):
        # The last batch repeats rows: one more size would be compiled.
        rows = np.arange(first, first + PREDICTED) % count
        part = (array[rows] for array in recordings)
        answers.append(right(weights, mean, *part))
    return np.concatenate(answers, axis=1)[:, :count]


def outcomes(runs):
    """The accuracies of each model on each test set, one a seed.

    With the rate and the read-out that cross-validation chose.
    """
    reached = []
    for run in runs:
        for model, counts in run["models"].items():
            # A run that diverged, whose count is -1, is wrong throughout.
            right = {
                case: {kind: np.clip(n, 0, None) for kind, n in kinds.items()}
                for case, kinds in counts.items()
            }
            # The first of the best: the smaller rate, then the last state.
            best = max(right, key=lambda case: right[case]["fold"].sum())
            outcome = {"data": run["data"], "model": model, "chosen": best}
            accuracies = right[best]["test"] / run["sizes"]["test"]
            reached.append(outcome | {"accuracies": accuracies})
    return reached


def tables(results):
    models = groups(outcomes(results["runs"]), "model")
    return {
        "Mean test accuracy of ten seeds": accuracy_table(models),
        "RIN minus another model: the mean difference over the data sets, with "
        "its 95 % t interval, and in how many a paired t interval over the "
        "seeds excludes 0": difference_table(models),
        "Learning rate and read-out that cross-validation chose": (
            choice_table(models)
        ),
    }


def accuracy_table(models):
    means = {
        model: [of_data["accuracies"].mean() for of_data in reached]
        for model, reached in models.items()
    }
    ranks = stats.rankdata(-np.array(list(means.values())), axis=0).mean(axis=1)
    rows = [
        [model, f"{np.mean(values):.3f}", f"{rank:.1f}"]
        + [f"{value:.3f}" for value in values]
        for (model, values), rank in zip(means.items(), ranks, strict=True)
    ]
    header = ["model", "mean", "mean rank", *names_of(models)]
    return record.markdown(header, rows)


def names_of(models):
    return [of_data["data"] for of_data in next(iter(models.values()))]


def difference_table(models):
    accuracies = {
        model: np.array([of_data["accuracies"] for of_data in reached])
        for model, reached in models.items()
    }
    rin, rows = accuracies.pop("RIN"), []
    for model, other in accuracies.items():
        means = np.mean(rin - other, axis=1)
        lows, highs = np.transpose([*map(mean_interval, rin - other)])
        counts = lows > 0, highs < 0, (lows <= 0) & (highs >= 0)
        difference = mean_of(means, "+.3f", "+.3f")
        rows.append([model, difference, *(str(n.sum()) for n in counts)])
    header = ["model", "difference", "RIN better", "RIN worse", "undecided"]
    return record.markdown(header, rows)


def choice_table(models):
    rows = [
        [model, *(of["chosen"].removesuffix(" of states") for of in reached)]
        for model, reached in models.items()
    ]
    rows = [[cell.removesuffix(" state") for cell in row] for row in rows]
    return record.markdown(["model", *names_of(models)], rows)


VARIANTS = {"": Variant("Recurrent layers", backend="jax")}
SMALLEST = {"names": ("ItalyPowerDemand",), "architectures": ("RIN",)}
SMALLEST |= {"updates": 2, "seeds": 1, "units": 2}
