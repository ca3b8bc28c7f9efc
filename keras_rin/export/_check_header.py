"""A C header: compiled, compared with its model, and measured."""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile

import keras
import numpy as np
from numpy.typing import ArrayLike

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
        if (t % STEPS == 0)
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
        x: Array `(batch, time, ...)`, sequences as for `model.predict`.

    Returns:
        The largest absolute difference of an output, rounding of int8 weights
        included, and the share of outputs whose largest value is that of the
        same class.

    Raises:
        ValueError: The header reads another number of values in a step.
        OSError: There is no such header, or no compiler.

    Example:

    >>> model = keras.Sequential(
    ...     [keras.Input((None, 2)), keras_rin.layers.RIN(4)]
    ... )
    >>> path = path.with_name("rin.h")
    >>> header = keras_rin.export.export_streaming(model, path, "c", False)
    >>> difference, agreement = keras_rin.export.check_header(
    ...     model, path, np.ones((3, 100, 2))
    ... )
    >>> difference < 1e-5, agreement
    (True, 1.0)
    """
    path, x = pathlib.Path(path), np.asarray(x)
    (inputs,) = map(int, re.findall(r"_inputs = (\d+)", path.read_text()))
    if x.ndim < 2 or x[0, 0].size != inputs:
        raise ValueError(
            "`x` must have the shape (batch, time, ...), with as many values "
            f"in a step as {path.name} reads, {inputs}. "
            f"Received: x of shape {x.shape}"
        )
    compilers = [name for name in COMPILERS if shutil.which(name)]
    if not compilers:
        raise OSError(
            f"`check_header` needs one of the compilers {COMPILERS}. "
            "Received: none of them on PATH"
        )
    with tempfile.TemporaryDirectory() as folder:
        program = compile_with(
            [compilers[0], "-O2", f"-DSTEPS={x.shape[1]}"],
            *(STREAM, path, folder, "-lm"),
        )
        x.astype("float32").tofile(program.with_name("x"))
        subprocess.run([program], cwd=folder, check=True)
        y = np.fromfile(program.with_name("y"), "float32")
    y = y.reshape(*x.shape[:2], -1)
    expected = model.predict(x, verbose=0)
    y = y if y.ndim == expected.ndim else y[:, -1]
    is_equal = y.argmax(axis=-1) == expected.argmax(axis=-1)
    return float(abs(y - expected).max()), float(is_equal.mean())


def code_bytes(path):
    """Bytes of code for a Cortex-M4; None without its compiler or `math.h`."""
    if not shutil.which(FOR_CORTEX_M4[0]):
        return None
    with tempfile.TemporaryDirectory() as folder:
        try:
            program = compile_with([*FOR_CORTEX_M4, "-c"], CALLS, path, folder)
        except subprocess.CalledProcessError:
            return None
        size = ["arm-none-eabi-size", "-A", program]
        sections = subprocess.check_output(size).decode()
    return int(sections.split(".text")[1].split()[0])


def compile_with(command, text, path, folder, *libraries):
    """The path of what a compiler makes of a text that includes a header."""
    path, folder = pathlib.Path(path).resolve(), pathlib.Path(folder)
    source, program = folder / "source.c", folder / "program"
    source.write_text(text.replace("NAME", path.stem))
    command = [*command, "-I", path.parent, "-o", program, source, *libraries]
    subprocess.run(command, check=True)
    return program
