"""Which layer follows the stream of an unseen person, in as many bytes?

A watch streams for days, and it meets people whom training has not seen. Ten
people did seven exercises (the data that come with `seglearn`: 140 recordings,
six channels, here at 25 Hz). Each fold leaves three or four people out: the
network streams 8 times 10,000 steps of them without a reset, in which the
exercise changes after 6 to 18 seconds. It has settled at the first of 25 right
answers in a row, or never, if the exercise changes before that.

Layers have about 350, 1,000 or 2,000 weights, read-out included; a weight takes
a byte as int8. All are trained on two joined crops of 128 steps, with a loss at
every step: 600 updates of 16 such pairs, Adam with `beta_2=0.99,
global_clipnorm=1.0`, warm-up and cosine decay. The learning rate of each fold,
of four to six, is that of the highest accuracy on two or three of the people
to train on, in a training without them. Five seeds make 15 runs; one that
diverged is counted, and left out of the accuracy. Runs of two layers with one
fold and seed are a pair.

*0.95 I* and *chain*: the initialization of V. Peers are FastRNN and FastGRNN
(Kusupati et al., 2018, arXiv 1901.02358), and minGRU (Feng et al., 2024, arXiv
2410.01201), h_t = h_{t-1} + z_t (c_t - h_{t-1}), whose gate z_t and candidate
c_t read the input alone, with the gate's bias initialized at -3 or 0; and three
causal convolutions of four steps with dilations 1, 4 and 16, which see 64
steps. The results of minGRU are those of commit a500b71, in which gate and
candidate had a kernel each with an initialization of its own.
"""

import functools
import itertools

import keras
import numpy as np
from devices import peers
from devices import watch

from engine import pictures
from engine import record
from engine.many_models import ManyModels
from engine.many_models import initial_weights
from engine.measurement import Variant
from engine.measurement import groups
from engine.partial_runs import PartialRuns
from engine.verdicts import mean_of
from keras_rin.initializers import Chain
from keras_rin.initializers import Offset
from keras_rin.layers import RIN
from keras_rin.layers import MinGRU

BATCH, UPDATES, SEEDS = 16, 600, 5
SIZES = (350, 1000, 2000)  # weights, each a byte
FOLDS = 3  # of the people to train on, one of which chooses the rate
DIFFERENCES = (
    ("minGRU, bias -3", "RIN, 0.95 I"),
    ("minGRU, bias -3", "RIN"),
    ("minGRU, bias -3", "GRU"),
    ("minGRU, bias -3", "minGRU, bias 0"),
    ("RIN", "GRU"),
    ("RIN, 0.95 I", "RIN"),
    ("RIN, 0.95 I", "GRU"),
)
TEST = 8, 10_000  # streams and steps
FIELDS = "layer", "size", "part"


def convolutions(filters, return_sequences=True):
    """Three causal convolutions, which see 64 steps."""
    return keras.Sequential(
        [
            keras.layers.Conv1D(
                filters, 4, dilation_rate=n, padding="causal", activation="relu"
            )
            for n in (1, 4, 16)
        ]
    )


