"""Which layer has the highest accuracy in as many kB of a microcontroller?

The networks of [endless stream](#endless-stream) in three sizes: with at most
as many weights as a RIN of 16, 32 and 64 units. Each has the training, *pairs,
all steps* or *stateful, all steps*, and the learning rate of the highest
accuracy on the parts left out. Accuracy is the mean over all steps of streams
of 10,000 steps that are never reset, median (lowest to highest) of five seeds.
A run that diverged has the last finite weights. A rate of 0.03 is the highest
of three that were tried, so layers that have it might have a better one beyond.

Flash is what a program for a Cortex-M4F grows by with the network, its code and
what it needs of the C library: weights, `rin_step` and `expf` or `tanhf` of
newlib, compiled by `arm-none-eabi-gcc -Os`. RAM is the hidden state and the
stack of a step (`-fstack-usage`, functions of `math.h` left out). Instructions
of a step, compiled with `-O2`, are counted by QEMU; a Cortex-M4 takes one or
more cycles for each.
"""

import functools
import itertools
import pathlib
import re
import subprocess

import numpy as np
from devices import endless_stream

from engine import exported
from engine import pictures
from engine import record
from engine.measurement import spread

FOLDER = pathlib.Path(__file__).parent
BOARD = record.STUDIES.parent / "tests" / "board"
TRAININGS = ("pairs, all steps", "stateful, all steps")
RATES = (0.003, 0.01, 0.03)
SIZES = (16, 32, 64)
STEPS = 200
GCC = (
    "arm-none-eabi-gcc -std=c99 -mthumb -mcpu=cortex-m4 -mfloat-abi=hard "
    "-mfpu=fpv4-sp-d16 -ffunction-sections -fdata-sections -Wl,--gc-sections "
    "--specs=rdimon.specs"
).split()
QEMU = "qemu-system-arm -M mps2-an386 -nographic -semihosting -icount shift=0"
LIMITS = (0.84, 0.925)  # of accuracy, without runs that diverged


def measure(
    layers=tuple(endless_stream.LAYERS),
    units=SIZES,
    trainings=TRAININGS,
    rates=RATES,
    partial=None,
    **sizes,
):
    results = endless_stream.measure(
        layers, units, trainings, rates, partial=partial, **sizes
    )
    networks = itertools.product(layers, units, endless_stream.WEIGHTS)
    results["bytes"] = [bytes_of(*network) for network in networks]
    return results


def bytes_of(layer, units, weights):
    """Units, flash, RAM and instructions of a network; its weights are new."""
    _, model = endless_stream.models(layer, units, TRAININGS[0], -1)
    options = {"format": "c", "weights": weights}
    with exported.streaming_file(model, "rin.h", **options) as path:
        folder = path.parent
        without, _ = compile_board(folder, "-Os")
        flash, stack = compile_board(folder, "-Os", "-DNETWORK")
        compile_board(folder, "-O2", "-DNETWORK", f"-DSTEPS={STEPS}")
        command = [*QEMU.split(), "-kernel", folder / "board.elf"]
        count = subprocess.check_output(command, timeout=120)
        state = re.search(r"RAM: ([\d,]+)", path.read_text())[1]
    return {
        "layer": layer,
        "units": units,
        "weights": weights,
        "own units": model.layers[1].units,
        "flash": flash - without,
        "RAM": int(state.replace(",", "")) + stack,
        "instructions": 40 * int(count) / STEPS,
    }


def compile_board(folder, *options):
    """Bytes of flash of a program, and of the stack of its functions."""
    program = folder / "board.elf"
    objects = []
    for source in (FOLDER / "board.c", BOARD / "boot.c"):
        objects.append(folder / f"{source.stem}.o")
        command = [*GCC, *options, "-fstack-usage", "-I", folder, "-c", source]
        subprocess.run([*command, "-o", objects[-1]], check=True)
    link = ["-T", BOARD / "cortex_m.ld", "-lm", "-o", program]
    subprocess.run([*GCC, *objects, *link], check=True)
    size = subprocess.check_output(["arm-none-eabi-size", program])
    text, data = map(int, size.splitlines()[1].split()[:2])
    usage = (folder / "board.su").read_text()
    stack = sum(map(int, re.findall(r"\t(\d+)\t", usage)))
    return text + data, stack


def best_training(results, layer, units):
    """That of the highest accuracy on the parts left out, at its own rate."""
    chosen = endless_stream.select(results["chosen"], layer=layer, units=units)
    accuracy = functools.partial(endless_stream.left_out_accuracy, results)
    return max(chosen, key=accuracy)["training"]


def points(results, layer, weights):
    """Bytes of each size of a layer, with the runs and accuracies of seeds."""
    rows, wanted = [], {"layer": layer, "weights": weights}
    for size in endless_stream.select(results["bytes"], **wanted):
        training = best_training(results, layer, size["units"])
        chosen = {"layer": layer, "training": training, "units": size["units"]}
        runs = endless_stream.runs_of(results, "never", **chosen)
        accuracies = [run[weights]["never"]["mean"] for run in runs]
        diverged = sum(run["diverged"] for run in runs)
        row = runs[0] | {"accuracies": accuracies, "diverged": diverged}
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
    for axes, (kind, weights, title) in zip(rows, panels, strict=True):
        for layer in layers:
            plot_sizes(axes, points(results, layer, weights), kind, layer)
        axes.set_title(title, loc="left", fontsize=10)
        axes.set(xscale="log", xlabel="bytes" if kind == "RAM" else "kB")
        ticks = (200, 400, 800) if kind == "RAM" else (1, 2, 5, 10, 20)
        axes.set_xticks(ticks, map(str, ticks))
        axes.minorticks_off()
        axes.grid(linewidth=0.3)
    rows[0].set_ylim(LIMITS)
    figure.supylabel("accuracy on an endless stream, test data", fontsize=10)
    pictures.shared_legend(figure, rows[0])
    return figure


def plot_sizes(axes, rows, kind, layer):
    """Median and range of the seeds."""
    unit = 1 if kind == "RAM" else 1000
    accuracies = np.array([row["accuracies"] for row in rows])
    x = [row[kind] / unit for row in rows]
    middle = np.median(accuracies, axis=1)
    axes.plot(x, middle, marker="o", label=layer, **pictures.STYLES[layer])
    low, high = accuracies.min(axis=1), accuracies.max(axis=1)
    axes.vlines(x, low, high, color=pictures.STYLES[layer]["color"])


def tables(results):
    columns = {
        "layer": "{layer}",
        "weights": "{weights}",
        "units": "{own units}",
        "parameters": "{parameters:,}",
        "training": lambda row: row["training"].removesuffix(", all steps"),
        "rate": "{rate:g}",
        "accuracy": lambda row: spread(row["accuracies"]),
        "diverged": "{diverged}",
        "flash, kB": lambda row: f"{row['flash'] / 1000:.1f}",
        "RAM, bytes": "{RAM:,}",
        "instructions a step": "{instructions:,.0f}",
    }
    layers = dict.fromkeys(size["layer"] for size in results["bytes"])
    cases = itertools.product(layers, endless_stream.WEIGHTS)
    rows = itertools.chain(*(points(results, *case) for case in cases))
    caption = "Accuracy, and what a program for a Cortex-M4F grows by"
    return {caption: record.table(columns, rows, words=2)}


PICTURES = {"kilobytes.svg": draw}
SMALLEST = endless_stream.SMALLEST | {"trainings": TRAININGS[:1]}
