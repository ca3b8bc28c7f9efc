"""The layers of a model, as operations that write their step in C."""

import dataclasses

import keras
import numpy as np
from keras import ops

from keras_rin.export._c_functions import ACTIVATIONS
from keras_rin.export._c_program import finite_float32
from keras_rin.export._c_program import float_literal
from keras_rin.layers import DeepTransitionRINCell
from keras_rin.layers import RINCell

FLOAT32_MAX = float(np.finfo("float32").max)


def c_refusal(name, reason):
    return ValueError(f"The layer {name!r} has no form in C: {reason}.")


class Operation:
    """One step of a layer: reads x, and writes where the next one reads."""

    comment = ""
    is_masked = False

    def write(self, program, x, size, is_last):
        """Adds the operation to a program.

        Args:
            program: A `Program`.
            x: String, the values that it reads, as an expression of C.
            size: Integer, how many there are.
            is_last: Boolean, whether it writes into the output y.

        Returns:
            Where the results are, as an expression of C, and how many.
        """
        raise NotImplementedError


class InPlace(Operation):
    """It replaces values by as many others."""

    def write(self, program, x, size, is_last):
        z = x
        if is_last:
            z = "y"
        elif x not in program.buffers:
            z = program.buffer(size, x)
        if z != x:
            program.call("copy", x, z, size)
        self.apply(program, z, size)
        return z, size

    def apply(self, program, z, size):
        raise NotImplementedError


class Projection(Operation):
    """It computes values of another number."""

    @property
    def size(self):
        raise NotImplementedError

    def write(self, program, x, size, is_last):
        z = "y" if is_last else program.buffer(self.size, x)
        self.compute(program, x, z)
        return z, self.size

    def compute(self, program, x, z):
        raise NotImplementedError


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
class Activation(InPlace):
    """A function of `_c_functions`, or `None` for the linear one."""

    function: str | None
    parameters: tuple[float, ...] = ()

    def apply(self, program, z, size):
        if self.function is not None:
            parameters = map(float_literal, self.parameters)
            program.call(self.function, z, size, *parameters)


@dataclasses.dataclass
class Affine(InPlace):
    """z = (x - mean) factor + offset, value by value."""

    name: str
    mean: np.ndarray
    factor: np.ndarray
    offset: np.ndarray

    @property
    def shift(self):
        return self.offset - self.mean * self.factor

    def apply(self, program, z, size):
        parts = [self.mean, self.factor, self.offset]
        if all(np.all(part == part[0]) for part in parts):
            scalars = [float_literal(part[0]) for part in parts]
            program.call("rescale", z, size, *scalars)
            return
        for role, function, values, neutral in (
            ("minus_mean", "add", -self.mean, 0),
            ("factor", "multiply", self.factor, 1),
            ("offset", "add", self.offset, 0),
        ):
            if np.any(values != neutral):
                values = np.broadcast_to(values, size)
                constant = program.vector(f"{self.name}_{role}", values)
                program.call(function, constant, z, size)


@dataclasses.dataclass
class LayerNormalization(InPlace):
    """Mean 0 and variance 1, times gamma, plus beta."""

    name: str
    epsilon: float
    gamma: np.ndarray | None
    beta: np.ndarray | None

    def apply(self, program, z, size):
        program.call("normalize", z, size, float_literal(self.epsilon))
        for role, function, values in (
            ("gamma", "multiply", self.gamma),
            ("beta", "add", self.beta),
        ):
            if values is not None:
                constant = program.vector(f"{self.name}_{role}", values)
                program.call(function, constant, z, size)


@dataclasses.dataclass
class Embedding(Projection):
    """The row of a token."""

    name: str
    rows: np.ndarray

    @property
    def size(self):
        return self.rows.shape[1]

    def compute(self, program, x, z):
        rows = program.matrix(f"{self.name}_rows", self.rows)
        program.call("lookup", rows, f"{x}[0]", len(self.rows), z, self.size)


@dataclasses.dataclass
class Dense(Projection):
    """activation(x W + b), with W stored by rows of units."""

    name: str
    kernel: np.ndarray
    bias: np.ndarray | None
    activation: Activation

    @property
    def size(self):
        return len(self.kernel)

    def compute(self, program, x, z):
        project(self, program, x, z)
        self.activation.apply(program, z, self.size)


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


def project(operation, program, x, z):
    """Adds z = x W + b."""
    rows, columns = operation.kernel.shape
    bias = f"{operation.name}_bias"
    program.set_vector(bias, operation.bias, z, rows)
    matrix = program.matrix(f"{operation.name}_kernel", operation.kernel)
    program.add_product(matrix, x, columns, z, rows)