LAYERS = {
    "RIN, 0.95 I": functools.partial(
        RIN,
        recurrent_initializer=Offset(keras.initializers.Identity(0.95)),
        fused=True,
    ),
    "minGRU, bias -3": MinGRU,
    "GRU": functools.partial(keras.layers.GRU, use_cudnn=False),
    "RIN": functools.partial(RIN, fused=True),
    "FastGRNN": peers.FastGRNN,
    "minGRU, bias 0": functools.partial(MinGRU, gate_bias=0.0),
    "RIN, chain": functools.partial(
        RIN, recurrent_initializer=Offset(Chain()), fused=True
    ),
    "SimpleRNN": keras.layers.SimpleRNN,
    "LSTM": functools.partial(keras.layers.LSTM, use_cudnn=False),
    "FastRNN": peers.FastRNN,
    "convolutions": convolutions,
}
CELLS = {  # of `side_by_side`
    "FastGRNN cell": peers.FastGRNNCell,
    "Comfi-FastGRNN cell": peers.ComfiFastGRNNCell,
    "eGRU cell": peers.EGRUCell,
}
UNITS = {  # with about as many weights as `SIZES`
    "RIN": (13, 25, 38),
    "SimpleRNN": (13, 25, 38),
    "GRU": (7, 14, 21),
    "LSTM": (6, 12, 18),
    "FastRNN": (13, 25, 38),
    "FastGRNN": (12, 25, 38),
    "minGRU": (16, 47, 95),
    "convolutions": (5, 9, 14),
}
RATES = dict.fromkeys(LAYERS, (0.003, 0.01, 0.03, 0.1))
RATES |= dict.fromkeys(
    (name for name in LAYERS if name.startswith("RIN")),
    (0.001, 0.003, 0.01, 0.03),
)
RATES["SimpleRNN"] = RATES["RIN"]
HIGHER = {0.03: 0.1, 0.1: 0.3, 0.3: 1.0}
NETWORKS = tuple(itertools.product(LAYERS, SIZES))


def measure(
    networks=NETWORKS, seeds=SEEDS, updates=UPDATES, test=TEST, partial=None
):
    runs = PartialRuns(partial, FIELDS)
    make = functools.partial(run, runs, seeds, updates, test)
    keys = [
        (layer, size, part)
        for layer, size in networks
        for part in ("rates", "test")
    ]
    completed = runs.complete(keys, make)
    return {"runs": [run | {"trained": None} for run in completed]}


def run(runs, seeds, updates, test, layer, size, part):
    if part == "rates":
        return accuracies_by_rate(layer, size, updates, test)
    chosen = runs[layer, size, "rates"]
    return tested(chosen, layer, size, seeds, updates, test)


def build(layer, units, *before):
    """The model of normalized sequences, or with layers before."""
    return model_of(recurrent(layer, units), *before)


def recurrent(layer, units):
    if layer in CELLS:
        return keras.layers.RNN(CELLS[layer](units), return_sequences=True)
    return LAYERS[layer](units, return_sequences=True)


def model_of(layer, *before):
    inputs = keras.Input((None, watch.FEATURES))
    read_out = keras.layers.Dense(watch.CLASSES)
    return keras.Sequential([inputs, *before, layer, read_out])


def accuracies_by_rate(layer, size, updates, test):
    """On people left out of those to train on, for each fold and rate.

    Higher rates are tried as long as the highest is the best of a fold.
    """
    rates = RATES[layer]
    folds = validated(layer, size, rates, updates, test)
    while rates[-1] in best_rates(rates, folds) and rates[-1] in HIGHER:
        folds += validated(layer, size, (HIGHER[rates[-1]],), updates, test)
        rates = *rates, HIGHER[rates[-1]]
    return {"rates": rates, "folds": folds}


def validated(layer, size, rates, updates, test):
    """Accuracies of each rate, by fold."""
    cases = []
    for rate, fold in itertools.product(rates, watch.FOLDS):
        left_out = watch.others(fold)[::FOLDS]
        cases.append((rate, watch.others(fold + left_out), left_out, 0))
    results = train_layer(layer, size, cases, updates, (2, test[1]))
    return np.reshape(results["accuracies"], (len(rates), -1)).tolist()


def best_rates(rates, folds):
    return [rates[best] for best in np.argmax(folds, axis=0)]


def tested(chosen, layer, size, seeds, updates, test):
    """On the people of each fold, with the best rate of each."""
    rates = best_rates(chosen["rates"], chosen["folds"])
    cases = [
        (rate, watch.others(fold), fold, seed)
        for rate, fold in zip(rates, watch.FOLDS, strict=True)
        for seed in range(seeds)
    ]
    return {"rates": rates} | train_layer(layer, size, cases, updates, test)


