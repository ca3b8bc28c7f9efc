"""Which recurrent layer recognizes real recordings, over eight data sets?

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
small W. PLAID and ACSF1, of 1,344 and 1,460 time steps, did not fit into the
time of the GPU.

Three classifiers of sktime are the alternatives without a recurrent layer: the
nearest neighbor by Euclidean distance and after dynamic time warping, and
MiniRocket with three seeds, which needs the package numba. Shorter recordings
have zeros behind their ends.
"""

import dataclasses
import functools
import itertools

import keras
import numpy as np
from archive import data
from keras import ops
from scipy import stats

from engine import record
from engine.many_models import ManyModels
from engine.many_models import initial_weights
from engine.measurement import Variant
from engine.measurement import spread
from engine.partial_runs import PartialRuns
from engine.verdicts import mean_interval
from keras_rin.initializers import Chain
from keras_rin.initializers import Offset
from keras_rin.initializers import PartialIdentity
from keras_rin.layers import RIN

UNITS, BATCH, UPDATES, FOLDS, SEEDS = 64, 16, 1_000, 4, 10
DATA = tuple(data.PACKAGES)
PREDICTED = 32  # recordings in a batch of predictions
# The data sets whose accuracies at all rates are shown.
RATE_TABLE = ("BasicMotions", "GunPoint")
PUBLISHED_ERRORS = (
    ("ItalyPowerDemand", 0.0447, 0.0496),
    ("GunPoint", 0.0867, 0.0933),
    ("ArrowHead", 0.2000, 0.2971),
    ("PickupGestureWiimoteZ", 0.4400, 0.3400),
    ("OSULeaf", 0.4793, 0.4091),
    ("PLAID", 0.4767, 0.1639),
    ("ACSF1", 0.4600, 0.3600),
)
RATES = (0.001, 0.003, 0.01, 0.03)
READ_OUTS = ("last state", "mean of states")
# {architecture: {model: function of units and options that makes the layer}};
# an initializer that is made once would draw the same weights for each seed.
ARCHITECTURES = {
    "RIN": {
        "RIN": RIN,
        "RIN, partial identity": lambda units, **options: RIN(
            units, recurrent_initializer=Offset(PartialIdentity()), **options
        ),
        "RIN, chain": lambda units, **options: RIN(
            units, recurrent_initializer=Offset(Chain()), **options
        ),
        "RIN, orthogonal": lambda units, **options: RIN(
            units, recurrent_initializer=Offset("orthogonal"), **options
        ),
        "IRNN": lambda units, **options: RIN(
            units,
            kernel_initializer=keras.initializers.RandomNormal(stddev=0.001),
            recurrent_initializer="zeros",
            **options,
        ),
    },
    "SimpleRNN": {"SimpleRNN": keras.layers.SimpleRNN},
} | {
    name: {name: functools.partial(layer, use_cudnn=False)}
    for layer in (keras.layers.GRU, keras.layers.LSTM)
    for name in (
        f"{layer.__name__}, as many weights",
        f"{layer.__name__}, as many units",
    )
}


def measure(
    names=DATA,
    architectures=tuple(ARCHITECTURES),
    updates=UPDATES,
    seeds=SEEDS,
    most_units=UNITS,
    partial=None,
    classifiers=False,
):
    if classifiers:
        return {"classifiers": [classify(name) for name in names]}
    runs = PartialRuns(partial, ("data", "architecture"))
    runs = runs.complete(
        itertools.product(names, architectures),
        lambda *case: train(*case, updates, seeds, most_units),
    )
    return {"runs": runs}


def train(name, architecture, updates, seeds, units):
    """Trains all models of an architecture on one data set.

    Returns {model: {rate and read-out: how many are right}}, of the part that
    each of FOLDS leaves out and, for each seed, of the test set; -1 is a run
    that diverged.
    """
    import jax

    recordings, test = data.read(name)
    layers = ARCHITECTURES[architecture]
    layer = next(iter(layers.values()))
    if architecture.endswith("as many weights"):
        units = as_many_weights(layer, units, recordings)
    models = ManyModels(build(layer, units, recordings), loss)
    # A run of the first seed without each part, and of each seed with all.
    runs = [(0, part) for part in range(FOLDS)]
    runs += [(seed, None) for seed in range(seeds)]
    cases = [
        (model, rate, how, seed, part)
        for model, rate, how, (seed, part) in itertools.product(
            layers, RATES, READ_OUTS, runs
        )
    ]
    makers = {
        model: functools.partial(build, layer, units, recordings)
        for model, layer in layers.items()
    }
    weights = initial_weights(makers, [(case[0], case[3]) for case in cases])
    parts = data.parts(recordings.y, FOLDS)
    settings = {
        "rate": np.array([rate for _, rate, _, _, _ in cases], "float32"),
        "mean": np.array([how == READ_OUTS[1] for _, _, how, _, _ in cases]),
        "key": jax.vmap(jax.random.key)(
            np.array([seed for _, _, _, seed, _ in cases])
        ),
        "rows": np.array([parts != part for _, _, _, _, part in cases]),
    }
    weights, losses = models.train(
        weights, settings, batches(recordings), updates
    )
    diverged = ~np.isfinite(losses).all(axis=1)
    fold, whole = (
        predict(models, weights, settings["mean"], of)
        for of in (recordings, test)
    )
    results = {}
    for number, (model, rate, how, _, part) in enumerate(cases):
        if part is None:
            kind, right = "test", whole[number]
        else:
            kind, right = "fold", fold[number][parts == part]
        count = -1 if diverged[number] else int(right.sum())
        of_case = results.setdefault(model, {}).setdefault(
            f"{rate:g}, {how}", {}
        )
        of_case.setdefault(kind, []).append(count)
    counts = {
        model: count_weights(layer, units, recordings)
        for model, layer in layers.items()
    }
    sizes = {"test": len(test.y), "weights": counts}
    return {"models": results, "sizes": sizes}


