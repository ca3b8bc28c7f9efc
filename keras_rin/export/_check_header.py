"""A C header: compiled, compared with its model, and measured."""

import os
import pathlib
import shutil
import subprocess
import tempfile

import keras
import numpy as np
from numpy.typing import ArrayLike

from keras_rin.export._streaming_step import steps_at_once

COMPILERS = ("cc", "gcc", "clang")
FOR_CORTEX_M4 = (
    "arm-none-eabi-gcc -std=c99 -mthumb -mcpu=cortex-m4 -mfpu=fpv4-sp-d16 "
    "-mfloat-abi=hard -Os"
).split()
STREAM = """\
#include <stdio.h>
#include "NAME.h"
int main(void)
{
    static NAME_state state;
    static float x[NAME_inputs], y[NAME_outputs];
    FILE *in = fopen("x", "rb"), *out = fopen("y", "wb");
    for (long t = 0; fread(x, sizeof x, 1, in) == 1; t++) {
        if (t % (VALUES / NAME_inputs) == 0)
            NAME_reset(&state);
        NAME_step(&state, x, y);
        fwrite(y, sizeof y, 1, out);
    }
    return fclose(out);
}
"""
CALLS = """\
#include "NAME.h"
void reset(NAME_state *state) { NAME_reset(state); }
void step(NAME_state *state, const float x[], float y[])
{
    NAME_step(state, x, y);
}
"""


def check_header(
    model: keras.Model, path: str | os.PathLike, x: "ArrayLike"
) -> tuple[float, float]:
    """Compares a C header with the model that it was made of.

    The header is compiled with the first of `cc`, `gcc` and `clang` that is
    installed, and run along the sequences, each from a state of zeros. A model
    without `return_sequences=True` is compared after their last step.

    Args:
        model: The model whose header `keras_rin.export.export_streaming` wrote.
        path: The header, `*.h`.
        x: Array `(batch, time, ...)`, sequences as for `model.predict`. Where
            a step reads several samples, those of steps that are not complete
            at the end are left out.

    Returns:
        The largest absolute difference of an output, rounding of int8 weights
        included, and the share of outputs whose largest value is that of the
        same class.

    Raises:
        ValueError: The sequences are shorter than a step.
        OSError: There is no such header, or no compiler.

    Example:

    >>> model = keras.Sequential(
    ...     [keras.Input((None, 2)), keras_rin.layers.RIN(4)]
    ... )
    >>> path = path.with_name("rin.h")
    >>> header = keras_rin.export.export_streaming(model, path, "c", False)
    >>> difference, agreement = keras_rin.export.check_header(
    ...     model, path, np.ones((3, 10, 2))
    ... )
    >>> difference < 1e-5, agreement
    (True, 1.0)
    """
    x, samples = np.asarray(x), steps_at_once(model)
    shape = x.shape
    x = x[:, : x.shape[1] // samples * samples]
    if not x.size:
        raise ValueError(
            f"`x` must have sequences of at least {samples} time steps. "
            f"Received: x of shape {shape}"
        )
    (expected,) = keras.tree.flatten(model.predict(x, verbose=0))
    compiler = next(filter(shutil.which, COMPILERS), COMPILERS[0])
    with tempfile.TemporaryDirectory() as folder:
        command = [compiler, "-O2", f"-DVALUES={x[0].size}"]
        program = compile_with(command, STREAM, path, folder)
        x.astype("float32").tofile(program.with_name("x"))
        subprocess.run([program], cwd=folder, check=True)
        y = np.fromfile(program.with_name("y"), "float32")
    y = y.reshape(len(x), -1, expected.shape[-1])
    y = y if y.ndim == expected.ndim else y[:, -1]
    is_equal = y.argmax(axis=-1) == expected.argmax(axis=-1)
    return float(abs(y - expected).max()), float(is_equal.mean())


def code_bytes(path):
    """Bytes of a header's code for a Cortex-M4; None without its compiler."""
    if path.suffix != ".h" or not shutil.which(FOR_CORTEX_M4[0]):
        return None
    with tempfile.TemporaryDirectory() as folder:
        program = compile_with([*FOR_CORTEX_M4, "-c"], CALLS, path, folder)
        size = ["arm-none-eabi-size", "-A", program]
        sections = subprocess.check_output(size).decode()
    return int(sections.split(".text")[1].split()[0])


def compile_with(command, text, path, folder):
    """The path of what a compiler makes of a text that includes a header."""
    path, folder = pathlib.Path(path).resolve(strict=True), pathlib.Path(folder)
    source, program = folder / "source.c", folder / "program"
    source.write_text(text.replace("NAME", path.stem))
    options = ["-I", path.parent, "-o", program, source, "-lm"]
    subprocess.run([*command, *options], check=True)
    return program
