"""The program of a C header on this computer."""

import ctypes
import math
import pathlib
import re
import shutil
import subprocess
import tempfile

import numpy as np

from keras_rin.export._c.functions import c_template

COMPILERS = ("cc", "gcc", "clang")


class HeaderProgram:
    """What a header says of itself, and its outputs.

    It is compiled once, from its text and not from its file.
    """

    def __init__(self, text, path):
        self._text = text
        match = re.search(
            r"Flash: ([\d,]+) bytes.*RAM: ([\d,]+) bytes.*"
            r"enum { (\w+)_inputs = (\d+), \w+_outputs = (\d+) }",
            text,
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
        scale = re.search(r"_output_scale (\S+)", text)
        self.in_integers = scale is not None
        self._scale = float(scale[1]) if scale else 1.0
        self._library: ctypes.CDLL | None = None

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