PUBLISHED = (
    (
        "FastGRNN, compressed",
        "HAR-2",
        "0.956",
        "3 kB; recordings of 128 steps, their last answer",
        "1901.02358, table 3",
    ),
    ("GRU", "HAR-2", "0.936", "71 kB, the same", "1901.02358, table 3"),
    ("FastRNN", "HAR-2", "0.945", "29 kB, the same", "1901.02358, table 3"),
    (
        "FastGRNN, 16 units",
        "HAPT",
        "0.853 ± 0.107 (macro F1)",
        "five seeds; 9.21 ms a step on an Arduino Uno",
        "2606.17249",
    ),
)
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def train_layer(layer, size, cases, updates, test):
    units = UNITS[layer.partition(",")[0]][SIZES.index(size)]
    make = functools.partial(build, layer, units)
    return {"units": units} | train(make, cases, updates, test)


def train(make, cases, updates, test, transform=None, hz=watch.RATE):
    """What is measured of models, each a case of (rate, people, test, seed).

    They read what `transform` makes of x.
    """
    import jax

    many = ManyModels(make(), loss)
    rates, people, left_out, seeds = zip(*cases, strict=True)
    weights = initial_weights({"": make}, [("", seed) for seed in seeds])
    rows, counts = zip(*map(watch.rows_of, people), strict=True)
    scales = {group: watch.scale(group, transform, hz) for group in set(people)}
    mean, deviation = map(np.stack, zip(*map(scales.get, people), strict=True))
    settings = {
        "rate": np.array(rates, "float32"),
        "key": jax.vmap(jax.random.key)(np.array(seeds)),
        "rows": np.stack(rows),
        "count": np.array(counts),
        "mean": mean,
        "deviation": deviation,
    }
    weights, losses = many.train(
        weights,
        settings,
        watch.batches(BATCH, transform, hz),
        updates,
        together=True,
    )
    results = {"weights": many.model.count_params()}
    results["diverged"] = (~np.isfinite(losses).all(axis=1)).tolist()
    answer = jax.jit(
        lambda weights, x: many.outputs(weights, x).argmax(axis=-1)
    )
    scores = []
    for n, of_test in enumerate(left_out):
        x, y = watch.streams(of_test, *test, rate=hz)
        x = x if transform is None else transform(x)
        x = (x - mean[n]) / deviation[n]
        answers = np.asarray(answer([weight[n] for weight in weights], x))
        scores.append(scores_of(answers, y, hz))
    for name in scores[0]:
        results[name] = [rounded(of_case[name]) for of_case in scores]
    results["trained"] = [
        [np.ravel(weight[n]).tolist() for weight in weights]
        for n in range(len(cases))
    ]
    return results


def scores_of(answers, y, hz=watch.RATE):
    """What is measured of answers `(streams, steps)`."""
    right = answers == y
    settle = watch.steps_to_settle(right, y, hz)
    changes = np.diff(answers, axis=1) != 0
    return {
        "accuracies": right.mean(),
        "settle": np.median(settle),
        "never": np.isinf(settle).mean(),
        "changes": 3600 * hz * changes.mean(),  # an hour
        "recalls": [right[y == of_class].mean() for of_class in np.unique(y)],
    }


def rounded(value):
    if isinstance(value, list):
        return [*map(rounded, value)]
    return round(float(value), 5) if np.isfinite(value) else None


def rows_of(results, part):
    rows = [run for run in results["runs"] if run["part"] == part]
    return sorted(rows, key=lambda run: (run["size"], run["layer"].lower()))


def tested_rows(results):
    highest = {
        (run["layer"], run["size"]): run["rates"][-1]
        for run in rows_of(results, "rates")
    }
    return [
        run | {"highest": highest[run["layer"], run["size"]]}
        for run in rows_of(results, "test")
    ]


def finished(run, name):
    """The values of the runs that did not diverge; never is infinite."""
    pairs = zip(run[name], run["diverged"], strict=True)
    return [
        np.inf if value is None else value
        for value, diverged in pairs
        if not diverged
    ]


def mean_accuracy(run):
    return np.mean(finished(run, "accuracies"))


