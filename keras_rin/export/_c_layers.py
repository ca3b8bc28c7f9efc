"""The layers that are not recurrent, as operations, which write C."""

import dataclasses
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_rin.export._c_functions import ACTIVATIONS
from keras_rin.export._c_program import finite_float32
from keras_rin.export._c_program import float_literal
from keras_rin.export._converted import refusal


def refuse(layer, reasons):
    """Raises the first of the reasons that holds."""
    for reason, holds in reasons.items():
        if holds:
            raise refusal("C", layer.name, reason)


class Operation:
    """One step of a layer: reads x, and writes where the next one reads.

    `write(program, x, size, is_last)` adds it to a `Program`, with `size`
    values at x, an expression of C, and the output y for those of the last. It
    returns where its results are, and how many.
    """

    comment = ""
    is_masked = False


class InPlace(Operation):
    """It replaces values by as many others, as `apply(program, z, size)`."""

    apply: Any

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


class Projection(Operation):
    """It computes `size` values, another number: `compute(program, x, z)`."""

    size: int
    compute: Any

    def write(self, program, x, size, is_last):
        z = "y" if is_last else program.buffer(self.size, x)
        self.compute(program, x, z)
        return z, self.size


@dataclasses.dataclass
class Activation(InPlace):
    """Calls of functions of `_c_functions`, with parameters; none if linear."""

    calls: tuple[tuple, ...] = ()

    def apply(self, program, z, size):
        for function, *parameters in self.calls:
            program.call(function, z, size, *map(float_literal, parameters))


def project(operation, program, x, z):
    """Adds z = x W + b."""
    name, rows = operation.name, len(operation.kernel)
    program.set_vector(f"{name}_bias", operation.bias, z, rows)
    program.add_product(f"{name}_kernel", operation.kernel, x, z)


def weight_of(layer, attribute, name=None):
    """A weight in float64, or an error that names it if it is not finite."""
    values = ops.convert_to_numpy(getattr(layer, attribute)).astype("float64")
    finite_float32(f"{name or layer.name}: {attribute}", values)
    return values


def bias_of(layer, name=None, attribute="bias"):
    return weight_of(layer, attribute, name) if layer.use_bias else None


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
    reason = f"its activation {activation!r} is not supported"
    raise refusal("C", name or layer.name, reason)


def _relu(layer, rank):
    slope, threshold = layer.negative_slope, layer.threshold
    call: tuple = ("leaky_relu_layer", slope) if slope else ("relu",)
    if threshold:
        call = ("threshold_relu", threshold)
    if threshold and slope:
        call = ("shifted_relu", slope, threshold)
    if layer.max_value is None:
        return Activation((call,))
    return Activation((call, ("minimum", layer.max_value)))


def _softmax(layer, rank):
    check_last_axis(layer, rank)
    return Activation((("softmax",),))


ACTIVATION_LAYERS = {
    keras.layers.Activation: activation_of,
    keras.layers.ELU: lambda layer, rank: Activation(
        (("elu_layer", layer.alpha),)
    ),
    keras.layers.LeakyReLU: lambda layer, rank: Activation(
        (("leaky_relu_layer", layer.negative_slope),)
    ),
    keras.layers.ReLU: _relu,
    keras.layers.Softmax: _softmax,
}


def check_last_axis(layer, rank):
    axes = np.atleast_1d(layer.axis) % rank
    is_other = list(axes) != [rank - 1]
    refuse(layer, {f"its axis is {layer.axis}, not the last one": is_other})


@dataclasses.dataclass
class Affine(InPlace):
    """z = (x - mean) factor + offset, value by value."""

    name: str
    mean: np.ndarray
    factor: np.ndarray
    offset: np.ndarray

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


class LayerNormalization(InPlace):
    """Mean 0 and variance 1, times gamma, plus beta."""

    def __init__(self, layer, rank):
        check_last_axis(layer, rank)
        has_rms = getattr(layer, "rms_scaling", False)
        refuse(layer, {"`rms_scaling=True` is not supported": has_rms})
        self.name, self.epsilon = layer.name, layer.epsilon
        self.weights = {
            role: weight_of(layer, role)
            for role in ("gamma", "beta")
            if getattr(layer, role) is not None
        }

    def apply(self, program, z, size):
        program.call("normalize", z, size, float_literal(self.epsilon))
        for role, values in self.weights.items():
            constant = program.vector(f"{self.name}_{role}", values)
            function = "multiply" if role == "gamma" else "add"
            program.call(function, constant, z, size)


