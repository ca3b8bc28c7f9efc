"""Which layer has the highest accuracy in as many kB of a microcontroller?

Networks with at most as many weights as a RIN of 16, 32 and 64 units, and RINs
of 8 and 12, are trained as in [endless stream](#endless-stream) and exported as
a C header. Each has the training, *pairs, all steps* or *stateful, all steps*,
and the learning rate of the highest accuracy on streams of the parts left out.
A rate at which a run diverged is taken only if there is no other. Accuracy is
the mean over all steps of streams of 10,000 steps that are never reset, median
(lowest to highest) of five seeds. A run that diverged has the last finite
weights. A rate of 0.03 is the highest of three that were tried, so layers that
have it might have a better one beyond.

Flash is what a program for a Cortex-M4F grows by with the network, weights and
code, compiled by `arm-none-eabi-gcc -Os`. RAM is the hidden state and the stack
of a step (`-fstack-usage`). Instructions of a step, compiled with `-O2`, are
counted by QEMU; a step takes at least the time of one cycle each. A Cortex-M3
or M0+ has no floating-point unit. *chain*: V begins as a chain; *diagonal*: of
U the diagonal alone is trained, and a header holds its zeros as well.
"""

import functools
import itertools
import pathlib
import re
import subprocess

import keras
import numpy as np
import tensorflow as tf

from engine import exported
from engine import pictures
from engine import record
from engine import recordings
from engine.measurement import groups
from engine.measurement import spread
from engine.models import LAYERS as KERAS_LAYERS
from engine.models import normalized
from engine.partial_runs import PartialRuns
from engine.recordings import parts
from keras_rin.initializers import Chain
from keras_rin.initializers import Offset
from keras_rin.layers import RIN


@keras.saving.register_keras_serializable("studies")
class Diagonal(keras.constraints.Constraint):
    """Each unit of a RIN keeps its own state, and reads no other."""

    def __call__(self, w):
        return w * keras.ops.eye(w.shape[0], dtype=w.dtype)


FOLDER = pathlib.Path(__file__).parent
BOARD = record.STUDIES.parent / "tests" / "board"
TRAININGS = ("pairs, all steps", "stateful, all steps")
RATES = (0.003, 0.01, 0.03)
WEIGHTS = ("float32", "int8")
LAYERS = KERAS_LAYERS | {
    "RIN, chain": functools.partial(RIN, recurrent_initializer=Offset(Chain())),
    "RIN, diagonal": functools.partial(
        RIN, recurrent_initializer="zeros", recurrent_constraint=Diagonal()
    ),
}
NETWORKS = (  # layers, of as many weights as a RIN of these units
    ("RIN", 8),
    ("RIN", 12),
    *itertools.product(KERAS_LAYERS, (16, 32, 64)),
    *itertools.product(("RIN, chain", "RIN, diagonal"), (8, 12, 16)),
)
LENGTH, BATCH, EPOCHS, UPDATES = 100, 16, 8, 25  # steps of a recording
FOLDS = 4
TESTS = (8, 100)  # streams, and recordings of each
STEPS = 200  # counted on the board
FIELDS = ("layer", "units", "training", "rate", "fold", "seed")
GCC = (
    "arm-none-eabi-gcc -std=c99 -mthumb -ffunction-sections -fdata-sections "
    "-Wl,--gc-sections --specs=rdimon.specs -mcpu=cortex-"
)
CPUS = {
    "M4F": "m4 -mfloat-abi=hard -mfpu=fpv4-sp-d16",
    "M3": "m3",
    "M0+": "m0plus",
}
QEMU = "qemu-system-arm -M mps2-an386 -nographic -semihosting -icount shift=0"
CLOCKS = (64, 168)  # MHz
LIMITS = (0.79, 0.925)  # of accuracy, without runs that diverged


