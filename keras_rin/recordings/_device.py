"""The C files of a network that follows a stream, and what they answer."""

import json
import shutil
import subprocess
import tempfile
from pathlib import Path

import keras
import numpy as np

from keras_rin import export

COMPILERS = "cc", "gcc", "clang"
FORMS = {
    "float32": "float32",
    "int8 weights": "int8",
    "integers": "integer",
}
SEQUENCE = 4_000  # steps of calibration, of sequences side by side
MAIN = """\
/* Reads rows of numbers, in the units of the log, and prints the class of each.
On a device, x comes from the sensor. */
#include <stdio.h>
#include "rin.h"

static const char *const classes[] = {CLASSES};
UNITSstatic rin_state state;
static KIND x[rin_inputs];
static OUTPUT y[rin_outputs];

int main(void)
{
    rin_reset(&state);
    for (;;) {
        for (int i = 0; i < rin_inputs; i++) {
            float value;
            if (scanf("%f", &value) != 1)
                return 0;
            x[i] = VALUE;
        }
        rin_step(&state, x, y);
        int largest = 0;
        for (int i = 1; i < rin_outputs; i++)
            if (y[i] > y[largest])
                largest = i;
        puts(classes[largest]);
    }
}
"""
COUNTS = """\
/* What a count of each channel is, in the units of the log. */
static const float unit[] = {UNITS};

static int16_t count(float value, float unit)
{
    value = value / unit + (value < 0 ? -0.5f : 0.5f);
    return value > 32767 ? 32767 : value < -32768 ? -32768 : (int16_t)value;
}

"""


def write(model, log, form, folder, steps=None):
    """Writes `rin.h` and `main.c` into a folder; returns the header.

    Integers are calibrated with the first steps to train on, or all.
    """
    text = MAIN.replace("KIND", "float").replace("OUTPUT", "float")
    value, units = "value", ""
    calibration = None
    if form == "integers":
        rows, _ = log.rows("train", "validate")
        unit = units_of(rows)
        model = _reading_counts(model, unit)
        counts = np.round(rows[:steps] / unit)
        length = min(len(counts), SEQUENCE)
        counts = counts[: len(counts) // length * length]
        calibration = counts.reshape(-1, length, len(unit))
        text = MAIN.replace("KIND", "int16_t").replace("OUTPUT", "int32_t")
        value = "count(value, unit[i])"
        numbers = ", ".join(f"{of!r}f" for of in unit.tolist())
        units = COUNTS.replace("UNITS", numbers)
    names = ", ".join(json.dumps(of, ensure_ascii=False) for of in log.classes)
    text = text.replace("CLASSES", names).replace("VALUE", value)
    path = Path(folder, "rin.h")
    header = export.export_c(model, path, FORMS[form], calibration)
    Path(folder, "main.c").write_text(text.replace("UNITS", units))
    return header


def sizes(model, log):
    """Each form that the model has, the smallest first, and its bytes."""
    for form in reversed(FORMS):
        with tempfile.TemporaryDirectory() as folder:
            try:
                file = write(model, log, form, folder, steps=1_000)
            except ValueError:  # a layer that has no step in integers
                continue
            flash = file.cost("Cortex-M4F").flash
            yield form, file.weight_bytes if flash is None else flash


def check(model, log, form, header):
    """What `Header.compare` says of the test rows."""
    x, _ = log.rows("test")
    if form == "integers":
        unit = units_of(log.rows("train", "validate")[0])
        model = _reading_counts(model, unit)
        x = np.clip(np.round(x / unit), -(2**15), 2**15 - 1)
    return export.Header(header).compare(model, x[None])


def units_of(x):
    """What a count of each channel is: 1, or a power of two for fractions."""
    largest = np.maximum(abs(x).max(axis=0), 1e-30)
    whole = (x == np.round(x)).all(axis=0) & (largest < 2**15)
    return np.where(whole, 1.0, 2.0 ** np.ceil(np.log2(largest / 2**14)))


def _reading_counts(model, unit):
    """The same model for inputs in these units."""
    normalization, *layers = model.layers
    mean, variance = (
        np.ravel(of) for of in (normalization.mean, normalization.variance)
    )
    scaled = keras.layers.Normalization(
        mean=mean / unit, variance=variance / unit**2
    )
    copy = keras.Sequential([keras.Input((None, len(unit))), scaled, *layers])
    return copy


def can_compile() -> bool:
    return any(map(shutil.which, COMPILERS))


def answers(folder, x, classes):
    """The number of the class that `main.c` prints for each row."""
    compiler = next(filter(shutil.which, COMPILERS))
    with tempfile.TemporaryDirectory() as temporary:
        program = Path(temporary, "program")
        command = [compiler, "-O2", "-std=c99", "-I", folder, "-o", program]
        subprocess.run([*command, Path(folder, "main.c"), "-lm"], check=True)
        np.savetxt(Path(temporary, "x"), x, "%.9g")
        with open(Path(temporary, "x"), "rb") as rows:
            names = subprocess.check_output([program], stdin=rows)
    number = {name: n for n, name in enumerate(classes)}
    return np.array([number[of] for of in names.decode().splitlines()])
