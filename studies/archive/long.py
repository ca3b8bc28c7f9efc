"""Can recordings of up to 1,460 steps be learned, and by which layer?

PLAID (537 recordings to train on and 537 to test on, of up to 1,344 time steps)
and ACSF1 (100 and 100, 1,460 steps) are the current of 11 and 10 kinds of
appliances; both come with sktime. A strided convolution makes 168 or 183 states
of their steps:

    Conv1D(32, 16, strides=8, padding="same", activation="relu")
    LayerNormalization()
    RIN(64, return_sequences=True)
    GlobalAveragePooling1D()
    Dropout(0.3)
    Dense(classes)

A GRU has about as many weights as the RIN. The *scale* of a recording is that
of the training *set*, or its *own*: its mean and deviation, the logarithm of
which is a second channel. A *rolled* recording is shifted in time at random, by
up to an eighth of the steps, each time it is drawn. Both, and one of four
learning rates, are chosen on parts of the training set, a quarter each: two of
PLAID and four of ACSF1, left out in turn. The choice is the smallest rate whose
mean accuracy on them is within one standard error of the highest, and of
several choices with this rate that with the highest mean (Breiman et al.,
1984). The scale of the set, with which a RIN fails on PLAID, is tried there
with no other layer. Ten seeds are then trained on the whole training set. A run
whose loss is no number is wrong throughout.

The rule was changed after the results of RIN and GRU were known (commit
a82837f): the highest mean had chosen. On PLAID both rules choose the same. On
ACSF1 the highest mean chose a rate of 0.003 for the RIN, with 0.698 (0.669 to
0.727) after 1,500 updates and 0.672 (0.500 to 0.844) after 3,000, where one of
ten seeds diverged, and 0.03 for the GRU, with 0.829 (0.806 to 0.852). The
lowest rate of each layer was added after that, since the next one had been
chosen on ACSF1: 0.0003 for the RIN, with 0.743 (0.720 to 0.766) and 0.798
(0.776 to 0.820), 0.003 for the GRU, with 0.856 (0.842 to 0.870), and 0.003 for
the model without a recurrent layer, with 0.831 (0.817 to 0.845). Four parts of
25 recordings do not tell these rates apart. With three rates a layer is trained
again by

    KERAS_BACKEND=jax python -c "from archive import long
    long.RATES['none'] = 0.003, 0.01, 0.03
    print(long.measure(['ACSF1'], ['none']))"

A GRU and an LSTM make 4,000 updates on PLAID and 1,500 on ACSF1. A RIN and the
model without a recurrent layer (*none*) make twice as many, with which their
rate is chosen, and a RIN also as many. Batches have 16 recordings; Adam has
`beta_2=0.99, global_clipnorm=1.0`, warm-up over a twentieth of the updates, and
cosine decay. All runs of a choice are trained in one program, with JAX.

The eight data sets of *layers*, of 24 to 427 time steps, are learned in the
same way, with 500 updates of a GRU and four parts.
"""

import functools
import itertools

import keras
import numpy as np
import pandas
from scipy import stats

from engine import record
from engine import recordings as data
from engine.many_models import ManyModels
from engine.many_models import initial_weights
from engine.measurement import Variant
from engine.models import as_many_weights
from engine.partial_runs import PartialRuns
from engine.verdicts import mean_of
from keras_rin.layers import RIN

UNITS, FILTERS, STRIDE, BATCH, DROPOUT = 64, 32, 8, 16, 0.3
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
SHORT = tuple(data.PACKAGES)
FOLDS = {"PLAID": 2, "ACSF1": 4} | dict.fromkeys(SHORT, 4)
UPDATES = {"PLAID": 4_000, "ACSF1": 1_500} | dict.fromkeys(SHORT, 500)
LAYERS = {
    "RIN": RIN,
    "GRU": functools.partial(keras.layers.GRU, use_cudnn=False),
    "LSTM": functools.partial(keras.layers.LSTM, use_cudnn=False),
    "none": None,
}
RATES = {name: (0.001, 0.003, 0.01, 0.03) for name in LAYERS}
RATES["RIN"] = (0.0001, 0.0003, 0.001, 0.003)
SCALES = "set", "own"
FAILED = {("PLAID", "set")}  # with a RIN, so not tried with other layers
TIMES = {"RIN": 2, "GRU": 1, "LSTM": 1, "none": 2}


def measure(
    names=("PLAID", "ACSF1"),
    layers=tuple(LAYERS),
    partial=None,
    updates=UPDATES,
    seeds=10,
):
    stored = PartialRuns(partial, ("data", "layer", "part"))
    runs = []
    for layer, name in itertools.product(layers, names):
        most = TIMES[layer] * updates[name]
        choose = functools.partial(accuracies_by_choice, updates=most)
        keys = [
            (name, layer, scale)
            for scale in SCALES
            if layer == "RIN" or (name, scale) not in FAILED
        ]
        choices = stored.complete(keys, choose)
        tested = functools.partial(accuracies, choices=choices, seeds=seeds)
        numbers = {most, updates[name]} if layer == "RIN" else {most}
        keys = [(name, layer, number) for number in sorted(numbers)]
        runs += [*choices, *stored.complete(keys, tested)]
    return {"runs": runs}


