"""Program: the parts of a C header, as the operations of a model add them."""

import re
import textwrap

import numpy as np

from keras_rin.export._c.functions import functions_of

# A word that no stem of a header has stands between the stem and a private
# name, so no name of one header can be that of another.
PRIVATE = "private"
# Of int8 codes: 127 * 32767 * 512 is below 2^31.
WIDEST = 512
BYTES = {"float": 4, "int32_t": 4, "int16_t": 2, "short": 2}


class Program:
    """One time step in C, with a prefix of names and a type of matrices."""

    x_type, y_type = "float", "float"  # the states are as x

    def __init__(self, prefix, weights):
        self.prefix, self.private = prefix, f"{prefix}_{PRIVATE}"
        self.weights = weights
        self.functions: dict[str, str] = {}
        self.constants: list[str] = []
        self.states: list[tuple[str, int]] = []
        self.notes: dict[str, str] = {}  # on states
        self.statements: list[str] = []
        self.buffers: dict[str, int] = {}
        self.codes = 0  # of 16 bits, for the widest product of integers
        self.flash_bytes = 0
        self._names: set[str] = set()
        if weights == "int8":
            self.phase = self.state("phase", 1)
            self.call("advance", self.phase)

    def call(self, function, *arguments):
        """Adds a call, and the function of `functions.c`."""
        self.use(function)
        texts = ", ".join(map(str, arguments))
        self.write(f"{self.private}_{function}({texts});")

    def use(self, function):
        """Adds a function of `functions.c`, after those that it calls."""
        self.functions |= functions_of(function, self.private)

    @property
    def state_bytes(self):
        return BYTES[self.x_type] * sum(size for _, size in self.states)

    def write(self, statement):
        self.statements += textwrap.wrap(
            statement,
            79,
            initial_indent="    ",
            subsequent_indent="        ",
            break_long_words=False,
            break_on_hyphens=False,  # of -1e-05f
        )

    def state(self, name, size):
        """A new state of zeros, as an expression of C."""
        field = self._new_name(name)
        self.states.append((field, size))
        return f"state->{field}"

    def buffer(self, size, reads):
        """Working memory of this size, other than the buffer it reads."""
        name = "b" if reads == "a" else "a"
        self.buffers[name] = max(size, self.buffers.get(name, 0))
        return name

    def vector(self, name, values):
        """The name of new float32 constants."""
        return self._constant("float", name, float_literals(name, values), 4)

    def matrix(self, name, values):
        """The constants of a matrix, as arguments of a function."""
        if self.weights == "float32":
            return self.vector(name, values)
        codes, scale = quantized(_finite_float32(name, values))
        constant = self._constant("signed char", name, codes.ravel(), 1)
        return f"{constant}, {self.vector(f'{name}_scale', scale)}"

    @property
    def memory(self):
        """Types, names and sizes of arrays within a step."""
        codes = [("short", "codes", self.codes)] if self.codes else []
        buffers = [(self.x_type, *item) for item in self.buffers.items()]
        return buffers + codes

    @property
    def stack_bytes(self):
        return sum(BYTES[c_type] * size for c_type, _, size in self.memory)

    def add_product(self, name, values, x, z):
        """z += values x, with the matrix as new constants."""
        rows, columns = values.shape
        if self.weights == "float32":
            arguments = self.matrix(name, values), x, columns, z, rows
            return self.call("add_product_float32", *arguments)
        for first in range(0, columns, WIDEST):
            part = values[:, first : first + WIDEST]
            size = part.shape[1]
            self.codes = max(size, self.codes)
            place = f"{x} + {first}" if first else x
            product = self.matrix(name, part), place, f"*{self.phase}"
            self.call("add_product_int8", *product, "codes", size, z, rows)

    def set_vector(self, name, values, z, size):
        """z = values, or zeros where they are None."""
        if values is None:
            self.call("zero", z, size)
        else:
            self.call("copy", self.vector(name, values), z, size)

    def _constant(self, c_type, name, literals, item_bytes):
        name = f"{self.private}_{self._new_name(name)}"
        lines = textwrap.fill(
            ", ".join(map(str, literals)),
            79,
            initial_indent="    ",
            subsequent_indent="    ",
            break_on_hyphens=False,
        )
        self.constants.append(
            f"static const {c_type} {name}[{len(literals)}] = {{\n{lines}\n}};"
        )
        self.flash_bytes += item_bytes * len(literals)
        return name

    def _new_name(self, name):
        name = re.sub(r"\W|^(?=\d)", "_", name, flags=re.ASCII)
        number, unique = 1, name
        while unique in self._names:
            number += 1
            unique = f"{name}_{number}"
        self._names.add(unique)
        return unique


def _finite_float32(name, values):
    """The values in float32, or an error that names them."""
    with np.errstate(over="ignore"):
        values = np.asarray(values).astype("float32")
    if not np.isfinite(values).all():
        raise ValueError(
            "Numbers in C must be finite in float32. "
            f"Received: values that are not, in {name!r}"
        )
    return values


def float_literals(name, values):
    """Numbers in C, each in as few digits as it is read back from."""
    return [f"{value!s}f" for value in _finite_float32(name, values).ravel()]


def quantized(matrix):
    """The int8 codes of a matrix, and the scales of its rows.

    A scale is 1 / 127 of the largest weight of its row.
    """
    scale = np.abs(matrix).max(axis=1) / np.float32(127)
    nonzero = np.where(scale > 0, scale, 1)[:, None]
    codes = np.clip(np.round(matrix / nonzero), -127, 127)
    return codes.astype("int8"), scale
