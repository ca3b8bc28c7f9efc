"""The cells of recurrent layers, as operations of C."""

from typing import Any

import keras
import numpy as np

from keras_rin.export._c_layers import Operation
from keras_rin.export._c_layers import activation_of
from keras_rin.export._c_layers import bias_of
from keras_rin.export._c_layers import check_axes
from keras_rin.export._c_layers import project
from keras_rin.export._c_layers import refuse
from keras_rin.export._c_layers import weight_of
from keras_rin.layers import DeepTransitionRINCell
from keras_rin.layers import RINCell


class Recurrent(Operation):
    """It updates a state h, its output, in `gates * units` values at z."""

    gates = 1
    update: Any

    def __init__(self, cell, name):
        self.name, self.units = name, cell.units
        self.kernel = weight_of(cell, "kernel").T
        self.bias = bias_of(cell)
        self.recurrent_kernel = weight_of(cell, "recurrent_kernel").T
        self.activation = activation_of(cell, name=name)
        if self.gates > 1:
            self.gate_activation = activation_of(
                cell, "recurrent_activation", name
            )

    def write(self, program, x, size, is_last):
        z = program.buffer(self.gates * self.units, x)
        h = program.state(f"{self.name}_h", self.units)
        if self.is_masked:
            program.write("if (!is_masked) {")
        self.update(program, x, z, h)
        if self.is_masked:
            program.write("}")
        if is_last:
            program.call("copy", h, "y", self.units)
        return h, self.units

    def parts(self, z):
        """Expressions of C for the values of the gates at z."""
        units = self.units
        return [f"{z} + {n * units}" if n else z for n in range(self.gates)]


class SimpleCell(Recurrent):
    """h = activation(x W + h V + b), with V = U + I where U is an offset."""

    def __init__(self, cell, name):
        super().__init__(cell, name)
        self.is_offset = isinstance(cell, RINCell)

    def update(self, program, x, z, h):
        project(self, program, x, z)
        self.transit(program, "recurrent_kernel", self.recurrent_kernel, h, z)

    def transit(self, program, role, values, h, z):
        program.add_product(f"{self.name}_{role}", values, h, z)
        if self.is_offset:
            program.call("add", h, z, self.units)
        self.activation.apply(program, z, self.units)
        program.call("copy", z, h, self.units)


class DeepTransitionCell(SimpleCell):
    """A second transition follows, which reads h alone."""

    def __init__(self, cell, name):
        super().__init__(cell, name)
        self.transition_kernel = weight_of(cell, "transition_kernel").T
        self.transition_bias = bias_of(cell, "transition_bias")

    def update(self, program, x, z, h):
        super().update(program, x, z, h)
        bias = f"{self.name}_transition_bias"
        program.set_vector(bias, self.transition_bias, z, self.units)
        self.transit(program, "transition_kernel", self.transition_kernel, h, z)


class GRUCell(Recurrent):
    """The gates of Keras: update, reset, candidate."""

    gates = 4  # the reset state has a part of its own

    def __init__(self, cell, name):
        super().__init__(cell, name)
        self.reset_after, self.candidate_bias = cell.reset_after, None
        if cell.use_bias and cell.reset_after:
            self.bias, recurrent_bias = self.bias
            self.candidate_bias = recurrent_bias[2 * cell.units :]
            self.bias[: 2 * cell.units] += recurrent_bias[: 2 * cell.units]

    def update(self, program, x, z, h):
        name, units = self.name, self.units
        update, reset, candidate, recurrent = self.parts(z)
        gates, kernel = np.split(self.recurrent_kernel, [2 * units])
        project(self, program, x, z)
        program.add_product(f"{name}_recurrent_gates", gates, h, z)
        self.gate_activation.apply(program, update, units)
        self.gate_activation.apply(program, reset, units)
        role = f"{name}_recurrent_candidate"
        if self.reset_after:
            bias = f"{name}_recurrent_bias"
            program.set_vector(bias, self.candidate_bias, recurrent, units)
            program.add_product(role, kernel, h, recurrent)
            program.call("multiply", reset, recurrent, units)
            program.call("add", recurrent, candidate, units)
        else:
            program.call("multiply", h, reset, units)
            program.add_product(role, kernel, reset, candidate)
        self.activation.apply(program, candidate, units)
        program.call("interpolate", update, candidate, h, units)


class LSTMCell(Recurrent):
    """The gates of Keras: input, forget, candidate, output."""

    gates = 4

    def update(self, program, x, z, h):
        name, units = self.name, self.units
        c = program.state(f"{name}_c", units)
        gate, forget, candidate, output = self.parts(z)
        project(self, program, x, z)
        kernel = self.recurrent_kernel
        program.add_product(f"{name}_recurrent_kernel", kernel, h, z)
        for part in (gate, forget, output):
            self.gate_activation.apply(program, part, units)
        self.activation.apply(program, candidate, units)
        program.call("multiply", forget, c, units)
        program.call("multiply", candidate, gate, units)
        program.call("add", gate, c, units)
        program.call("copy", c, h, units)
        self.activation.apply(program, h, units)
        program.call("multiply", output, h, units)


CELLS = {
    keras.layers.SimpleRNNCell: SimpleCell,
    RINCell: SimpleCell,
    DeepTransitionRINCell: DeepTransitionCell,
    keras.layers.GRUCell: GRUCell,
    keras.layers.LSTMCell: LSTMCell,
}


def cell_operations(layer, is_masked):
    """The operations of a recurrent layer, one for each of its cells."""
    cells = getattr(layer.cell, "cells", [layer.cell])
    operations = []
    for number, cell in enumerate(cells):
        is_unknown = type(cell) not in CELLS
        refuse(
            layer, {f"its {type(cell).__name__} is not supported": is_unknown}
        )
        check_axes(cell, rank=2)
        name = f"{layer.name}_{number}" if len(cells) > 1 else layer.name
        operation = CELLS[type(cell)](cell, name)
        operation.is_masked = is_masked
        operations.append(operation)
    return operations