# A larger offset would be subtracted from a product as large.
LARGEST_FOLDED_OFFSET = 10


def fold_affine(operations, weights):
    """Operations without those that are part of the next one's weights.

    A product with a kernel W takes (x - mean) factor + offset as x W' + b', in
    float32 where rounding stays as small, and in int8 for one factor, which
    leaves the ratios in a row of W as they are.
    """
    folded: list[Operation] = []
    for operation in reversed(operations):
        following = folded[-1] if folded else None
        if (
            isinstance(operation, Affine)
            and hasattr(following, "kernel")
            and _folds_exactly(operation, weights)
        ):
            _fold(operation, following)
        else:
            folded.append(operation)
    return folded[::-1]


def _folds_exactly(affine, weights):
    is_uniform = np.all(affine.factor == affine.factor[0])
    is_small = np.abs(affine.shift).max() <= LARGEST_FOLDED_OFFSET
    return is_small and (weights == "float32" or is_uniform)


def _fold(affine, following):
    shift = np.broadcast_to(affine.shift, following.kernel.shape[1])
    if np.any(shift):
        bias = 0 if following.bias is None else following.bias
        following.bias = bias + following.kernel @ shift
    following.kernel = following.kernel * affine.factor
    following.comment = f"{affine.comment}, {following.comment}"


def check_class(layer):
    """Refuses a layer that has no operations in C, by its class."""
    if type(layer) not in LAYERS:
        raise c_refusal(layer.name, f"{type(layer).__name__} is not supported")


def layer_operations(layer, rank, mask=None):
    """The operations of a layer that is not recurrent.

    Args:
        layer: A built layer, which `streaming_step` accepts.
        rank: Integer, the number of axes of its input, batch included.
        mask: The mask that it is given, or `None`. Defaults to `None`.
    """
    check_class(layer)
    if mask is not None and isinstance(layer, keras.layers.Softmax):
        raise c_refusal(layer.name, "it has a mask")
    operations = LAYERS[type(layer)](layer, rank)
    return [step for step in operations if step != Activation(None)]


def _none(layer, rank):
    return []


def _dense(layer, rank):
    _check_not_quantized(layer)
    kernel = _weight(layer.name, layer, "kernel").T
    bias = _bias(layer.name, layer)
    return [Dense(layer.name, kernel, bias, _activation(layer.name, layer))]


def _embedding(layer, rank):
    if rank != 2:
        raise c_refusal(
            layer.name, "it must be the first layer and read tokens"
        )
    _check_not_quantized(layer)
    return [Embedding(layer.name, _weight(layer.name, layer, "embeddings"))]


def _activation_layer(layer, rank):
    return [_activation(layer.name, layer)]


def _softmax(layer, rank):
    _check_last_axis(layer, rank)
    return [Activation("softmax")]


def _relu(layer, rank):
    largest = FLOAT32_MAX if layer.max_value is None else layer.max_value
    parameters = (layer.negative_slope, largest, layer.threshold)
    if parameters == (0, FLOAT32_MAX, 0):
        return [Activation("relu")]
    return [Activation("relu_layer", parameters)]


def _leaky_relu(layer, rank):
    return [Activation("leaky_relu_layer", (layer.negative_slope,))]


def _elu(layer, rank):
    return [Activation("elu_layer", (layer.alpha,))]


def _layer_normalization(layer, rank):
    _check_last_axis(layer, rank)
    if getattr(layer, "rms_scaling", False):
        raise c_refusal(layer.name, "`rms_scaling=True` is not supported")
    gamma, beta = (
        None
        if getattr(layer, name) is None
        else _weight(layer.name, layer, name)
        for name in ("gamma", "beta")
    )
    return [LayerNormalization(layer.name, layer.epsilon, gamma, beta)]


def _normalization(layer, rank):
    mean, variance = (
        _weight(layer.name, layer, "mean"),
        _weight(layer.name, layer, "variance"),
    )
    deviation = np.maximum(np.sqrt(variance), keras.config.epsilon())
    zero = np.zeros(1)
    if layer.invert:
        return [Affine(layer.name, zero, deviation.ravel(), mean.ravel())]
    return [Affine(layer.name, mean.ravel(), 1 / deviation.ravel(), zero)]


def _batch_normalization(layer, rank):
    _check_last_axis(layer, rank)
    mean = _weight(layer.name, layer, "moving_mean")
    deviation = np.sqrt(
        _weight(layer.name, layer, "moving_variance") + layer.epsilon
    )
    gamma = _weight(layer.name, layer, "gamma") if layer.scale else 1
    offset = _weight(layer.name, layer, "beta") if layer.center else np.zeros(1)
    return [Affine(layer.name, mean, gamma / deviation, offset)]


