"""What does `tflite-micro` take of a microcontroller, beside a header?

A RIN of 13 units with `Normalization` and a dense layer of 7 outputs reads 6
channels, as in [streams](#streams); the weights are drawn, not trained. Both
have int8 weights and int16 states. The arena is the smallest, in steps of 64
bytes, in which `tflite-micro` runs the file on this computer, whose pointers
have 8 bytes and not 4. To the file come the interpreter and its operations,
which were not compiled for a microcontroller here: its core takes 16 kB on a
Cortex-M3, as TensorFlow's page on it says. A header's flash is whole.
Instructions are those of a step on this computer, counted by `valgrind
--tool=callgrind`: of `Invoke` in the wheel as it is published, and of
`rin_step` as compiled by `gcc -Os`.
"""

import pathlib
import re
import subprocess
import sys
import tempfile

import keras
import numpy as np

from engine import record
from keras_rin.export import export_c
from keras_rin.export import export_litert
from keras_rin.layers import RIN

UNITS, FEATURES, CLASSES, SMALLEST_STEP = 13, 6, 7, 64
COLUMNS = {
    "file": "bytes of flash",
    "ram": "bytes of RAM",
    "instructions": "instructions on x86-64",
}
RUN = """
import sys
from tflite_micro.python.tflite_micro import runtime
size, steps = map(int, sys.argv[2:])
interpreter = runtime.Interpreter.from_file(sys.argv[1], arena_size=size)
for _ in range(steps):
    interpreter.invoke()
"""
STEPS = """
#include <stdlib.h>
#include "rin.h"
static rin_state state;
static int16_t x[rin_inputs];
static int32_t y[rin_outputs];
__attribute__((noinline)) static void step(void) { rin_step(&state, x, y); }
int main(int count, char **arguments)
{
    rin_reset(&state);
    for (int n = atoi(arguments[1]); n > 0; n--)
        step();
    return count != 2;
}
"""


def measure(largest=2**16):
    rng = np.random.default_rng(0)
    counts = rng.integers(-1_000, 1_000, (4, 200, FEATURES))
    normalization = keras.layers.Normalization()
    normalization.adapt(counts)
    initializer = keras.initializers.Identity(-0.1)  # V = 0.9 I
    layer = RIN(UNITS, recurrent_initializer=initializer, return_sequences=True)
    model = keras.Sequential(
        [
            keras.Input((None, FEATURES)),
            normalization,
            layer,
            keras.layers.Dense(CLASSES),
        ]
    )
    with tempfile.TemporaryDirectory() as folder:
        header, file = (
            pathlib.Path(folder, name) for name in ("rin.h", "step.tflite")
        )
        written = export_c(model, header, "integer", counts)
        m0 = written.cost("Cortex-M0+")
        calibration = counts.astype("float32")
        options = {"arithmetic": "integer16", "calibration": calibration}
        export_litert(model, file, **options)
        arena = smallest_arena(file, largest)
        size = file.stat().st_size
        run = sys.executable, "-c", RUN, file, f"{largest}"
        invoke = instructions(run, "tflite::micro::MicroInterpreter::Invoke()")
        step = instructions([compiled(header)], "step")
    return {
        "tflite-micro": {"file": size, "ram": arena, "instructions": invoke},
        "header": {"file": m0.flash, "ram": m0.ram, "instructions": step},
    }


def smallest_arena(file, largest):
    """By bisection, each size in a process that an error may end."""
    low, high = 0, largest // SMALLEST_STEP
    while high - low > 1:
        middle = (low + high) // 2
        size = f"{middle * SMALLEST_STEP}"
        command = [sys.executable, "-c", RUN, file, size, "1"]
        runs = subprocess.run(command, capture_output=True).returncode == 0
        low, high = (low, middle) if runs else (middle, high)
    return high * SMALLEST_STEP


def compiled(header):
    source, program = header.with_name("main.c"), header.with_name("program")
    source.write_text(STEPS)
    command = ["gcc", "-Os", "-g", "-o", program, source, "-lm"]
    subprocess.run(command, check=True)
    return program


def instructions(command, function):
    """Those of a later call of a function, by `valgrind`."""
    totals = []
    for steps in (1, 101):
        collect = ["--tool=callgrind", "--callgrind-out-file=/dev/null"]
        collect.append(f"--toggle-collect={function}")
        whole = ["valgrind", *collect, *command, f"{steps}"]
        result = subprocess.run(whole, capture_output=True, check=True)
        totals.append(int(re.search(rb"Collected : (\d+)", result.stderr)[1]))
    return round((totals[1] - totals[0]) / 100)


def tables(results):
    names = {
        "tflite-micro": "tflite-micro without its code",
        "header": "header in integers, on a Cortex-M0+",
    }
    rows = [
        [text, *(f"{results[name][of]:,}" for of in COLUMNS)]
        for name, text in names.items()
    ]
    header = ["", *COLUMNS.values()]
    return {"A RIN of 13 units": record.markdown(header, rows)}


SMALLEST = {"largest": 2**14}
