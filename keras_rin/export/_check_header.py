"""A C header: compiled, compared with its model, and measured."""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import typing

import keras
import numpy as np
from numpy.typing import ArrayLike

from keras_rin.export._streaming_step import steps_at_once

COMPILERS = ("cc", "gcc", "clang")
STREAM = """\
#include <stdio.h>
#include "NAME.h"
#ifdef NAME_output_scale /* in integers */
typedef int16_t input;
typedef int32_t output;
#else
typedef float input, output;
#endif
int main(void)
{
    static NAME_state state;
    static input x[NAME_inputs];
    static output y[NAME_outputs];
    FILE *in = fopen("x", "rb"), *out = fopen("y", "wb");
    FILE *states = fopen("states", "wb");
    for (long t = 0; fread(x, sizeof x, 1, in) == 1; t++) {
        if (t % (VALUES / NAME_inputs) == 0)
            NAME_reset(&state);
        NAME_step(&state, x, y);
        fwrite(y, sizeof y, 1, out);
        fwrite(&state, sizeof state, 1, states);
    }
    return fclose(out) || fclose(states);
}
"""
LARGE_SHARE = 0.1  # of the range of outputs: here rounding becomes an error


class _Comparison(typing.NamedTuple):
    difference: float
    agreement: float


class HeaderCheck(_Comparison):
    """A pair of numbers, which prints as sentences.

    Attributes:
        difference: The largest absolute difference of an output, rounding
            included.
        agreement: The share of outputs whose largest value is that of the same
            class.
        share: The largest difference as a share of the outputs' range.
        saturated: Of a header in integers, the share of hidden states at the
            end of their range; else `None`.
        outside: Of a header in integers, the share of steps that leave the
            range of the calibration; else `None`.
    """

    share: float
    saturated: float | None = None
    outside: float | None = None

    def __str__(self):
        lines = [
            f"{self.agreement:.2%} of the answers are the model's: the number "
            "for classes.",
            f"An output differs by at most {self.difference:.3g}, "
            f"{self.share:.2%} of the outputs' range: the number for values.",
        ]
        if self.saturated is not None:
            lines.append(f"{self.saturated:.2%} of the states are saturated.")
        if self.outside:
            lines.append(
                f"Warning: {self.outside:.2%} of the steps leave the range of "
                "the calibration; calibrate with a stream like this one."
            )
        if self.saturated is not None and self.share > LARGE_SHARE:
            lines.append(
                "Warning: the header in integers is unlike the model. If its "
                "states hold small increments for long, use "
                '`states="float32"`.'
            )
        return "\n".join(lines)


def check_header(
    model: keras.Model, path: str | os.PathLike, x: "ArrayLike"
) -> HeaderCheck:
    """Compares a C header with the model that it was made of.

    The header is compiled with the first of `cc`, `gcc` and `clang` that is
    installed, and run along the sequences, each from a state of zeros. A model
    without `return_sequences=True` is compared after their last step.

    Args:
        model: The model whose header `keras_rin.export.export_streaming` wrote.
        path: The header, `*.h`.
        x: Array `(batch, time, ...)`, sequences as for `model.predict`. Where
            a step reads several samples, those of steps that are not complete
            at the end are left out. For a header in integers, counts.

    Returns:
        A `HeaderCheck`, a pair: the largest absolute difference of an output,
        rounding included, and the share of outputs whose largest value is that
        of the same class. Printed, it says more. Softmax, which a header in
        integers leaves out, is computed here.

    Raises:
        ValueError: The sequences are shorter than a step, or no counts.
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
    text = pathlib.Path(path).read_text("ascii")
    in_integers = f"{pathlib.Path(path).stem}_output_scale" in text
    y, states = _run(path, x, in_integers)
    y = y.reshape(len(x), -1, expected.shape[-1])
    if in_integers:
        y = y * float(re.findall(r"_output_scale (\S+)", text)[0])
        if "what softmax reads" in text:
            y = np.exp(y - y.max(axis=-1, keepdims=True))
            y /= y.sum(axis=-1, keepdims=True)
    y = y if y.ndim == expected.ndim else y[:, -1]
    is_equal = y.argmax(axis=-1) == expected.argmax(axis=-1)
    difference = float(abs(y - expected).max())
    check = HeaderCheck(difference, float(is_equal.mean()))
    check.share = difference / (float(np.ptp(expected)) or 1.0)
    if in_integers:
        check.saturated = _saturated(text, states)
        check.outside = _outside(text, x)
    return check


def _run(path, x, in_integers):
    """Outputs, a row for each step, and the bytes of the states."""
    counts = x.astype("int16" if in_integers else "float32")
    if in_integers and np.any(counts != x):
        raise ValueError(
            "A header in integers reads whole numbers from -32768 to 32767. "
            f"Received: x from {x.min()} to {x.max()}"
        )
    path = pathlib.Path(path).resolve(strict=True)
    compiler = next(filter(shutil.which, COMPILERS), COMPILERS[0])
    with tempfile.TemporaryDirectory() as folder:
        program = pathlib.Path(folder, "program")
        source = program.with_name("stream.c")
        source.write_text(STREAM.replace("NAME", path.stem))
        options = ["-O2", f"-DVALUES={x[0].size}", "-I", path.parent, "-lm"]
        command = [compiler, source, *options, "-o", program]
        subprocess.run(command, check=True)
        counts.tofile(program.with_name("x"))
        subprocess.run([program], cwd=folder, check=True)
        c_type = "int32" if in_integers else "float32"
        y = np.fromfile(program.with_name("y"), c_type)
        return y, program.with_name("states").read_bytes()


def _saturated(text, states):
    """The share of states at the end of their range, if they have one."""
    fields = re.findall(r"int16_t \w+\[(\d+)\]; /\* .* is 1(.*) \*/", text)
    may_saturate = np.repeat(
        ["saturates" in note for _, note in fields],
        [int(size) for size, _ in fields],
    )
    values = np.frombuffer(states, "int16").reshape(-1, len(may_saturate))
    is_at_end = abs(values[:, may_saturate].astype("int32")) >= 32767
    return float(is_at_end.mean()) if is_at_end.size else 0.0


def _outside(text, x):
    (ranges,) = re.findall(r"calibration, from([-\d,\s]+)to([-\d,\s]+)", text)
    low, high = (np.array(counts.split(","), "float64") for counts in ranges)
    return float(((x < low) | (x > high)).any(axis=-1).mean())