def build(layer, units, recordings):
    x = keras.Input((None, recordings.x.shape[-1]))
    share = keras.Input((None,))  # of each time step in the read-out
    states = layer(units, return_sequences=True)(x)
    state = keras.layers.Dot(axes=1)([share, states])
    classes = int(recordings.y.max()) + 1
    return keras.Model([x, share], keras.layers.Dense(classes)(state))


def loss(y, logits):
    losses = keras.losses.sparse_categorical_crossentropy(
        y, logits, from_logits=True
    )
    return ops.mean(losses)


def batches(recordings):
    """The function (settings of a model, update) that draws a batch."""
    import jax

    x, lengths, y = map(
        ops.convert_to_tensor, (recordings.x, recordings.lengths, recordings.y)
    )

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
        part = (recordings.x, recordings.lengths, recordings.y)
        answers.append(right(weights, mean, *(array[rows] for array in part)))
    return np.concatenate(answers, axis=1)[:, :count]


def as_many_weights(layer, most_units, recordings):
    """The largest number of units with at most the weights of a RIN."""
    most = count_weights(RIN, most_units, recordings)
    units = most_units
    while units > 1 and count_weights(layer, units, recordings) > most:
        units -= 1
    return units


def count_weights(layer, units, recordings):
    layer = layer(units)
    layer.build((None, None, recordings.x.shape[-1]))
    return layer.count_params()


def classify(name):
    """The accuracies of classifiers of sktime, MiniRocket's of each seed."""
    from sktime.classification.distance_based import (
        KNeighborsTimeSeriesClassifier,
    )
    from sktime.classification.kernel_based import RocketClassifier

    train, test = data.read(name)
    steps = max(train.x.shape[1], test.x.shape[1])
    x, x_test = (as_sktime_reads(part.x, steps) for part in (train, test))

    def accuracy(classifier):
        classifier.fit(x, train.y)
        return float(np.mean(classifier.predict(x_test) == test.y))

    return {
        "data": name,
        "Euclidean distance": [
            accuracy(KNeighborsTimeSeriesClassifier(1, distance="euclidean"))
        ],
        "dynamic time warping": [
            accuracy(KNeighborsTimeSeriesClassifier(1, distance="dtw"))
        ],
        "MiniRocket": [
            accuracy(RocketClassifier(rocket_transform="minirocket", **seed))
            for seed in ({"random_state": n} for n in range(3))
        ],
    }


def as_sktime_reads(x, steps):
    """Recordings `(recordings, channels, steps)` of equal length, float64."""
    x = np.pad(x, ((0, 0), (0, steps - x.shape[1]), (0, 0)))
    return x.transpose(0, 2, 1).astype("float64")


@dataclasses.dataclass
class Model:
    """What a model reached on one data set.

    Attributes:
        rate: Learning rate that cross-validation chose.
        read_out: Read-out that cross-validation chose.
        accuracies: Array of the test accuracies of the seeds with them.
        by_rate: {rate: test accuracies}, of the last state.
        diverged: How many runs diverged, over all rates and read-outs.
        weights: Number of weights of the recurrent layer.
    """

    rate: str
    read_out: str
    accuracies: np.ndarray
    by_rate: dict
    diverged: int
    weights: int


