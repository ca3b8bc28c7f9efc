"""The operations of C with states of 16 bits, weights of 8 and sums of 32.

Values have units that are powers of two, from the range that they have along
sequences of calibration.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import keras
import numpy as np

from keras_rin import _cell_descriptions
from keras_rin.diagnostics import state_trajectories
from keras_rin.export._c import layers
from keras_rin.export._c.cells import Features
from keras_rin.export._c.integer_cell import described_cell
from keras_rin.export._c.integer_sums import GATES
from keras_rin.export._c.integer_sums import Q15
from keras_rin.export._c.integer_sums import Signal
from keras_rin.export._c.integer_sums import Sums
from keras_rin.export._c.integer_sums import activation_name
from keras_rin.export._c.integer_sums import exponent_for
from keras_rin.export._c.integer_sums import parts_of
from keras_rin.export._c.integer_sums import refuse
from keras_rin.export._c.integer_sums import rounded_rows

LARGEST_RESET_SUM = 2**23
FUNCTIONS: dict[str, Callable] = {
    "linear": lambda z: z,
    "relu": lambda z: np.maximum(z, 0),
    "tanh": np.tanh,
    "sigmoid": lambda z: 0.5 + 0.5 * np.tanh(z / 2),
    "softsign": lambda z: z / (1 + np.abs(z)),
}


def _function(operation, attribute="activation"):
    return activation_name(getattr(operation, attribute), operation)


def _activate(program, name, z, size):
    if name != "linear":
        program.call(name, z, size)


def fold(program, operation, signal, is_last):
    """The weights of the next layer contain it."""
    refuse(
        operation,
        {
            "no layer with weights follows it": is_last,
            f"the variance of the channels {operation.constant}, counted from "
            "0, is 0, as their data never change; take them out of the input, "
            "or set their variance to 1": operation.constant,
        },
    )
    factor, offset = np.ones(signal.size), np.zeros(signal.size)
    for function, _, values, _ in operation.vectors:
        if function == "add":
            offset = offset + np.ravel(values)
        else:
            factor, offset = (
                factor * np.ravel(values),
                offset * np.ravel(values),
            )
    return dataclasses.replace(
        signal,
        factor=signal.factor * factor,
        offset=signal.offset * factor + offset,
    )


def features(program, operation, signal, is_last):
    """Of codes, so the factors of a layer before it are those of all parts."""
    window, name, size = operation.window, operation.name, signal.size
    shift = round(np.log2(window))
    refuse(
        operation,
        {
            "no layer with weights follows it": is_last,
            f"its window, {window:g}, is no power of two up to 2^14": (
                window != 2.0**shift or shift > 14
            ),
        },
    )
    states = program.state_of(name, 3 * size + 1, signal.exponent, True)
    place = program.buffer(3 * size, signal.place)
    program.call("move", signal.place, shift, states, place, size)
    x = signal.numbers
    means = state_trajectories(operation.inner, x, dtype="float64")
    before = np.concatenate([x[:, :1], x[:, :-1]], axis=1)
    sizes = np.abs(x - before), np.abs(x - means[:, 1:, 1 + size :])
    factor = np.broadcast_to(signal.factor, size)
    offset = np.broadcast_to(signal.offset, size)
    return Signal(
        place,
        np.concatenate([x, *sizes], axis=2),
        signal.exponent,
        np.concatenate([factor, np.abs(factor), np.abs(factor)]),
        np.concatenate([offset, np.zeros(2 * size)]),
    )


def dense(program, operation, signal, is_last):
    """Of the last layer, one unit for all outputs, as fine as its codes."""
    name, kernel = _function(operation), operation.kernel * signal.factor
    values = signal.values @ operation.kernel.T
    if operation.bias is not None:
        values += operation.bias
    values = FUNCTIONS[name](values)
    if name in GATES:
        exponent = Q15
    elif is_last:
        exponent = signal.exponent + 1 + _largest_exponent(kernel)
    else:
        exponent = exponent_for(operation, values)
    size = operation.size
    z = "y" if is_last else program.sums(size)
    Sums(program, operation, z, exponent).project(signal)
    _activate(program, name, z, size)
    place = z
    if not is_last:
        place = program.buffer(size, signal.place)
        program.call("saturate", z, place, size)
    return Signal(place, values, exponent)


def _largest_exponent(kernel):
    parts = [kernel[:, columns] for columns in parts_of(kernel)]
    return max(rounded_rows(part)[1].max() for part in parts)


def _states(operation, signal):
    """All states `(sequences, steps, states)` along the calibration."""
    cell = operation.cell
    return state_trajectories(cell, signal.values, dtype="float64")[:, 1:]


def gru_cell(program, operation, signal, is_last):
    units = operation.units
    _check_gates(operation)
    resets_after = operation.cell.reset_after
    recurrent_bias = np.zeros(units)
    if operation.bias is not None and resets_after:
        operation.bias, recurrent = operation.bias
        recurrent_bias = recurrent[2 * units :]
        operation.bias[: 2 * units] += recurrent[: 2 * units]
    _negate(operation, slice(units))  # 1 - the update gate is how far h moves
    gates, candidate = np.split(operation.recurrent_kernel, [2 * units])
    values = _states(operation, signal)
    h = program.state_of(f"{operation.name}_h", units, Q15, True)
    hidden = Signal(h, values, Q15)
    z = program.sums((3 + resets_after) * units)
    sums = Sums(program, operation, z, Q15)
    sums.project(signal)
    sums.add_product("recurrent_gates", gates, hidden)
    parts = [f"{z} + {number * units}" for number in range(4)]
    if resets_after:
        recurrent = Sums(program, operation, parts[3], Q15, LARGEST_RESET_SUM)
        recurrent.set("recurrent_bias", recurrent_bias)
        recurrent.add_product("recurrent_candidate", candidate, hidden)
        program.call("reset_sums", parts[1], parts[3], parts[2], units)
    else:
        x = program.buffer(units, signal.place)
        program.call("reset_state", parts[1], h, x, units)
        sums.z = parts[2]
        hidden = dataclasses.replace(hidden, place=x)
        sums.add_product("recurrent_candidate", candidate, hidden)
    program.call("tanh", parts[2], units)
    program.call("approach", z, parts[2], program.phase(15), h, units)
    return _state_output(program, Signal(h, values, Q15), is_last)


def lstm_cell(program, operation, signal, is_last):
    units = operation.units
    _check_gates(operation)
    values, cells = np.split(_states(operation, signal), 2, axis=2)
    largest = np.abs(cells).max()
    halvings = max(exponent_for(operation, cells) - Q15, 0)
    refuse(operation, {f"its c reaches {largest:.3g}": halvings > 8})
    h = program.state_of(f"{operation.name}_h", units, Q15, True)
    c = program.state_of(f"{operation.name}_c", units, Q15 + halvings)
    hidden = Signal(h, values, Q15)
    _negate(operation, slice(units, 2 * units))  # 1 - the forget gate
    sums = Sums(program, operation, program.sums(4 * units), Q15)
    sums.project(signal)
    sums.add_product("recurrent_kernel", operation.recurrent_kernel, hidden)
    program.call("remember", sums.z, halvings, program.phase(15), c, h, units)
    return _state_output(program, hidden, is_last)


def min_gru_cell(program, operation, signal, is_last):
    """Its state lies between candidates, so it has their unit."""
    name, units = _function(operation), operation.units
    is_other = _function(operation, "gate_activation") != "sigmoid"
    refuse(operation, {"it has another gate than sigmoid": is_other})
    values = _states(operation, signal)
    driven = signal.values @ operation.kernel[units:].T
    if operation.bias is not None:
        driven += operation.bias[units:]
    candidates = FUNCTIONS[name](driven)
    is_within_1 = name in GATES
    exponent = Q15 if is_within_1 else exponent_for(operation, candidates)
    h = program.state_of(f"{operation.name}_h", units, exponent, is_within_1)
    exponents = np.repeat([Q15, exponent], units)
    sums = Sums(program, operation, program.sums(2 * units), exponents)
    sums.project(signal)
    candidate = f"{sums.z} + {units}"
    _activate(program, name, candidate, units)
    program.call("approach", sums.z, candidate, program.phase(15), h, units)
    return _state_output(program, Signal(h, values, exponent), is_last)


def _negate(operation, rows):
    """1 - sigmoid(z) is sigmoid(-z), which is fine where it is small."""
    for name in ("kernel", "recurrent_kernel", "bias"):
        weight = getattr(operation, name)
        if weight is not None:
            weight[rows] *= -1


def _check_gates(operation):
    functions = _function(operation), _function(operation, "gate_activation")
    is_other = functions != ("tanh", "sigmoid")
    refuse(operation, {"it has other gates than sigmoid and tanh": is_other})


def _state_output(program, signal, is_last):
    if is_last:
        program.call("copy", signal.place, "y", signal.size)
    return signal


WRITERS = {  # by the class of the operation, or by the step of its cell
    layers.Affine: fold,
    Features: features,
    layers.Dense: dense,
    _cell_descriptions.gru: gru_cell,
    _cell_descriptions.lstm: lstm_cell,
    _cell_descriptions.min_gru: min_gru_cell,
}


def _writer(operation):
    if hasattr(operation, "row"):
        return WRITERS.get(operation.row.step, described_cell)
    return WRITERS.get(type(operation))


def _read_cell(operation):
    """Weights of a cell in float64, a row for each unit, as attributes."""
    cell, name = operation.cell, operation.name
    operation.kernel = layers.weight_of(cell, "kernel").T
    operation.bias = layers.bias_of(cell)
    if hasattr(cell, "recurrent_kernel"):
        matrix = layers.weight_of(cell, "recurrent_kernel")
        operation.recurrent_kernel = matrix.T
    operation.activation = layers.activation_of(cell, name=name)
    if hasattr(cell, "recurrent_activation"):
        operation.gate_activation = layers.activation_of(
            cell, "recurrent_activation", name
        )


def joined_operations(operations):
    """Operations that have a form here, and whether a last softmax is left out.

    An activation behind a dense layer becomes its own.
    """
    joined: list[Any] = []
    for operation in operations:
        name, _, kind = operation.comment.partition(": ")
        operation.name = name
        before = joined[-1] if joined else None
        is_activation = type(operation) is layers.Activation
        if is_activation and type(before) is layers.Dense:
            if not before.activation.calls:
                before.activation = operation
                continue
        is_unknown = _writer(operation) is None
        refuse(operation, {f"{kind} is not supported there": is_unknown})
        values = keras.tree.flatten(list(vars(operation).values()))
        weights = [value for value in values if isinstance(value, np.ndarray)]
        if hasattr(operation, "row"):
            weights = operation.cell.get_weights()
            if operation.row.step in WRITERS:
                _read_cell(operation)
        is_finite = all(np.isfinite(weight).all() for weight in weights)
        refuse(operation, {"a weight is not finite": not is_finite})
        joined.append(operation)
    is_dense = type(joined[-1]) is layers.Dense
    has_softmax = is_dense and joined[-1].activation.calls == (("softmax",),)
    if has_softmax:
        joined[-1].activation = layers.Activation()
    return joined, has_softmax


def write_operations(program, operations, calibration):
    """Adds the operations to a program; returns the signal of its output."""
    signal = Signal("x", calibration)
    for number, operation in enumerate(operations, 1):
        program.comment(operation.comment)
        is_last = number == len(operations)
        signal = _writer(operation)(program, operation, signal, is_last)
    return signal