def difference_rows(results):
    networks = groups(rows_of(results, "test"), "layer", "size")
    for size, pair in itertools.product(SIZES, DIFFERENCES):
        if all((layer, size) in networks for layer in pair):
            runs = [networks[layer, size][0] for layer in pair]
            first, second = (
                np.where(run["diverged"], np.nan, run["accuracies"])
                for run in runs
            )
            values = first - second
            values = values[np.isfinite(values)]
            yield [*pair, f"{size:,}", mean_of(values, "+.3f", "+.3f")]


def steps(value):
    return f"{value:.0f}" if np.isfinite(value) else "never"


ACCURACY = {
    "layer": "{layer}",
    "weights": "{weights:,}",
    "units": "{units}",
    "rates": lambda run: ", ".join(f"{rate:g}" for rate in run["rates"]),
    "highest rate tried": "{highest:g}",
    "diverged": lambda run: str(sum(run["diverged"])),
    "accuracy": lambda run: f"{mean_accuracy(run):.3f}",
    "worst run": lambda run: f"{min(finished(run, 'accuracies')):.3f}",
    "steps to settle": lambda run: steps(np.median(finished(run, "settle"))),
    "worst": lambda run: steps(max(finished(run, "settle"))),
    "never": lambda run: f"{np.mean(finished(run, 'never')):.1%}",
}


def tables(results):
    header = ["layer", "minus", "weights, about", "difference"]
    tables = {
        "Streams of people left out: accuracy (mean, worst run), steps to "
        "settle after a change (median of the runs, worst run), share of "
        "changes after which that never came": record.table(
            ACCURACY, tested_rows(results), words=1
        ),
        "Differences in accuracy (paired 95 % t interval over the runs)": (
            record.markdown(header, difference_rows(results), words=2)
        ),
    }
    if len(results["runs"]) < 2 * len(NETWORKS):  # of a variant
        return tables
    header = ["published", "data", "accuracy", "size, conditions", "source"]
    return tables | {
        "Published figures, of other data and training": record.markdown(
            header, PUBLISHED, words=5
        )
    }


def draw(results):
    """Accuracy on streams of people left out, by weights: mean of the runs,
    and a line to the worst one. Dashed: a logistic regression on a window.
    """
    panels = groups(rows_of(results, "test"), "size")
    regression = accuracy_of_regression()
    figure, axes = pictures.subplots(
        5,
        0.6 + 0.28 * sum(map(len, panels.values())),
        len(panels),
        sharex=True,
        squeeze=False,
        height_ratios=[len(rows) for rows in panels.values()],
    )
    for panel, (size, runs) in zip(axes[:, 0], panels.items(), strict=True):
        runs = sorted(
            runs, key=lambda run: np.mean(finished(run, "accuracies"))
        )
        for place, run in enumerate(runs):
            values = finished(run, "accuracies")
            color = pictures.color(run["layer"])
            panel.plot([min(values), np.mean(values)], [place] * 2, color=color)
            panel.plot(np.mean(values), place, "o", color=color)
        panel.set_yticks(range(len(runs)), [run["layer"] for run in runs])
        panel.set_ylim(-0.6, len(runs) - 0.4)  # the frame cuts no dot
        panel.set_title(f"about {size:,} weights", loc="left", fontsize=10)
        panel.grid(axis="x", linewidth=0.3)
        panel.axvline(regression, color="0.5", linestyle="--")
    panel.set_xlabel("accuracy; dashed: logistic regression on a window")
    return figure


def accuracy_of_regression():
    """That of `windows`, which is measured on these streams."""
    results = record.read(record.STUDIES / "devices" / "results_windows.json")
    (accuracies,) = (
        run["accuracies"]
        for run in results["runs"]
        if run["classifier"] == "logistic regression"
    )
    return np.mean(accuracies)


PICTURES = {"streams.svg": draw}
LONGER = {
    "networks": tuple(
        itertools.product(("minGRU, bias -3", "GRU", "RIN"), (350, 2000))
    ),
    "updates": 4 * UPDATES,
}
VARIANTS = {
    "": Variant(backend="jax"),
    "longer": Variant("Four times as many updates", LONGER, "jax"),
}
SMALLEST = {"networks": [("RIN", 350)], "seeds": 1, "updates": 2}
SMALLEST["test"] = 2, 1_000