def _rescaling(layer, rank):
    factor, offset = (
        _weight(layer.name, layer, "scale"),
        _weight(layer.name, layer, "offset"),
    )
    return [Affine(layer.name, np.zeros(1), factor.ravel(), offset.ravel())]


def _time_distributed(layer, rank):
    if isinstance(layer.layer, keras.layers.Embedding):
        raise c_refusal(layer.name, "it has an Embedding")
    return layer_operations(layer.layer, rank - 1)


ACTIVATION_LAYERS = {
    keras.layers.Activation: _activation_layer,
    keras.layers.ELU: _elu,
    keras.layers.LeakyReLU: _leaky_relu,
    keras.layers.ReLU: _relu,
    keras.layers.Softmax: _softmax,
}
LAYERS = {
    **ACTIVATION_LAYERS,
    keras.layers.BatchNormalization: _batch_normalization,
    keras.layers.Dense: _dense,
    keras.layers.Embedding: _embedding,
    keras.layers.LayerNormalization: _layer_normalization,
    keras.layers.Normalization: _normalization,
    keras.layers.Rescaling: _rescaling,
    keras.layers.TimeDistributed: _time_distributed,
    # These are for training alone.
    keras.layers.ActivityRegularization: _none,
    keras.layers.AlphaDropout: _none,
    keras.layers.Dropout: _none,
    keras.layers.GaussianDropout: _none,
    keras.layers.GaussianNoise: _none,
    keras.layers.Identity: _none,
    keras.layers.SpatialDropout1D: _none,
}


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
        _weight(name, cell, "kernel").T,
        _bias(name, cell),
        _weight(name, cell, "recurrent_kernel").T,
        _activation(name, cell),
        is_offset=isinstance(cell, RINCell),
    )


def _deep_transition_cell(cell, name):
    operation = _simple_cell(cell, name)
    operation.transition = Transition(
        _weight(name, cell, "transition_kernel").T,
        _weight(name, cell, "transition_bias") if cell.use_bias else None,
    )
    return operation


def _gru_cell(cell, name):
    bias, candidate_bias = _bias(name, cell), None
    if cell.use_bias and cell.reset_after:
        bias, recurrent_bias = bias
        candidate_bias = recurrent_bias[2 * cell.units :]
        bias[: 2 * cell.units] += recurrent_bias[: 2 * cell.units]
    return GRUCell(
        name,
        _weight(name, cell, "kernel").T,
        bias,
        _weight(name, cell, "recurrent_kernel").T,
        candidate_bias,
        _activation(name, cell),
        _activation(name, cell, "recurrent_activation"),
        cell.reset_after,
    )


def _lstm_cell(cell, name):
    return LSTMCell(
        name,
        _weight(name, cell, "kernel").T,
        _bias(name, cell),
        _weight(name, cell, "recurrent_kernel").T,
        _activation(name, cell),
        _activation(name, cell, "recurrent_activation"),
    )


CELLS = {
    keras.layers.SimpleRNNCell: _simple_cell,
    RINCell: _simple_cell,
    DeepTransitionRINCell: _deep_transition_cell,
    keras.layers.GRUCell: _gru_cell,
    keras.layers.LSTMCell: _lstm_cell,
}


def _weight(name, layer, attribute):
    """A weight in float64, or an error with this name if it is not finite."""
    values = ops.convert_to_numpy(getattr(layer, attribute)).astype("float64")
    finite_float32(f"{name}: {attribute}", values)
    return values


def _bias(name, layer):
    return _weight(name, layer, "bias") if layer.use_bias else None


def _activation(name, layer, attribute="activation"):
    activation = getattr(layer, attribute)
    if type(activation) in ACTIVATION_LAYERS:
        (operation,) = ACTIVATION_LAYERS[type(activation)](activation, 2)
        return operation
    if activation in (None, keras.activations.linear):
        return Activation(None)
    for known in ACTIVATIONS:
        if activation is getattr(keras.activations, known, None):
            return Activation(known)
    activation = getattr(activation, "__name__", activation)
    raise c_refusal(name, f"its activation {activation!r} is not supported")


def _check_not_quantized(layer):
    if getattr(layer, "quantization_mode", None):
        raise c_refusal(
            layer.name,
            "Keras has quantized it; export the model before, for 8-bit codes "
            'with `weights="int8"`',
        )


def _check_last_axis(layer, rank):
    axes = np.atleast_1d(layer.axis) % rank
    if list(axes) != [rank - 1]:
        raise c_refusal(
            layer.name, f"its axis is {layer.axis}, not the last one"
        )
