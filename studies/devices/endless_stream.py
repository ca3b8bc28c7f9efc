"""How must a network be trained for a stream that has no beginning?

A watch streams for days, and nobody tells it when an activity ends. Recordings
of BasicMotions ([activity](../activity/README.md)) are joined into streams
of 100 recordings, 10,000 steps, of which neighbors differ in class. Accuracy is
the share of steps whose output names the activity of that step, over eight
streams of the 40 test recordings, from the second recording on. Each network is
exported as a C header, with float32 or int8 weights, and runs there.

All trainings see 16 recordings an update, for 200 updates. The output is
trained at the last step of each recording or, where the name says so, at all
steps:

- *zero states*: each recording begins with a state of zeros;
- *pairs*: two recordings are joined to 200 steps, so that the second one begins
  with the state that the first one left;
- *stateful*: each of 16 rows is an endless series of recordings, whose state
  `stateful=True` carries from update to update, without a gradient.

A network that was trained from zero states also runs with resets: *at each
change*, which an application rarely knows, and *every 100 steps*, at any phase
of the activities. Two states that are reset in turn are no better.

The layers have about as many weights as a RIN of 64 units. Adam has
`beta_2=0.99, global_clipnorm=1.0` and cosine decay. The learning rate, of four,
is that of the highest accuracy on streams of training recordings, of which four
parts are left out in turn, and the smaller one in a tie: for each layer and
training, and for networks with resets, which then are reset every 100 steps. A
rate at which a run diverged is taken only if there is no other. The program
needs `gcc`.
"""

import functools
import itertools

import numpy as np
import tensorflow as tf

from engine import exported
from engine import pictures
from engine import record
from engine import recordings
from engine.measurement import first
from engine.measurement import groups
from engine.measurement import spread_of
from engine.models import LAYERS
from engine.models import normalized
from engine.partial_runs import PartialRuns
from engine.recordings import parts

TRAININGS = tuple(
    f"{name}{trained}"
    for name in ("zero states", "pairs", "stateful")
    for trained in ("", ", all steps")
)
RATES = (0.001, 0.003, 0.01, 0.03)
RESETS = ("never", "at each change", "every 100 steps")
WEIGHTS = ("float32", "int8")
STEPS, BATCH, EPOCHS, UPDATES = 100, 16, 8, 25
FOLDS = 4
UNITS = 64
TESTS = (8, 100)  # streams, and recordings of each
AFTER = (10, 25, 50, 100)  # steps of an activity
FIELDS = ("layer", "units", "training", "rate", "fold", "seed")


@functools.cache
def splits():
    """x of shape (recordings, steps, features) and labels, of both splits."""
    parts = recordings.read("BasicMotions")
    return tuple((x, y) for x, _, y in parts)


def streams_of(x, y, count, length, rng):
    """Joined recordings, of which no two neighbours have the same class."""
    rows = np.empty((count, length), int)
    for stream in rows:
        stream[0] = rng.integers(len(y))
        for at in range(1, length):
            stream[at] = rng.choice(np.flatnonzero(y != y[stream[at - 1]]))
    return x[rows].reshape(count, length * STEPS, -1), y[rows]


@functools.lru_cache(1)
def models(layer, units, training, fold):
    """A model to train, and the one to stream, whose states are arguments.

    Compiled, and with about as many weights as a RIN of `units`.
    """
    (x, y), _ = splits()
    x = x[parts(y, FOLDS) != fold]
    part = recordings.Recordings(x, None, y)
    streamed = recordings.build(LAYERS[layer], part, units)
    if not training.startswith("stateful"):
        return streamed, streamed
    units = streamed.layers[1].units
    stateful = LAYERS[layer](units, return_sequences=True, stateful=True)
    trained = normalized(stateful, x, 4, BATCH)
    trained.compile_from_config(streamed.get_compile_config())
    return trained, streamed


def train(layer, units, training, rate, fold, seed, epochs=EPOCHS):
    """The model to stream, and whether its training diverged."""
    (x, y), _ = splits()
    rows = parts(y, FOLDS) != fold
    model, streamed = models(layer, units, training, fold)
    recordings.restart(model, seed)
    if training.startswith("stateful"):
        model.layers[1].reset_states()
    batches = batches_of(x[rows], y[rows], training, seed, epochs)
    loss = recordings.fit(model, batches, rate, epochs)
    streamed.set_weights(model.get_weights())
    return streamed, loss == np.inf


