"""The layers that are not recurrent, as operations, which write C."""

import dataclasses
import functools
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_rin.export._c.functions import ACTIVATIONS
from keras_rin.export._c.program import float_literals
from keras_rin.export._step.stepwise import is_causal
from keras_rin.export._step.stepwise import refuse as _refuse

refuse = functools.partial(_refuse, cannot="has no form in C")


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
    """Calls of functions of `functions.c`, with parameters; none if linear."""

    calls: tuple[tuple, ...] = ()

    def apply(self, program, z, size):
        for function, *parameters in self.calls:
            literals = float_literals(function, parameters)
            program.call(function, z, size, *literals)


def project(operation, program, x, z):
    """Adds z = x W + b."""
    name, rows = operation.name, len(operation.kernel)
    program.set_vector(f"{name}_bias", operation.bias, z, rows)
    program.add_product(f"{name}_kernel", operation.kernel, x, z)


def weight_of(layer, attribute):
    """A weight in float64."""
    is_quantized = getattr(layer, "quantization_mode", None)
    reason = "Keras has quantized it; export the model before, for 8-bit codes"
    refuse(layer, {f'{reason} with `arithmetic="int8"`': is_quantized})
    return ops.convert_to_numpy(getattr(layer, attribute)).astype("float64")


def bias_of(layer):
    return weight_of(layer, "bias") if layer.use_bias else None


def activation_of(layer, attribute="activation", name=None):
    """The operation of an activation, a function or a layer of Keras.

    An error has the `name` or that of the layer.
    """
    activation = getattr(layer, attribute)
    if activation in (None, keras.activations.linear):
        return Activation()
    if type(activation) in ACTIVATION_LAYERS:
        return ACTIVATION_LAYERS[type(activation)](activation)
    for known in ACTIVATIONS:
        if activation is getattr(keras.activations, known, None):
            return Activation(((known,),))
    activation = getattr(activation, "__name__", activation)
    raise ValueError(
        f"The layer {name or layer.name!r} has no form in C: its activation "
        f"{activation!r} is not supported."
    )


def _relu(layer):
    slope, threshold = layer.negative_slope, layer.threshold
    call: tuple = ("relu_layer", threshold) if threshold else ("relu",)
    call = ("sloped_relu_layer", slope, threshold) if slope else call
    if layer.max_value in (None, np.inf):
        return Activation((call,))
    return Activation((call, ("minimum", layer.max_value)))


ACTIVATION_LAYERS = {
    keras.layers.Activation: activation_of,
    keras.layers.ELU: lambda layer: Activation((("elu_layer", layer.alpha),)),
    keras.layers.LeakyReLU: lambda layer: Activation(
        (("sloped_relu_layer", layer.negative_slope, 0.0),)
    ),
    keras.layers.ReLU: _relu,
    keras.layers.Softmax: lambda layer: Activation((("softmax",),)),
}


class Affine(InPlace):
    """z = (x - mean) factor + offset, value by value."""

    constant: tuple[int, ...] = ()  # channels that never change

    def __init__(self, layer, mean=0.0, factor=1.0, offset=0.0):
        self.name = layer.name
        self.vectors = (
            ("add", "minus_mean", -mean, 0),
            ("multiply", "factor", factor, 1),
            ("add", "offset", offset, 0),
        )

    def apply(self, program, z, size):
        for function, role, values, neutral in self.vectors:
            if np.any(values != neutral):
                values = np.broadcast_to(np.ravel(values), size)
                constant = program.vector(f"{self.name}_{role}", values)
                program.call(function, constant, z, size)


class LayerNormalization(Affine):
    """Mean 0 and variance 1, times gamma, plus beta."""

    def __init__(self, layer):
        has_rms = getattr(layer, "rms_scaling", False)
        refuse(layer, {"`rms_scaling=True` is not supported": has_rms})
        super().__init__(layer, factor=_gamma(layer), offset=_beta(layer))
        self.epsilon = layer.epsilon

    def apply(self, program, z, size):
        (epsilon,) = float_literals(f"{self.name}_epsilon", [self.epsilon])
        program.call("normalize", z, size, epsilon)
        super().apply(program, z, size)


class Embedding(Projection):
    """The row of a token."""

    def __init__(self, layer):
        self.name = layer.name
        self.rows = weight_of(layer, "embeddings")
        self.size = self.rows.shape[1]

    def compute(self, program, x, z):
        rows = program.matrix(f"{self.name}_rows", self.rows)
        function = f"lookup_{program.weights}"
        program.call(function, rows, f"{x}[0]", len(self.rows), z, self.size)


class Dense(Projection):
    """activation(x W + b), with W stored by rows of units."""

    def __init__(self, layer):  # or a convolution of single steps
        self.name = layer.name
        kernel = weight_of(layer, "kernel")
        self.kernel = kernel.reshape(-1, kernel.shape[-1]).T
        self.bias = bias_of(layer)
        self.activation = activation_of(layer)
        self.size = len(self.kernel)

    def compute(self, program, x, z):
        project(self, program, x, z)
        self.activation.apply(program, z, self.size)


