"""The layers that are not recurrent, as operations of C."""

import dataclasses

import keras
import numpy as np

from keras_rin.export._c_operations import ACTIVATION_LAYERS
from keras_rin.export._c_operations import Activation
from keras_rin.export._c_operations import InPlace
from keras_rin.export._c_operations import Operation
from keras_rin.export._c_operations import Projection
from keras_rin.export._c_operations import activation_of
from keras_rin.export._c_operations import bias_of
from keras_rin.export._c_operations import c_refusal
from keras_rin.export._c_operations import check_last_axis
from keras_rin.export._c_operations import project
from keras_rin.export._c_operations import weight_of
from keras_rin.export._c_program import float_literal


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


class LayerNormalization(InPlace):
    """Mean 0 and variance 1, times gamma, plus beta."""

    def __init__(self, layer, rank):
        check_last_axis(layer, rank)
        if getattr(layer, "rms_scaling", False):
            raise c_refusal(layer.name, "`rms_scaling=True` is not supported")
        self.name, self.epsilon = layer.name, layer.epsilon
        self.gains = [
            (role, function, weight_of(layer, role))
            for role, function in (("gamma", "multiply"), ("beta", "add"))
            if getattr(layer, role) is not None
        ]

    def apply(self, program, z, size):
        program.call("normalize", z, size, float_literal(self.epsilon))
        for role, function, values in self.gains:
            constant = program.vector(f"{self.name}_{role}", values)
            program.call(function, constant, z, size)


class Embedding(Projection):
    """The row of a token."""

    def __init__(self, layer, rank):
        if rank != 2:
            raise c_refusal(
                layer.name, "it must be the first layer and read tokens"
            )
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
    if type(layer) not in LAYERS:
        raise c_refusal(layer.name, f"{type(layer).__name__} is not supported")


def layer_operation(layer, rank, is_masked=False):
    """The operation of a layer that is not recurrent; `None` if it has none.

    Args:
        layer: A built layer, which `streaming_step` accepts.
        rank: Integer, the number of axes of its input, batch included.
        is_masked: Boolean, whether it gets a mask. Defaults to `False`.
    """
    check_class(layer)
    if isinstance(layer, keras.layers.TimeDistributed):
        if isinstance(layer.layer, keras.layers.Embedding):
            raise c_refusal(layer.name, "it has an Embedding")
        return layer_operation(layer.layer, rank - 1, is_masked)
    if is_masked and isinstance(layer, keras.layers.Softmax):
        raise c_refusal(layer.name, "it has a mask")
    operation = LAYERS[type(layer)](layer, rank)
    return None if operation == Activation() else operation


def _none(layer, rank):
    return None


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
    if getattr(layer, "quantization_mode", None):
        raise c_refusal(
            layer.name,
            "Keras has quantized it; export the model before, for 8-bit codes "
            'with `weights="int8"`',
        )


LAYERS = {
    **ACTIVATION_LAYERS,
    keras.layers.BatchNormalization: _batch_normalization,
    keras.layers.Dense: Dense,
    keras.layers.Embedding: Embedding,
    keras.layers.LayerNormalization: LayerNormalization,
    keras.layers.Normalization: _normalization,
    keras.layers.Rescaling: _rescaling,
    keras.layers.TimeDistributed: _none,
    # These are for training alone.
    keras.layers.ActivityRegularization: _none,
    keras.layers.AlphaDropout: _none,
    keras.layers.Dropout: _none,
    keras.layers.GaussianDropout: _none,
    keras.layers.GaussianNoise: _none,
    keras.layers.Identity: _none,
    keras.layers.SpatialDropout1D: _none,
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