def batches_of(x, y, training, seed, epochs):
    """Batches of 16 recordings, with a weight for each step."""
    rng = np.random.default_rng(seed)
    joined = 2 if training.startswith("pairs") else 1
    # Each row of a batch goes on in the same row of the next.
    rows = rng.integers(
        len(y), size=(epochs * UPDATES * BATCH // joined, joined)
    )
    labels = np.repeat(y[rows], STEPS, axis=1)
    is_trained = np.arange(labels.shape[1]) % STEPS == STEPS - 1
    is_trained |= training.endswith("all steps")
    weights = np.broadcast_to(is_trained.astype("float32"), labels.shape)
    inputs = x[rows].reshape(len(rows), joined * STEPS, -1)
    data = tf.data.Dataset.from_tensor_slices((inputs, labels, weights))
    return data.batch(BATCH // joined)


def accuracies(stream, x, labels, reset):
    """Mean accuracy of a C program, and that of each step after a change."""
    steps = np.arange(x.shape[1])
    # A phase of its own for each stream, none of them that of the activities.
    phases = np.linspace(0, STEPS, len(x), endpoint=False, dtype=int)[:, None]
    ages = (steps + phases + STEPS // (2 * len(x))) % STEPS
    resets = {
        "never": False,
        "at each change": steps[None] % STEPS == 0,
        "every 100 steps": ages == 0,
    }
    y = stream(x, resets[reset])
    # An output that is not finite is wrong.
    named = np.where(np.isfinite(y).all(-1), y.argmax(-1), -1)
    right = named == np.repeat(labels, STEPS, axis=1)
    right = right.reshape(*labels.shape, STEPS)[:, 1:]
    steps = np.round(right.mean((0, 1)), 3).tolist()
    return {"mean": float(right.mean()), "steps": steps}


def measure(
    layers=tuple(LAYERS),
    units=(UNITS,),
    trainings=TRAININGS,
    rates=RATES,
    seeds=range(5),
    epochs=EPOCHS,
    test=TESTS,
    folds=FOLDS,
    partial=None,
):
    """Runs on parts left out, the rates chosen, and runs on the test set."""
    runs = PartialRuns(partial, FIELDS)
    make = functools.partial(run, epochs, test)
    variants = list(itertools.product(layers, units, trainings))
    cases = itertools.product(variants, range(folds), rates)
    cases = ((*variant, rate, fold, 0) for variant, fold, rate in cases)
    left_out = runs.complete(cases, make)
    chosen = [
        dict(zip(FIELDS, variant, strict=False))
        | {"reset": reset, "rate": best_rate(left_out, variant, reset)}
        for variant in variants
        for reset in resets_of(variant[-1], 0)
    ]
    cases = itertools.product(chosen, seeds)
    cases = ((*map(best.get, FIELDS[:4]), -1, seed) for best, seed in cases)
    test_runs = runs.complete(dict.fromkeys(cases), make)
    return {"left out": left_out, "chosen": chosen, "runs": test_runs}


def best_rate(runs, variant, reset):
    """The rate of the highest mean accuracy, the smaller one in a tie.

    One at which a run diverged is taken only if there is no other.
    """
    variant = dict(zip(FIELDS, variant, strict=False))
    by_rate = groups(select(runs, **variant), "rate")

    def score(rate):
        accuracies = [run["float32"][reset]["mean"] for run in by_rate[rate]]
        diverged = any(run["diverged"] for run in by_rate[rate])
        return not diverged, np.mean(accuracies)

    return max(sorted(by_rate), key=score)


def resets_of(training, fold):
    """The kinds of reset with which a training is measured."""
    if not training.startswith("zero states"):
        return RESETS[:1]
    return RESETS if fold < 0 else (RESETS[0], RESETS[2])


def run(epochs, test, layer, units, training, rate, fold, seed):
    """What is measured of a training; fold -1 is on the test recordings."""
    model, diverged = train(layer, units, training, rate, fold, seed, epochs)
    (x, y), (x_test, y_test) = splits()
    if fold >= 0:
        rows = parts(y, FOLDS) == fold
        x_test, y_test, test = x[rows], y[rows], (4, min(25, test[1]))
    count, length = test
    rng = np.random.default_rng(0)
    x, labels = streams_of(x_test, y_test, count, length, rng)
    results = {"parameters": model.count_params(), "diverged": diverged}
    for weights in WEIGHTS if fold < 0 else WEIGHTS[:1]:
        options = {"format": "c", "weights": weights}
        with exported.streaming_file(model, "rin.h", **options) as path:
            stream = exported.c_program(path, count)
            results[weights] = {
                reset: accuracies(stream, x, labels, reset)
                for reset in resets_of(training, fold)
            }
    return results


def select(runs, **values):
    return [run for run in runs if {**run, **values} == run]


def runs_of(results, reset, **values):
    """The runs at the rate that was chosen for a kind of reset."""
    chosen_for = reset if reset == RESETS[0] else RESETS[2]
    values = {"units": results["runs"][0]["units"]} | values
    (best,) = select(results["chosen"], **values, reset=chosen_for)
    return select(results["runs"], **values, rate=best["rate"])


PANELS = {
    "Zero states, never reset": ("zero states", "never"),
    "Zero states, reset every 100 steps": ("zero states", "every 100 steps"),
    "Zero states, all steps": ("zero states, all steps", "never"),
    "Pairs, all steps": ("pairs, all steps", "never"),
}


def draw(results):
    """Accuracy at each step after a change of activity (median and range of the
    seeds); the grey line is the accuracy of chance.
    """
    figure, rows = pictures.subplots(6.5, 5.2, 2, 2, sharex=True, sharey=True)
    # Fewer steps where the accuracy changes slowly, for a small file.
    drawn = np.r_[1:20:2, 20 : STEPS + 1 : 4]
    layers = dict.fromkeys(run["layer"] for run in results["runs"])
    trainings = {run["training"] for run in results["runs"]}
    for axes, title in zip(rows.flat, PANELS, strict=True):
        training, reset = PANELS[title]
        axes.axhline(0.25, color="grey", linewidth=1)
        axes.set_title(title, loc="left", fontsize=10)
        for layer in layers if training in trainings else ():
            runs = runs_of(results, reset, layer=layer, training=training)
            steps = [run["float32"][reset]["steps"] for run in runs]
            steps = np.array(steps)[:, drawn - 1]
            style = pictures.STYLES[layer]
            pictures.plot_range(axes, drawn, steps, layer, **style)
    rows[0, 0].set(ylim=(0, 1.02), xlim=(0, STEPS))
    for axes in rows[:, 0]:
        axes.set_ylabel("accuracy, test data")
    for axes in rows[-1]:
        axes.set_xlabel("steps after the change")
    pictures.shared_legend(figure, axes)
    return figure


def tables(results):
    trainings = dict.fromkeys(run["training"] for run in results["runs"])
    variants = [
        (training, reset)
        for training in trainings
        for reset in resets_of(training, -1)
    ]
    caption = "Accuracy: median (lowest to highest) of the seeds, and medians "
    caption += "at steps after a change"
    return {caption: accuracy_table(results, variants)}


def accuracy_table(results, variants):
    columns = {name: first(name) for name in ("layer", "training", "reset")}
    columns |= {"rate": first("rate", "g"), "all steps": spread_of("mean")}
    columns["int8"] = spread_of("int8 mean")
    for step in AFTER:
        columns[f"after {step}"] = lambda runs, place=step - 1: (
            f"{np.median([run['steps'][place] for run in runs]):.3f}"
        )
    layers = dict.fromkeys(run["layer"] for run in results["runs"])
    rows = []
    for layer, (training, reset) in itertools.product(layers, variants):
        runs = runs_of(results, reset, layer=layer, training=training)
        rows.append([scores(run, reset) for run in runs])
    return record.table(columns, rows, words=3)


def scores(run, reset):
    """A run with its accuracies for a kind of reset."""
    int8 = run["int8"][reset]["mean"]
    return run | run["float32"][reset] | {"reset": reset, "int8 mean": int8}


def left_out_accuracy(results, best):
    """The mean accuracy on the parts left out, of what was chosen."""
    values = {name: best[name] for name in FIELDS[:4]}
    runs = select(results["left out"], **values)
    return np.mean([run["float32"][best["reset"]]["mean"] for run in runs])


PICTURES = {"trainings.svg": draw}
SMALLEST = {"layers": ("RIN",), "units": (2,), "trainings": ("zero states",)}
SMALLEST |= {"rates": (0.001,), "seeds": (0,), "epochs": 1, "folds": 1}
SMALLEST["test"] = (2, 3)
