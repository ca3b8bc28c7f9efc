"""The cells of recurrent layers, as operations of C."""

import dataclasses

import keras
import numpy as np

from keras_rin.export._c_operations import Activation
from keras_rin.export._c_operations import Operation
from keras_rin.export._c_operations import activation_of
from keras_rin.export._c_operations import bias_of
from keras_rin.export._c_operations import c_refusal
from keras_rin.export._c_operations import project
from keras_rin.export._c_operations import weight_of
from keras_rin.layers import DeepTransitionRINCell
from keras_rin.layers import RINCell


class Recurrent(Operation):
    """It updates a state h, which is its output."""

    recurrent_kernel: np.ndarray
    gates = 1

    def write(self, program, x, size, is_last):
        z = program.buffer(self.gates * self.units, x)
        if self.is_masked:
            with program.condition("!is_masked"):
                h = self.update(program, x, z)
        else:
            h = self.update(program, x, z)
        if is_last:
            program.call("copy", h, "y", self.units)
        return h, self.units

    @property
    def units(self):
        return self.recurrent_kernel.shape[1]

    def update(self, program, x, z):
        """Adds the update, with `gates * units` values of memory at z."""
        raise NotImplementedError


@dataclasses.dataclass
class Transition:
    """The second transition of a DeepTransitionRINCell."""

    kernel: np.ndarray
    bias: np.ndarray | None


@dataclasses.dataclass
class SimpleCell(Recurrent):
    """h = activation(x W + h V + b), with V = U + I where U is an offset."""

    name: str
    kernel: np.ndarray
    bias: np.ndarray | None
    recurrent_kernel: np.ndarray
    activation: Activation
    is_offset: bool
    transition: Transition | None = None

    def update(self, program, x, z):
        units = self.units
        h = program.state(f"{self.name}_h", units)
        project(self, program, x, z)
        self._transit(program, "recurrent_kernel", self.recurrent_kernel, h, z)
        if self.transition is not None:
            bias = f"{self.name}_transition_bias"
            program.set_vector(bias, self.transition.bias, z, units)
            kernel = self.transition.kernel
            self._transit(program, "transition_kernel", kernel, h, z)
        return h

    def _transit(self, program, role, values, h, z):
        units = len(values)
        matrix = program.matrix(f"{self.name}_{role}", values)
        program.add_product(matrix, h, units, z, units)
        if self.is_offset:
            program.call("add", h, z, units)
        self.activation.apply(program, z, units)
        program.call("copy", z, h, units)


@dataclasses.dataclass
class GRUCell(Recurrent):
    """The gates of Keras: update, reset, candidate."""

    name: str
    kernel: np.ndarray
    bias: np.ndarray | None
    recurrent_kernel: np.ndarray
    candidate_bias: np.ndarray | None
    activation: Activation
    gate_activation: Activation
    reset_after: bool

    gates = 4  # the reset state has a part of its own

    def update(self, program, x, z):
        name, units = self.name, self.units
        h = program.state(f"{name}_h", units)
        update, reset, candidate, recurrent = _parts(z, units)
        gates, kernel = np.split(self.recurrent_kernel, [2 * units])
        project(self, program, x, z)
        matrix = program.matrix(f"{name}_recurrent_gates", gates)
        program.add_product(matrix, h, units, z, 2 * units)
        self.gate_activation.apply(program, update, units)
        self.gate_activation.apply(program, reset, units)
        matrix = program.matrix(f"{name}_recurrent_candidate", kernel)
        if self.reset_after:
            bias = f"{name}_recurrent_bias"
            program.set_vector(bias, self.candidate_bias, recurrent, units)
            program.add_product(matrix, h, units, recurrent, units)
            program.call("multiply", reset, recurrent, units)
            program.call("add", recurrent, candidate, units)
        else:
            program.call("multiply", h, reset, units)
            program.add_product(matrix, reset, units, candidate, units)
        self.activation.apply(program, candidate, units)
        program.call("interpolate", update, candidate, h, units)
        return h


@dataclasses.dataclass
class LSTMCell(Recurrent):
    """The gates of Keras: input, forget, candidate, output."""

    name: str
    kernel: np.ndarray
    bias: np.ndarray | None
    recurrent_kernel: np.ndarray
    activation: Activation
    gate_activation: Activation

    gates = 4

    def update(self, program, x, z):
        name, units = self.name, self.units
        h = program.state(f"{name}_h", units)
        c = program.state(f"{name}_c", units)
        gate, forget, candidate, output = _parts(z, units)
        project(self, program, x, z)
        matrix = program.matrix(
            f"{name}_recurrent_kernel", self.recurrent_kernel
        )
        program.add_product(matrix, h, units, z, 4 * units)
        for part in (gate, forget, output):
            self.gate_activation.apply(program, part, units)
        self.activation.apply(program, candidate, units)
        program.call("multiply", forget, c, units)
        program.call("multiply", candidate, gate, units)
        program.call("add", gate, c, units)
        program.call("copy", c, h, units)
        self.activation.apply(program, h, units)
        program.call("multiply", output, h, units)
        return h


def _parts(z, units):
    """Expressions of C for the four parts of the values of gates at z."""
    return [f"{z} + {part * units}" if part else z for part in range(4)]


def cell_operations(layer, is_masked):
    """The operations of a recurrent layer, one for each of its cells."""
    cells = getattr(layer.cell, "cells", [layer.cell])
    operations = []
    for number, cell in enumerate(cells):
        if type(cell) not in CELLS:
            cell_class = type(cell).__name__
            raise c_refusal(layer.name, f"its {cell_class} is not supported")
        name = f"{layer.name}_{number}" if len(cells) > 1 else layer.name
        operation = CELLS[type(cell)](cell, name)
        operation.is_masked = is_masked
        operations.append(operation)
    return operations


def _simple_cell(cell, name):
    return SimpleCell(
        name,
        weight_of(name, cell, "kernel").T,
        bias_of(name, cell),
        weight_of(name, cell, "recurrent_kernel").T,
        activation_of(name, cell, 2),
        is_offset=isinstance(cell, RINCell),
    )


def _deep_transition_cell(cell, name):
    operation = _simple_cell(cell, name)
    operation.transition = Transition(
        weight_of(name, cell, "transition_kernel").T,
        weight_of(name, cell, "transition_bias") if cell.use_bias else None,
    )
    return operation


def _gru_cell(cell, name):
    bias, candidate_bias = bias_of(name, cell), None
    if cell.use_bias and cell.reset_after:
        bias, recurrent_bias = bias
        candidate_bias = recurrent_bias[2 * cell.units :]
        bias[: 2 * cell.units] += recurrent_bias[: 2 * cell.units]
    return GRUCell(
        name,
        weight_of(name, cell, "kernel").T,
        bias,
        weight_of(name, cell, "recurrent_kernel").T,
        candidate_bias,
        activation_of(name, cell, 2),
        activation_of(name, cell, 2, "recurrent_activation"),
        cell.reset_after,
    )


def _lstm_cell(cell, name):
    return LSTMCell(
        name,
        weight_of(name, cell, "kernel").T,
        bias_of(name, cell),
        weight_of(name, cell, "recurrent_kernel").T,
        activation_of(name, cell, 2),
        activation_of(name, cell, 2, "recurrent_activation"),
    )


CELLS = {
    keras.layers.SimpleRNNCell: _simple_cell,
    RINCell: _simple_cell,
    DeepTransitionRINCell: _deep_transition_cell,
    keras.layers.GRUCell: _gru_cell,
    keras.layers.LSTMCell: _lstm_cell,
}
