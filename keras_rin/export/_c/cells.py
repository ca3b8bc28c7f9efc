"""The cells of recurrent layers, as operations of C."""

import keras

from keras_rin._cell_descriptions import biases_of
from keras_rin._cell_descriptions import columns_of
from keras_rin._cell_descriptions import description_of
from keras_rin.export._c.layers import Operation
from keras_rin.export._c.layers import activation_of
from keras_rin.export._c.layers import check_axes
from keras_rin.export._c.layers import refuse
from keras_rin.export._c.layers import weight_of
from keras_rin.export._c.program import float_literals
from keras_rin.layers import StreamFeatures


class Cell(Operation):
    """Writes the step of a cell, whose first state is its output."""

    def __init__(self, cell, name, is_masked):
        self.cell, self.name, self.is_masked = cell, name, is_masked
        self.row = description_of(cell)
        self.units = keras.tree.flatten(cell.state_size)[0]
        self.gate_size = getattr(cell, self.row.gate_size, self.units)

    def write(self, program, x, size, is_last):
        self._program, self._x = program, x
        names = [*self.row.gates, *self.row.scratch]
        z = program.buffer(len(names) * self.gate_size, x)
        self._values = {
            name: f"{z} + {n * self.gate_size}" if n else z
            for n, name in enumerate(names)
        }
        for state in self.row.states:
            field = program.state(f"{self.name}_{state}", self.units)
            self._values[state] = field
        if self.is_masked:
            program.write("if (!is_masked) {")
        self.row.step(self, self.cell)
        if self.is_masked:
            program.write("}")
        h = self._values[self.row.states[0]]
        if is_last:
            program.call("copy", h, "y", self.units)
        return h, self.units

    # The operations of `_cell_descriptions`.

    def project(self, apart=None):
        bias, of_apart = biases_of(self._bias("bias"), self.row, apart)
        kernel, first = weight_of(self.cell, "kernel").T, self.row.gates[0]
        self._set(first, "bias", bias, len(kernel))
        self._add_product("kernel", kernel, self._x, first)
        if apart:
            self._set(apart[1], "recurrent_bias", of_apart, self.units)

    def add_product(
        self, source, weight="recurrent_kernel", gates=None, to=None
    ):
        kernel = columns_of(weight_of(self.cell, weight), self.row, gates)
        role = "_".join([weight, *(gates or ())])
        to = to or (gates or self.row.gates)[0]
        self._add_product(role, kernel.T, self._values[source], to)
        if weight in self.row.offsets:
            for gate in self.row.gates:
                self.call("add", source, gate)

    def set_bias(self, to, attribute):
        self._set(to, attribute, self._bias(attribute), self.units)

    def activate(self, to, attribute="activation"):
        activation = activation_of(self.cell, attribute, self.name)
        activation.apply(self._program, self._values[to], self.gate_size)

    def call(self, function, *names):
        values = [self._values[name] for name in names]
        self._program.call(function, *values, self.units)

    def _add_product(self, role, matrix, source, to):
        name, to = f"{self.name}_{role}", self._values[to]
        self._program.add_product(name, matrix, source, to)

    def _set(self, to, role, values, size):
        name, to = f"{self.name}_{role}", self._values[to]
        self._program.set_vector(name, values, to, size)

    def _bias(self, attribute):
        has_bias = getattr(self.cell, attribute, None) is not None
        return weight_of(self.cell, attribute) if has_bias else None


class Features(Operation):
    """How much the channels of a stream move, of a `StreamFeatures`."""

    def __init__(self, layer):
        self.name, self.window = layer.name, layer.window
        self.inner = layer.cell

    def write(self, program, x, size, is_last):
        states = program.state(self.name, 2 * size + 1)
        (rate,) = float_literals(f"{self.name}_window", [1 / self.window])
        y = "y" if is_last else program.buffer(3 * size, x)
        program.call("move", x, rate, states, y, size)
        return y, 3 * size


def cell_operations(layer, is_masked):
    """The operations of a recurrent layer, one for each of its cells."""
    if isinstance(layer, StreamFeatures):
        refuse(layer, {"it has a mask": is_masked})
        return [Features(layer)]
    cells = getattr(layer.cell, "cells", [layer.cell])
    operations = []
    for number, cell in enumerate(cells):
        is_unknown = description_of(cell) is None
        refuse(
            layer, {f"its {type(cell).__name__} is not supported": is_unknown}
        )
        check_axes(cell, rank=2)
        name = f"{layer.name}_{number}" if len(cells) > 1 else layer.name
        operations.append(Cell(cell, name, is_masked))
    return operations