def measure(
    networks=NETWORKS,
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
    cases = itertools.product(networks, trainings, rates, range(folds))
    left_out = runs.complete(((*n, t, r, f, 0) for n, t, r, f in cases), make)
    cases = (
        (*network, *best_training(left_out, *network), -1, seed)
        for network, seed in itertools.product(networks, seeds)
    )
    boards = itertools.product(networks, WEIGHTS)
    return {
        "left out": left_out,
        "runs": runs.complete(cases, make),
        "bytes": [bytes_of(*network, weights) for network, weights in boards],
    }


def best_training(runs, layer, units):
    """Training and rate of the highest accuracy; the smaller rate in a tie.

    One at which a run diverged is taken only if there is no other.
    """
    choices = groups(select(runs, layer=layer, units=units), "training", "rate")

    def score(choice):
        diverged = any(run["diverged"] for run in choices[choice])
        return not diverged, np.mean(accuracies(choices[choice], "float32"))

    return max(sorted(choices), key=score)


def run(epochs, test, layer, units, training, rate, fold, seed):
    """What is measured of a training; fold -1 is on the test recordings."""
    model, diverged = train(layer, units, training, rate, fold, seed, epochs)
    (x, y), (x_test, y_test) = splits()
    if fold >= 0:
        rows = parts(y, FOLDS) == fold
        x_test, y_test, test = x[rows], y[rows], (4, min(25, test[1]))
    count, length = test
    x, labels = streams_of(x_test, y_test, count, length)
    results = {"parameters": model.count_params(), "diverged": diverged}
    for weights in WEIGHTS if fold < 0 else WEIGHTS[:1]:
        options = {"format": "c", "weights": weights}
        with exported.streaming_file(model, "rin.h", **options) as path:
            y = exported.c_program(path, count)(x)
        # An output that is not finite is wrong.
        named = np.where(np.isfinite(y).all(-1), y.argmax(-1), -1)
        right = named == np.repeat(labels, LENGTH, axis=1)
        mean = float(right[:, LENGTH:].mean())  # from the second recording on
        results[weights] = {"never": {"mean": mean}}  # reset
    return results


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


@functools.cache
def splits():
    """x of shape (recordings, steps, features) and labels, of both splits."""
    return tuple((x, y) for x, _, y in recordings.read("BasicMotions"))


def streams_of(x, y, count, length):
    """Joined recordings, of which no two neighbours have the same class."""
    rng = np.random.default_rng(0)
    rows = np.empty((count, length), int)
    for stream in rows:
        stream[0] = rng.integers(len(y))
        for at in range(1, length):
            stream[at] = rng.choice(np.flatnonzero(y != y[stream[at - 1]]))
    return x[rows].reshape(count, length * LENGTH, -1), y[rows]


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


def batches_of(x, y, training, seed, epochs):
    """Batches of 16 recordings; pairs are joined, or rows go on in the next."""
    rng = np.random.default_rng(seed)
    joined = 2 if training.startswith("pairs") else 1
    rows = rng.integers(
        len(y), size=(epochs * UPDATES * BATCH // joined, joined)
    )
    labels = np.repeat(y[rows], LENGTH, axis=1)
    inputs = x[rows].reshape(len(rows), joined * LENGTH, -1)
    data = tf.data.Dataset.from_tensor_slices((inputs, labels))
    return data.batch(BATCH // joined)


def select(runs, **values):
    return [run for run in runs if {**run, **values} == run]


def accuracies(runs, weights):
    """Accuracies on streams that are never reset, one a run."""
    return [run[weights]["never"]["mean"] for run in runs]


def bytes_of(layer, units, weights):
    """Units, flash, RAM and instructions of a network; its weights are new."""
    _, model = models(layer, units, TRAININGS[0], -1)
    options = {"format": "c", "weights": weights}
    with exported.streaming_file(model, "rin.h", **options) as path:
        folder = path.parent
        without, _ = compile_board(folder, "-Os")
        flash, stack = compile_board(folder, "-Os", "-DNETWORK")
        instructions = {cpu: count_instructions(folder, cpu) for cpu in CPUS}
        state = re.search(r"RAM: ([\d,]+)", path.read_text())[1]
    return {
        "layer": layer,
        "units": units,
        "weights": weights,
        "own units": model.layers[1].units,
        "flash": flash - without,
        "RAM": int(state.replace(",", "")) + stack,
        "instructions": instructions,
    }


def count_instructions(folder, cpu):
    """Those of a step, on a board that runs the code of each processor."""
    compile_board(folder, "-O2", "-DNETWORK", f"-DSTEPS={STEPS}", cpu=cpu)
    command = [*QEMU.split(), "-kernel", folder / "board.elf"]
    return 40 * int(subprocess.check_output(command, timeout=120)) / STEPS


def compile_board(folder, *options, cpu="M4F"):
    """Bytes of flash of a program, and of the stack of its functions."""
    program, gcc = folder / "board.elf", f"{GCC}{CPUS[cpu]}".split()
    objects = []
    for source in (FOLDER / "board.c", BOARD / "boot.c"):
        objects.append(folder / f"{source.stem}.o")
        command = [*gcc, *options, "-fstack-usage", "-I", folder, "-c", source]
        subprocess.run([*command, "-o", objects[-1]], check=True)
    link = ["-T", BOARD / "cortex_m.ld", "-lm", "-o", program]
    subprocess.run([*gcc, *objects, *link], check=True)
    size = subprocess.check_output(["arm-none-eabi-size", program])
    text, data = map(int, size.splitlines()[1].split()[:2])
    usage = (folder / "board.su").read_text()
    stack = sum(map(int, re.findall(r"\t(\d+)\t", usage)))
    return text + data, stack


def points(results, layer, weights):
    """Bytes of each size of a layer, with the runs and accuracies of seeds."""
    rows = []
    for size in select(results["bytes"], layer=layer, weights=weights):
        runs = select(results["runs"], layer=layer, units=size["units"])
        row = runs[0] | {"accuracies": accuracies(runs, weights)}
        row["diverged"] = sum(run["diverged"] for run in runs)
        rows.append(row | size)
    return rows


def draw(results):
    """Accuracy over flash and RAM (median and range of the seeds, of which a
    range that ends below the axis has runs that diverged).
    """
    panels = (
        ("flash", "float32", "Flash, float32 weights"),
        ("flash", "int8", "Flash, int8 weights"),
        ("RAM", "int8", "RAM, int8 weights"),
    )
    figure, rows = pictures.subplots(6, 8, len(panels), sharey=True)
    layers = dict.fromkeys(size["layer"] for size in results["bytes"])
    layers.pop("RIN, diagonal", None)  # its headers hold the zeros as well
    for axes, (kind, weights, title) in zip(rows, panels, strict=True):
        for layer in layers:
            plot_sizes(axes, points(results, layer, weights), kind, layer)
        axes.set_title(title, loc="left", fontsize=10)
        axes.set(xscale="log", xlabel="bytes" if kind == "RAM" else "kB")
        ticks = (200, 400, 800) if kind == "RAM" else (1, 2, 5, 10, 20)
        axes.set_xticks(ticks, map(str, ticks))
        axes.minorticks_off()
        axes.grid(linewidth=0.3)
    rows[0].set(ylim=LIMITS, yticks=(0.8, 0.84, 0.88, 0.92))
    figure.supylabel("accuracy on an endless stream, test data", fontsize=10)
    pictures.shared_legend(figure, rows[0])
    return figure


def plot_sizes(axes, rows, kind, layer):
    """Median and range of the seeds."""
    unit = 1 if kind == "RAM" else 1000
    accuracies = np.array([row["accuracies"] for row in rows])
    x = [row[kind] / unit for row in rows]
    middle = np.median(accuracies, axis=1)
    style = pictures.STYLES[layer.removeprefix("RIN, ")]
    axes.plot(x, middle, marker="o", label=layer, **style)
    low, high = accuracies.min(axis=1), accuracies.max(axis=1)
    axes.vlines(x, low, high, color=style["color"])


def tables(results):
    network = {
        "layer": "{layer}",
        "weights": "{weights}",
        "units": "{own units}",
    }
    columns = network | {
        "parameters": "{parameters:,}",
        "training": lambda row: row["training"].removesuffix(", all steps"),
        "rate": "{rate:g}",
        "accuracy": lambda row: spread(row["accuracies"]),
        "diverged": "{diverged}",
        "flash, kB": lambda row: f"{row['flash'] / 1000:.1f}",
        "RAM, bytes": "{RAM:,}",
    }
    steps = network | {c: f"{{instructions[{c}]:,.0f}}" for c in CPUS}
    for clock in CLOCKS:
        steps[f"M4F at {clock} MHz, µs"] = lambda row, clock=clock: (
            f"{row['instructions']['M4F'] / clock:,.0f}"
        )
    captions = {
        "Accuracy, and what a program for a Cortex-M4F grows by": columns,
        "Instructions of a step, and the least time of one": steps,
    }
    layers = dict.fromkeys(size["layer"] for size in results["bytes"])
    cases = itertools.product(layers, WEIGHTS)
    rows = [row for case in cases for row in points(results, *case)]
    return {
        caption: record.table(columns, rows, words=2)
        for caption, columns in captions.items()
    }


PICTURES = {"kilobytes.svg": draw}
SMALLEST = {"networks": [("RIN", 2)], "trainings": TRAININGS[:1]}
SMALLEST |= {"rates": (0.001,), "seeds": (0,), "epochs": 1, "folds": 1}
SMALLEST["test"] = (2, 3)