class Embedding(Projection):
    """The row of a token."""

    def __init__(self, layer, rank):
        _check_not_quantized(layer)
        self.name = layer.name
        self.rows = weight_of(layer, "embeddings")
        self.size = self.rows.shape[1]

    def compute(self, program, x, z):
        rows = program.matrix(f"{self.name}_rows", self.rows)
        program.call("lookup", rows, f"{x}[0]", len(self.rows), z, self.size)


class Dense(Projection):
    """activation(x W + b), with W stored by rows of units."""

    def __init__(self, layer, rank):
        _check_not_quantized(layer)
        self.name = layer.name
        self.kernel = weight_of(layer, "kernel").T
        self.bias = bias_of(layer)
        self.activation = activation_of(layer, rank)
        self.size = len(self.kernel)

    def compute(self, program, x, z):
        project(self, program, x, z)
        self.activation.apply(program, z, self.size)


def check_class(layer):
    """Refuses a layer that has no operations in C, by its class."""
    is_unknown = type(layer) not in LAYERS
    refuse(layer, {f"{type(layer).__name__} is not supported": is_unknown})


def layer_operations(layer, rank, is_masked):
    """A list of the operation of a layer, if it has one.

    `rank` is the number of axes of its input, batch included.
    """
    check_class(layer)
    if isinstance(layer, keras.layers.TimeDistributed):
        has_tokens = isinstance(layer.layer, keras.layers.Embedding)
        refuse(layer, {"it has an Embedding": has_tokens})
        return layer_operations(layer.layer, rank - 1, is_masked)
    is_softmax = isinstance(layer, keras.layers.Softmax)
    refuse(layer, {"it has a mask": is_masked and is_softmax})
    operation = LAYERS[type(layer)](layer, rank)
    return [] if operation in (None, Activation()) else [operation]


def _normalization(layer, rank):
    mean = weight_of(layer, "mean").ravel()
    deviation = np.maximum(
        np.sqrt(weight_of(layer, "variance").ravel()), keras.config.epsilon()
    )
    zero = np.zeros(1)
    if layer.invert:
        return Affine(layer.name, zero, deviation, mean)
    return Affine(layer.name, mean, 1 / deviation, zero)


def _batch_normalization(layer, rank):
    check_last_axis(layer, rank)
    mean = weight_of(layer, "moving_mean")
    variance = weight_of(layer, "moving_variance") + layer.epsilon
    gamma = weight_of(layer, "gamma") if layer.scale else 1
    beta = weight_of(layer, "beta") if layer.center else np.zeros(1)
    return Affine(layer.name, mean, gamma / np.sqrt(variance), beta)


def _rescaling(layer, rank):
    factor, offset = weight_of(layer, "scale"), weight_of(layer, "offset")
    return Affine(layer.name, np.zeros(1), factor.ravel(), offset.ravel())


def _check_not_quantized(layer):
    is_quantized = getattr(layer, "quantization_mode", None)
    reason = "Keras has quantized it; export the model before, for 8-bit codes"
    refuse(layer, {f'{reason} with `weights="int8"`': is_quantized})


# All but `TimeDistributed`, whose layer has them, are for training alone.
WITHOUT_OPERATION = """
    ActivityRegularization AlphaDropout Dropout GaussianDropout GaussianNoise
    Identity SpatialDropout1D TimeDistributed
""".split()
LAYERS = {
    **ACTIVATION_LAYERS,
    keras.layers.BatchNormalization: _batch_normalization,
    keras.layers.Dense: Dense,
    keras.layers.Embedding: Embedding,
    keras.layers.LayerNormalization: LayerNormalization,
    keras.layers.Normalization: _normalization,
    keras.layers.Rescaling: _rescaling,
    **{
        getattr(keras.layers, name): lambda *_: None
        for name in WITHOUT_OPERATION
    },
}

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
        takes_it = isinstance(operation, Affine) and hasattr(
            following, "kernel"
        )
        if not (takes_it and _folds(operation, following, weights)):
            folded.append(operation)
    return folded[::-1]


def _folds(affine, following, weights):
    """Changes the weights that follow; false if that were less exact."""
    shift = affine.offset - affine.mean * affine.factor
    is_uniform = np.all(affine.factor == affine.factor[0])
    is_small = np.abs(shift).max() <= LARGEST_FOLDED_OFFSET
    if not is_small or not (weights == "float32" or is_uniform):
        return False
    shift = np.broadcast_to(shift, following.kernel.shape[1])
    if np.any(shift):
        bias = 0 if following.bias is None else following.bias
        following.bias = bias + following.kernel @ shift
    following.kernel = following.kernel * affine.factor
    following.comment = f"{affine.comment}, {following.comment}"
    return True
