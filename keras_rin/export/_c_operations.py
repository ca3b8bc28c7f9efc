"""Operations, which write a step in C, with the weights that they read."""

import dataclasses

import keras
import numpy as np
from keras import ops

from keras_rin.export._c_functions import ACTIVATIONS
from keras_rin.export._c_program import finite_float32
from keras_rin.export._c_program import float_literal
from keras_rin.export._converted import refusal


def c_refusal(name, reason):
    return refusal("C", name, reason)


class Operation:
    """One step of a layer: reads x, and writes where the next one reads."""

    comment = ""
    is_masked = False

    def write(self, program, x, size, is_last):
        """Adds the operation to a `Program`.

        It reads `size` values at x, an expression of C, and writes into the
        output y if it is the last. Returns where its results are, and how many.
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
    """It computes `size` values, another number."""

    size: int

    def write(self, program, x, size, is_last):
        z = "y" if is_last else program.buffer(self.size, x)
        self.compute(program, x, z)
        return z, self.size

    def compute(self, program, x, z):
        raise NotImplementedError


@dataclasses.dataclass
class Activation(InPlace):
    """Calls of functions of `_c_functions`, with parameters; none if linear."""

    calls: tuple[tuple, ...] = ()

    def apply(self, program, z, size):
        for function, *parameters in self.calls:
            program.call(function, z, size, *map(float_literal, parameters))


def project(operation, program, x, z):
    """Adds z = x W + b."""
    rows, columns = operation.kernel.shape
    bias = f"{operation.name}_bias"
    program.set_vector(bias, operation.bias, z, rows)
    matrix = program.matrix(f"{operation.name}_kernel", operation.kernel)
    program.add_product(matrix, x, columns, z, rows)


def weight_of(layer, attribute, name=None):
    """A weight in float64, or an error that names it if it is not finite."""
    values = ops.convert_to_numpy(getattr(layer, attribute)).astype("float64")
    finite_float32(f"{name or layer.name}: {attribute}", values)
    return values


def bias_of(layer, name=None):
    return weight_of(layer, "bias", name) if layer.use_bias else None


def activation_of(layer, rank, attribute="activation", name=None):
    """The operation of an activation, a function or a layer of Keras.

    `rank` is the number of axes of what it reads, `name` that of a layer.
    """
    activation = getattr(layer, attribute)
    if activation in (None, keras.activations.linear):
        return Activation()
    if type(activation) in ACTIVATION_LAYERS:
        return ACTIVATION_LAYERS[type(activation)](activation, rank)
    for known in ACTIVATIONS:
        if activation is getattr(keras.activations, known, None):
            return Activation(((known,),))
    activation = getattr(activation, "__name__", activation)
    raise c_refusal(
        name or layer.name, f"its activation {activation!r} is not supported"
    )


def _elu(layer, rank):
    return Activation((("elu_layer", layer.alpha),))


def _leaky_relu(layer, rank):
    return Activation((("leaky_relu_layer", layer.negative_slope),))


def _relu(layer, rank):
    slope, threshold = layer.negative_slope, layer.threshold
    call: tuple
    if threshold and slope:
        call = ("shifted_relu", slope, threshold)
    elif threshold:
        call = ("threshold_relu", threshold)
    else:
        call = ("leaky_relu_layer", slope) if slope else ("relu",)
    if layer.max_value is None:
        return Activation((call,))
    return Activation((call, ("minimum", layer.max_value)))


def _softmax(layer, rank):
    check_last_axis(layer, rank)
    return Activation((("softmax",),))


ACTIVATION_LAYERS = {
    keras.layers.Activation: activation_of,
    keras.layers.ELU: _elu,
    keras.layers.LeakyReLU: _leaky_relu,
    keras.layers.ReLU: _relu,
    keras.layers.Softmax: _softmax,
}


def check_last_axis(layer, rank):
    axes = np.atleast_1d(layer.axis) % rank
    if list(axes) != [rank - 1]:
        raise c_refusal(
            layer.name, f"its axis is {layer.axis}, not the last one"
        )