class Convolution(Operation):
    """A causal convolution, of the samples that its state holds."""

    def __init__(self, layer):
        self.name, self.steps = layer.name, layer.strides[0]
        self.kernel = weight_of(layer, "kernel").transpose(2, 0, 1)
        self.bias, self.activation = bias_of(layer), activation_of(layer)
        filters, taps, self.channels = self.kernel.shape
        self.dilation, self.size = layer.dilation_rate[0], filters
        self.before = self.dilation * (taps - 1)

    def begin(self, program, advance):
        """Begins the loop in which what comes before makes the new samples."""
        new, old = self.steps * self.channels, self.before * self.channels
        self.samples = program.state(f"{self.name}_samples", old + new)
        program.call("copy", f"{self.samples} + {new}", self.samples, old)
        program.write(f"for (int t = 0; t < {self.steps}; t++{advance}) {{")

    def write(self, program, x, size, is_last):
        sample = f"{self.samples} + ({self.before} + t) * {size}"
        program.call("copy", x, sample, size)
        program.write("}")
        z = "y" if is_last else program.buffer(self.size, x)
        program.set_vector(f"{self.name}_bias", self.bias, z, self.size)
        is_dense = self.dilation == 1  # one product with neighbouring samples
        taps = [slice(None)] if is_dense else range(self.kernel.shape[1])
        for number, tap in enumerate(taps):
            rows = self.kernel[:, tap].reshape(self.size, -1)
            first = number * self.dilation * size
            first = f"{self.samples} + {first}" if first else self.samples
            program.add_product(f"{self.name}_kernel", rows, first, z)
        self.activation.apply(program, z, self.size)
        return z, self.size


def check_class(layer):
    """Refuses a layer that has no operations in C, by its class."""
    is_unknown = type(layer) not in LAYERS
    refuse(layer, {f"{type(layer).__name__} is not supported": is_unknown})


def check_axes(layer, rank):
    """Refuses a layer that works along another axis than the features.

    Its activations may be such layers as well.
    """
    axis = getattr(layer, "axis", None)
    is_another = axis is not None and any(np.ravel(axis) % rank != rank - 1)
    refuse(layer, {"its axis must be that of the features": is_another})
    for attribute in ("activation", "recurrent_activation"):
        activation = getattr(layer, attribute, None)
        if isinstance(activation, keras.layers.Layer):
            check_axes(activation, rank)


def layer_operations(layer, is_masked, rank):
    """A list of the operation of a layer, if it has one.

    It reads tensors of this rank, of which the last axis is the features.
    """
    check_class(layer)
    check_axes(layer, rank)
    if isinstance(layer, keras.layers.TimeDistributed):
        inner = layer.layer
        is_refused = isinstance(
            inner, (keras.layers.Conv1D, keras.layers.Embedding)
        )
        refuse(layer, {f"it has the layer {inner.name}": is_refused})
        return layer_operations(inner, is_masked, rank - 1)
    is_softmax = isinstance(layer, keras.layers.Softmax)
    refuse(layer, {"it has a mask": is_masked and is_softmax})
    operation = LAYERS[type(layer)](layer)
    return [] if operation in (None, Activation()) else [operation]


def _gamma(layer):
    return 1.0 if layer.gamma is None else weight_of(layer, "gamma")


def _beta(layer):
    return 0.0 if layer.beta is None else weight_of(layer, "beta")


def _convolution(layer):
    """One of a single step is a dense layer."""
    refuse(layer, {"`groups` must be 1": layer.groups != 1})
    return Convolution(layer) if is_causal(layer) else Dense(layer)


def _normalization(layer):
    mean, variance = weight_of(layer, "mean"), weight_of(layer, "variance")
    deviation = np.maximum(np.sqrt(variance), keras.config.epsilon())
    if layer.invert:
        return Affine(layer, factor=deviation, offset=mean)
    operation = Affine(layer, mean, 1 / deviation)
    is_constant = np.ravel(variance) == 0
    operation.constant = tuple(map(int, np.flatnonzero(is_constant)))
    return operation


def _batch_normalization(layer):
    mean = weight_of(layer, "moving_mean")
    variance = weight_of(layer, "moving_variance") + layer.epsilon
    return Affine(layer, mean, _gamma(layer) / np.sqrt(variance), _beta(layer))


def _rescaling(layer):
    scale, offset = weight_of(layer, "scale"), weight_of(layer, "offset")
    return Affine(layer, factor=scale, offset=offset)


# All but `TimeDistributed`, whose layer has them, are for training alone.
WITHOUT_OPERATION = """
    ActivityRegularization AlphaDropout Dropout GaussianDropout GaussianNoise
    Identity SpatialDropout1D TimeDistributed
""".split()
LAYERS = {
    **ACTIVATION_LAYERS,
    keras.layers.BatchNormalization: _batch_normalization,
    keras.layers.Conv1D: _convolution,
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