def accuracies_by_choice(name, layer, scale, updates):
    """The accuracies on each part left out, by learning rate and rolling."""
    recordings, _ = scaled(name, scale)
    choices = list(itertools.product(RATES[layer], (False, True)))
    runs = [(*choice, 0) for choice in choices]
    parts = data.parts(recordings.y, 4)
    folds = []
    for left_out in range(FOLDS[name]):
        rows = parts != left_out
        answers = right(layer, recordings, recordings, updates, runs, rows)
        folds.append(answers[:, ~rows].mean(axis=1).tolist())
    return {
        "choices": [
            {"rate": rate, "rolled": rolled, "folds": of_choice}
            for (rate, rolled), *of_choice in zip(choices, *folds, strict=True)
        ]
    }


def accuracies(name, layer, updates, choices, seeds):
    """Those of each seed on the test set, with the best of the choices."""
    best = best_choice(choices)
    recordings, test = scaled(name, best["scale"])
    runs = [(best["rate"], best["rolled"], seed) for seed in range(seeds)]
    answers = right(layer, recordings, test, updates, runs, slice(None))
    return best | {"accuracies": answers.mean(axis=1).tolist()}


def best_choice(choices):
    """The smallest rate within a standard error of the highest mean."""
    every = [
        {"scale": scale["part"], **choice}
        for scale in choices
        for choice in scale["choices"]
    ]
    means = [np.mean(choice["folds"]) for choice in every]
    folds = every[np.argmax(means)]["folds"]
    least = max(means) - stats.sem(folds)
    within = [n for n, mean in enumerate(means) if mean >= least]
    return every[min(within, key=lambda n: (every[n]["rate"], -means[n]))]


@functools.cache
def scaled(name, scale):
    """Recordings to train and to test on, of equal length, in one scale."""
    parts = data.read(name)
    steps = max(part.x.shape[1] for part in parts)
    x = [
        np.pad(part.x, ((0, 0), (0, steps - part.x.shape[1]), (0, 0)))
        for part in parts
    ]
    if scale == "own":
        x = by_own_deviation(x, [part.lengths for part in parts])
    return [part._replace(x=new) for part, new in zip(parts, x, strict=True)]


def by_own_deviation(x, lengths):
    """Each recording by its mean and deviation, and the latter's logarithm.

    The logarithms are normalized over the first array, that to train on.
    """
    waves, logarithms = [], []
    for recordings, counts in zip(x, lengths, strict=True):
        inside = np.arange(recordings.shape[1]) < counts[:, None]
        inside = inside[..., None]
        mean = recordings.mean(axis=1, keepdims=True, where=inside)
        deviation = recordings.std(axis=1, keepdims=True, where=inside) + 1e-6
        waves.append(np.where(inside, (recordings - mean) / deviation, 0))
        logarithms.append(np.log(deviation) * np.ones_like(recordings))
    mean, deviation = logarithms[0].mean((0, 1)), logarithms[0].std((0, 1))
    return [
        np.concatenate([wave, (logarithm - mean) / deviation], -1).astype(
            "float32"
        )
        for wave, logarithm in zip(waves, logarithms, strict=True)
    ]


def build(layer, channels, classes):
    """The model, of which the mask of dropout is a second input."""
    x = inputs = keras.Input((None, channels))
    x = keras.layers.Conv1D(
        FILTERS, 2 * STRIDE, strides=STRIDE, padding="same", activation="relu"
    )(x)
    x = keras.layers.LayerNormalization()(x)
    if LAYERS[layer] is not None:
        units = as_many_weights(LAYERS[layer], UNITS, FILTERS)
        x = LAYERS[layer](units, return_sequences=True)(x)
    x = keras.layers.GlobalAveragePooling1D()(x)
    mask = keras.Input((x.shape[-1],))
    x = keras.layers.Multiply()([x, mask])
    return keras.Model([inputs, mask], keras.layers.Dense(classes)(x))


def right(layer, recordings, test, updates, runs, rows):
    """Whether each model `(models, recordings)` is right after training.

    Each run is a learning rate, whether recordings are rolled, and a seed.
    """
    import jax

    channels = recordings.x.shape[-1]
    classes = int(recordings.y.max()) + 1
    make = functools.partial(build, layer, channels, classes)
    many = ManyModels(make(), loss)
    rates, rolled, seeds = zip(*runs, strict=True)
    weights = initial_weights({"": make}, [("", seed) for seed in seeds])
    settings = {
        "rate": np.array(rates, "float32"),
        "rolled": np.array(rolled),
        "key": jax.vmap(jax.random.key)(np.array(seeds)),
    }
    width = many.model.inputs[1].shape[1]
    train = recordings._replace(x=recordings.x[rows], y=recordings.y[rows])
    weights, losses = many.train(
        weights, settings, batches(train, width), updates
    )
    diverged = ~np.isfinite(losses).all(axis=1)
    answers = predict(many, weights, test.x, width)
    return (answers == test.y) & ~diverged[:, None]


