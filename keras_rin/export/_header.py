"""A C header: run on this computer, compared with its model, measured."""

import ctypes
import math
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

import keras
import numpy as np
from numpy.typing import ArrayLike

from keras_rin.export._c_functions import c_template
from keras_rin.export._cost import Cost
from keras_rin.export._cost import cost_of
from keras_rin.export._header_check import HeaderCheck
from keras_rin.export._header_check import checked

COMPILERS = ("cc", "gcc", "clang")


class Header:
    """A C header of one time step, on this computer.

    `keras_rin.export.export_streaming` returns it, and `Header(path)` opens
    one that is there. Its text is read once: it may be moved afterwards.

    Args:
        path: The header, `*.h`.

    Attributes:
        path: `pathlib.Path`, the header.
        weight_bytes: Integer, the bytes of the weights.
        state_bytes: Integer, the bytes of the hidden states of one stream; 4
            more with int8 weights than those of the model.
        in_integers: Boolean, whether it computes in integers alone.

    Raises:
        ValueError: It is no header of keras_rin.
        OSError: There is no such file.

    Example:

    >>> model = keras.Sequential(
    ...     [keras.Input((None, 2)), keras_rin.layers.RIN(4)]
    ... )
    >>> path = path.with_name("rin.h")
    >>> header = keras_rin.export.export_streaming(model, path, "c", False)
    >>> difference, agreement = header.compare(model, np.ones((3, 10, 2)))
    >>> difference < 1e-5, agreement
    (True, 1.0)
    >>> keras_rin.export.Header(path).predict(np.ones((3, 10, 2))).shape
    (3, 10, 4)
    """

    def __init__(self, path: str | os.PathLike):
        self.path = pathlib.Path(path)
        self._text = self.path.read_text("ascii")
        match = re.search(
            r"Flash: ([\d,]+) bytes.*RAM: ([\d,]+) bytes.*"
            r"enum { (\w+)_inputs = (\d+), \w+_outputs = (\d+) }",
            self._text,
            re.S,
        )
        if match is None:
            raise ValueError(
                "`path` must be a C header of keras_rin. "
                f"Received: path={str(path)!r}"
            )
        *sizes, self.name, inputs, outputs = match.groups()
        self.weight_bytes, self.state_bytes = (
            int(size.replace(",", "")) for size in sizes
        )
        self._inputs, self._outputs = int(inputs), int(outputs)
        scale = re.search(r"_output_scale (\S+)", self._text)
        self.in_integers = scale is not None
        self._scale = float(scale[1]) if scale else 1.0
        self._library: ctypes.CDLL | None = None

    def __repr__(self):
        return f"Header({str(self.path)!r})"

    def __str__(self):
        sizes = f"{self.weight_bytes:,} bytes of weights, "
        return f"{self.path}: {sizes}{self.state_bytes:,} of hidden states"

    def predict(self, x: "ArrayLike") -> np.ndarray:
        """The outputs after each time step, each sequence from states of 0.

        The header is compiled once, with the first of `cc`, `gcc` and `clang`
        that is installed.

        Args:
            x: Array `(batch, time, ...)`, sequences as for `model.predict`; of
                a header in integers, counts. Samples at the end that are fewer
                than a step reads are left out.

        Returns:
            Array `(batch, steps, outputs)`, in the units of the model, whose
            last step is what a model without `return_sequences=True` gives.
            Softmax, which a header in integers leaves out, is computed here.

        Raises:
            ValueError: x has another shape, or no counts.
            OSError: There is no compiler.
        """
        return self.outputs_and_states(x)[0]

    def compare(self, model: keras.Model, x: "ArrayLike") -> HeaderCheck:
        """Compares the header with the model that it was made of.

        A model without `return_sequences=True` is compared after the last step
        of each sequence.

        Args:
            model: The model.
            x: As in `predict`.

        Returns:
            A `HeaderCheck`, a pair: the largest absolute difference of an
            output, rounding included, and the share of outputs whose largest
            value is that of the same class. Printed, it says more.

        Raises:
            ValueError: The sequences are shorter than a step, or no counts.
            OSError: There is no compiler.
        """
        return checked(self, model, x)

    def cost(self, processor: str = "Cortex-M0+") -> Cost:
        """What it takes of a processor, before it is flashed.

        The header is compiled for it, and run in an emulator, where Debian's
        packages for these are installed.

        Args:
            processor: String, `"Cortex-M0+"`, `"Cortex-M4F"` or the
                `"ATmega328P"` of an Arduino Uno. Defaults to `"Cortex-M0+"`.

        Returns:
            A `Cost`, which prints as a line, with `flash` and `ram` in bytes
            and `per_step`, instructions, or the cycles of an AVR; or with the
            `problem` for which it was not measured.

        Raises:
            ValueError: There is no such processor.
        """
        return cost_of(self, processor)

    @property
    def state_fields(self):
        """Of a header in integers, sizes of states and notes on them."""
        pattern = r"int16_t \w+\[(\d+)\]; /\* .* is 1(.*) \*/"
        return re.findall(pattern, self._text)

    @property
    def calibration(self):
        """Of a header in integers, the least and the largest counts."""
        pattern = r"calibration, from([-\d,\s]+)to([-\d,\s]+)"
        (ranges,) = re.findall(pattern, self._text)
        return (np.array(counts.split(","), "float64") for counts in ranges)

    def write_into(self, folder):
        """Writes the header as it was read, by its name."""
        path = pathlib.Path(folder, f"{self.name}.h")
        path.write_text(self._text, encoding="ascii")

    def outputs_and_states(self, x):
        """Outputs as `predict` gives them, and the bytes of all states."""
        steps = self._steps(np.asarray(x))
        batch, count, _ = steps.shape
        dtype = "int32" if self.in_integers else "float32"
        y = np.empty((batch, count, self._outputs), dtype)
        states = np.empty(batch * count * self.state_bytes, "uint8")
        self._library = self._library or self._compiled()
        arrays = (steps, y, states)
        pointers = (a.ctypes.data_as(ctypes.c_void_p) for a in arrays)
        sizes = ctypes.c_long(batch), ctypes.c_long(count)
        self._library.run(*pointers, *sizes)
        if self.in_integers:
            y = y * self._scale
            if "what softmax reads" in self._text:
                y = np.exp(y - y.max(axis=-1, keepdims=True))
                y /= y.sum(axis=-1, keepdims=True)
        return y, states

    def _steps(self, x):
        """x as the header reads it, `(batch, steps, inputs)`."""
        features = math.prod(x.shape[2:])
        if x.ndim < 2 or features < 1 or self._inputs % features:
            raise ValueError(
                "`x` must be of shape (batch, time, ...), of which a step "
                f"reads {self._inputs} numbers. Received: x of shape {x.shape}"
            )
        dtype = "int16" if self.in_integers else "float32"
        numbers = np.ascontiguousarray(x.astype(dtype))
        if self.in_integers and np.any(numbers != x):
            raise ValueError(
                "A header in integers reads whole numbers from -32768 to "
                f"32767. Received: x from {x.min()} to {x.max()}"
            )
        count = x.shape[1] * features // self._inputs
        numbers = numbers.reshape(len(x), -1)[:, : count * self._inputs]
        return np.ascontiguousarray(numbers).reshape(len(x), count, -1)

    def _compiled(self):
        compiler = next(filter(shutil.which, COMPILERS), None)
        if compiler is None:
            raise FileNotFoundError(
                f"A compiler is needed, one of {COMPILERS}."
            )
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            self.write_into(folder)
            source = pathlib.Path(folder, "stream.c")
            template = c_template("stream.c")
            source.write_text(template.substitute(name=self.name))
            library = source.with_name("stream.so")
            command = f"{compiler} -O2 -shared -fPIC stream.c -o stream.so -lm"
            subprocess.run(command.split(), cwd=folder, check=True)
            return ctypes.CDLL(str(library))