def outcomes(runs):
    """{model: {data set: Model}}, from the counts of right answers."""
    models = {}
    for run in runs:
        test = run["sizes"]["test"]
        for name, counts in run["models"].items():
            # The first of the best: the smaller rate, then the last state.
            best = max(
                counts,
                key=lambda case: np.clip(counts[case]["fold"], 0, None).sum(),
            )
            accuracies = {
                case: np.clip(count["test"], 0, None) / test
                for case, count in counts.items()
            }
            rate, read_out = best.split(", ")
            models.setdefault(name, {})[run["data"]] = Model(
                rate,
                read_out,
                accuracies[best],
                {f"{r:g}": accuracies[f"{r:g}, {READ_OUTS[0]}"] for r in RATES},
                sum(
                    count.count(-1)
                    for kinds in counts.values()
                    for count in kinds.values()
                ),
                run["sizes"]["weights"][name],
            )
    return models


def tables(results):
    if "classifiers" in results:
        return {
            "Accuracy on the test set (median, lowest to highest of "
            "the seeds)": classifier_table(results["classifiers"]),
            "Published accuracies of the nearest neighbor (Dau et al., 2018, "
            "The UCR time series archive)": published_table(),
        }
    models = outcomes(results["runs"])
    return {
        "Mean test accuracy of ten seeds": accuracy_table(models),
        "RIN minus another model: the mean difference over the data sets, with "
        "its 95 % t interval, and in how many a paired t interval over the "
        "seeds excludes 0": difference_table(models),
        "Learning rate and read-out that cross-validation chose, how many of "
        "the rates are an end of the grid, and how many runs diverged": (
            choice_table(models)
        ),
        "Test accuracy at each learning rate, last state read (median, lowest "
        "to highest of the seeds)": rate_table(models),
    }


def accuracy_table(models):
    names = list(next(iter(models.values())))
    means = {
        model: [of_data[name].accuracies.mean() for name in names]
        for model, of_data in models.items()
    }
    ranks = stats.rankdata(-np.array(list(means.values())), axis=0).mean(axis=1)
    rows = [
        [
            model,
            f"{np.mean(values):.3f}",
            f"{rank:.1f}",
            *(f"{value:.3f}" for value in values),
        ]
        for (model, values), rank in zip(means.items(), ranks, strict=True)
    ]
    header = ["model", "mean", "mean rank", *names]
    return record.markdown(header, rows)


def difference_table(models):
    rows, rin = [], models["RIN"]
    for model, of_data in models.items():
        if model == "RIN":
            continue
        differences = [
            rin[name].accuracies - of_data[name].accuracies for name in rin
        ]
        means = [np.mean(difference) for difference in differences]
        low, high = mean_interval(means)
        intervals = [mean_interval(difference) for difference in differences]
        rows.append(
            [
                model,
                f"{np.mean(means):+.3f} ({low:+.3f} to {high:+.3f})",
                str(sum(low > 0 for low, _ in intervals)),
                str(sum(high < 0 for _, high in intervals)),
                str(sum(low <= 0 <= high for low, high in intervals)),
            ]
        )
    header = ["model", "difference", "RIN better", "RIN worse", "undecided"]
    return record.markdown(header, rows)


def choice_table(models):
    names = list(next(iter(models.values())))
    ends = {f"{rate:g}" for rate in (RATES[0], RATES[-1])}
    rows = [
        [
            model,
            str(sum(of_data[name].rate in ends for name in names)),
            str(sum(of_data[name].diverged for name in names)),
            *(
                f"{of_data[name].rate}, {of_data[name].read_out.split()[0]}"
                for name in names
            ),
        ]
        for model, of_data in models.items()
    ]
    return record.markdown(["model", "ends", "diverged", *names], rows)


def rate_table(models):
    rows = [
        [
            name,
            model,
            f"{of_data[name].weights:,}",
            *(spread(values) for values in of_data[name].by_rate.values()),
        ]
        for name in RATE_TABLE
        for model, of_data in models.items()
        if name in of_data
    ]
    header = ["data", "model", "weights", *(f"{rate:g}" for rate in RATES)]
    return record.markdown(header, rows, words=2)


def classifier_table(classifiers):
    names = [name for name in classifiers[0] if name != "data"]
    rows = [
        [name, f"{np.mean([np.mean(of[name]) for of in classifiers]):.3f}"]
        + [spread(of[name]) for of in classifiers]
        for name in names
    ]
    header = ["classifier", "mean", *(of["data"] for of in classifiers)]
    return record.markdown(header, rows)


def published_table():
    rows = [
        [name, f"{1 - euclidean:.3f}", f"{1 - warped:.3f}"]
        for name, euclidean, warped in PUBLISHED_ERRORS
    ]
    header = ["data", "Euclidean distance", "dynamic time warping"]
    return record.markdown(header, rows)


VARIANTS = {
    "": Variant("Recurrent layers", backend="jax"),
    "classifiers": Variant(
        "Classifiers of sktime", {"classifiers": True}, "jax"
    ),
}
SMALLEST = {
    "names": ("ItalyPowerDemand",),
    "architectures": ("RIN",),
    "updates": 2,
    "seeds": 1,
    "most_units": 2,
}