def batches(recordings, width):
    """The function (settings of a model, update) that draws a batch."""
    import jax
    from jax import numpy as jnp

    x, y = jnp.asarray(recordings.x), jnp.asarray(recordings.y)
    most = x.shape[1] // 8

    def draw(settings, update):
        key = jax.random.fold_in(settings["key"], update)
        keys = jax.random.split(key, 3)
        rows = jax.random.choice(keys[0], len(y), (BATCH,), replace=False)
        shifts = jax.random.randint(keys[1], (BATCH,), -most, most + 1)
        shifts = shifts * settings["rolled"]
        rolled = jax.vmap(functools.partial(jnp.roll, axis=0))(x[rows], shifts)
        mask = jax.random.bernoulli(keys[2], 1 - DROPOUT, (BATCH, width))
        return [rolled, mask / (1 - DROPOUT)], y[rows]

    return draw


def predict(models, weights, x, width):
    """The class `(models, recordings)` that each model answers."""
    import jax

    @jax.jit
    @functools.partial(jax.vmap, in_axes=(0, None))
    def answer(weights, x):
        logits = models.outputs(weights, [x, np.ones((len(x), width), "f")])
        return logits.argmax(axis=-1)

    pieces = np.array_split(x, max(1, len(x) // 50))
    return np.concatenate([answer(weights, piece) for piece in pieces], axis=1)


def tables(results):
    tested = [run for run in results["runs"] if "accuracies" in run]
    chosen = [run for run in results["runs"] if "choices" in run]
    if any(run["data"] in SHORT for run in tested):
        accuracies, differences = tables_over_data(tested)
        return {
            "Accuracy on the test set (mean of ten seeds with its 95 % t "
            "interval), after the updates of which the rate is chosen": (
                accuracies
            ),
            "RIN minus another layer: the mean over the data sets with its "
            "95 % t interval": differences,
        }
    return {
        "Accuracy on the test set (mean of ten seeds with its 95 % t interval, "
        "and the lowest)": record.table(TESTED, tested, words=3),
        "RIN minus another layer, in accuracy (paired t interval over the "
        "seeds)": difference_table(tested),
        "Mean accuracy on the parts left out, at the best learning rate": (
            record.table(CHOSEN, chosen, words=3)
        ),
    }


def best_fold(run, rolled):
    folds = [
        choice["folds"]
        for choice in run["choices"]
        if choice["rolled"] == rolled
    ]
    return f"{np.mean(folds, axis=1).max():.3f}"


TESTED = {
    "data": "{data}",
    "layer": "{layer}",
    "scale": lambda run: run["scale"] + ", rolled" * run["rolled"],
    "rate": "{rate:g}",
    "updates": "{part:,}",
    "accuracy": lambda run: mean_of(run["accuracies"], ".3f", ".3f"),
    "lowest": lambda run: f"{min(run['accuracies']):.3f}",
}
CHOSEN = {
    "data": "{data}",
    "layer": "{layer}",
    "scale": "{part}",
    "not rolled": functools.partial(best_fold, rolled=False),
    "rolled": functools.partial(best_fold, rolled=True),
}


def difference_table(tested):
    runs = pandas.DataFrame(tested)
    is_rin = runs["layer"] == "RIN"
    pairs = runs[is_rin].merge(runs[~is_rin], on="data", suffixes=("_rin", ""))
    rows = []
    for pair in pairs.itertuples():
        difference = np.subtract(pair.accuracies_rin, pair.accuracies)
        difference = mean_of(difference, "+.3f", "+.3f")
        updates = f"{pair.part_rin:,}", f"{pair.part:,}"
        rows.append([pair.data, pair.layer, *updates, difference])
    header = ["data", "layer", "updates of RIN", "of the other", "difference"]
    return record.markdown(header, rows, words=2)


def tables_over_data(tested):
    """The accuracies after the most updates, and their mean differences."""
    frame = pandas.DataFrame(tested)
    frame = frame.drop_duplicates(["data", "layer"], keep="last")
    accuracies = frame.set_index(["data", "layer"])["accuracies"]
    accuracies = accuracies.unstack(sort=False)
    means = accuracies.map(np.mean)
    table = accuracies.map(mean_of, mean=".3f", ends=".3f")
    table.loc["mean"] = means.mean().map("{:.3f}".format)
    rin = means.pop("RIN")
    differences = means.rsub(rin, axis=0).apply(
        mean_of, mean="+.3f", ends="+.3f"
    )
    return (
        record.markdown(["data", *table], table.itertuples()),
        record.markdown(["layer", "difference"], differences.items()),
    )


VARIANTS = {
    "": Variant("Accuracy", backend="jax"),
    "short": Variant("Shorter recordings", {"names": SHORT}, backend="jax"),
}
SMALLEST = {"names": ("ACSF1",), "layers": ("RIN",)}
SMALLEST |= {"updates": {"ACSF1": 2}, "seeds": 3}
