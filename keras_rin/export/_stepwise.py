"""Which layers answer each time step from that step alone."""

import keras
import numpy as np
from keras import ops

from keras_rin import layers as ours

TIME = 1  # the axis of time, after that of the batch
STEPS = 16  # of the example on which a layer of the user's is checked


def is_stepwise(layer, args, rank):
    """Whether the output of a step depends on no other step.

    Decided by what a layer is, and never by what it answers to some steps. A
    subclass of a layer in the tables is another layer.

    Args:
        layer: A layer, or an operation of `keras.ops` in a functional model.
        args: Its positional arguments. Every Keras tensor among them is a
            sequence `(batch, time, ...)`.
        rank: Integer, the number of axes of these sequences.
    """
    if isinstance(layer, keras.Layer):
        rule = LAYERS.get(type(layer))
    elif type(layer).__module__.startswith("keras."):
        rule = OPERATIONS.get(type(layer).__name__)
    else:
        rule = None
    return rule is not None and rule(layer, args, rank)


def _always(layer, args, rank):
    return True


def _on_features(layer, args, rank):
    """Whether a layer works on the last axis, which is not that of time."""
    activation = getattr(layer, "activation", None)
    return rank > 2 and _is_known_activation(activation, args, rank)


def _is_known_activation(activation, args, rank):
    if isinstance(activation, keras.Layer):
        return is_stepwise(activation, args, rank)
    known = vars(keras.activations).values()
    return activation is None or any(
        activation is function for function in known
    )


def _beyond_time(axes, rank):
    """Whether there are axes, all of them within a single time step."""
    if isinstance(axes, int):
        axes = [axes]
    return axes is not None and all(axis % rank > TIME for axis in axes)


def _on_its_axes(layer, args, rank):
    return _beyond_time(layer.axis, rank)


def _on_its_new_axis(layer, args, rank):
    return _beyond_time(layer.axis, rank + 1)


def _with_one_constant(layer, args, rank):
    return np.ndim(layer.scale) == np.ndim(layer.offset) == 0


def _is_constant_in_time(value, rank):
    shape = tuple(np.shape(value))
    missing = rank - len(shape)
    return missing >= 0 and ((1,) * missing + shape)[: TIME + 1] == (1, 1)


def _elementwise(layer, args, rank):
    """Of sequences of equal rank, and constants that know of no time."""
    if args and isinstance(args[0], (list, tuple)):
        args = args[0]  # as the merging layers take them
    for value in args:
        if isinstance(value, keras.KerasTensor):
            if value.ndim != rank:
                return False
        elif not _is_constant_in_time(value, rank):
            return False
    return True


def _concatenated(layer, args, rank):
    return _elementwise(layer, args, rank) and _on_its_axes(layer, args, rank)


def _pointwise(layer, args, rank):
    """A convolution that is one step long."""
    has_one_step = layer.kernel_size[0] == layer.strides[0] == 1
    time_is_first = layer.data_format == "channels_last"
    return has_one_step and time_is_first and _on_features(layer, args, rank)


def _with_weights_for_all_steps(layer, args, rank):
    return TIME in (layer.shared_axes or ())


def _without_memory(layer, args, rank):
    inner = [layer.layer]
    for inner_layer in inner:
        inner += getattr(inner_layer, "layers", [])
        if hasattr(inner_layer, "layer"):
            inner.append(inner_layer.layer)
    return not any(getattr(member, "stateful", False) for member in inner)


def _keeps_all_steps(layer, args, rank):
    """x[:, :, ...] or x[..., 0], which leave the time as it is."""
    _, key = args
    if not isinstance(key, (tuple, list)):
        return False
    key = tuple(key)  # a loaded model has a list
    if key[0] is Ellipsis:
        indexed_axes = sum(index is not None for index in key[1:])
        return rank - indexed_axes > TIME
    return key[: TIME + 1] == (slice(None), slice(None))


# Versions of Keras before 3.9 have no RMSNormalization.
_RMSNormalization = getattr(
    keras.layers, "RMSNormalization", keras.layers.LayerNormalization
)
_TABLE = {
    _always: [
        keras.layers.ActivityRegularization,
        keras.layers.AlphaDropout,
        keras.layers.Dropout,
        keras.layers.ELU,
        keras.layers.Embedding,
        keras.layers.GaussianDropout,
        keras.layers.GaussianNoise,
        keras.layers.Identity,
        keras.layers.LeakyReLU,
        keras.layers.ReLU,
        keras.layers.SpatialDropout1D,
        keras.layers.SpatialDropout2D,
        keras.layers.SpatialDropout3D,
    ],
    _on_features: [
        keras.layers.Activation,
        keras.layers.Dense,
        keras.layers.Masking,
        ours.LinearResidual,
        ours.ResidualDense,
        ours.ResidualDenseStack,
    ],
    _on_its_axes: [
        keras.layers.BatchNormalization,
        keras.layers.LayerNormalization,
        keras.layers.Normalization,
        _RMSNormalization,
        keras.layers.Softmax,
        keras.layers.UnitNormalization,
    ],
    _elementwise: [
        keras.layers.Add,
        keras.layers.Average,
        keras.layers.Maximum,
        keras.layers.Minimum,
        keras.layers.Multiply,
        keras.layers.Subtract,
    ],
    _concatenated: [keras.layers.Concatenate],
    _pointwise: [
        keras.layers.Conv1D,
        keras.layers.Conv2D,
        keras.layers.Conv3D,
    ],
    _with_one_constant: [keras.layers.Rescaling],
    _with_weights_for_all_steps: [keras.layers.PReLU],
    _without_memory: [keras.layers.TimeDistributed],
}
LAYERS = {layer: rule for rule, layers in _TABLE.items() for layer in layers}

# Operations are listed by class name, because the classes behind `keras.ops`
# are not public.
_OPERATION_TABLE = {
    _elementwise: """
        Absolute Add Cast Celu Cos Divide Elu Equal Erf Exp Expm1 Floor
        FloorDivide Gelu Greater GreaterEqual HardSigmoid HardSilu HardTanh
        Isfinite Isnan LeakyRelu Less LessEqual Log Log1p LogSigmoid
        LogicalAnd LogicalNot LogicalOr Maximum Minimum Mod Multiply Negative
        NotEqual OnesLike Power Reciprocal Relu Relu6 Rsqrt Selu Sigmoid Sign
        Silu Sin Softplus Softsign Sqrt Square StopGradient Subtract Tanh
        TrueDivide Where ZerosLike
    """,
    _on_its_axes: """
        All Any Argmax Argmin LogSoftmax Logsumexp Max Mean Min Prod Softmax
        Squeeze Std Sum Var
    """,
    _on_its_new_axis: "ExpandDims OneHot",
    _concatenated: "Concatenate",
    _keeps_all_steps: "GetItem",
}
OPERATIONS = {
    name: rule
    for rule, names in _OPERATION_TABLE.items()
    for name in names.split()
}


def check_example_steps(layer, args, kwargs):
    """Refuses a layer of `stepwise` that some steps show to be none."""
    rng = np.random.default_rng(0)
    examples: dict[int, np.ndarray] = {}

    def call(steps):
        def example(value):
            if not isinstance(value, keras.KerasTensor):
                return value
            array = examples.setdefault(id(value), _example(rng, value))
            return array[:, steps]

        a, k = keras.tree.map_structure(example, (args, kwargs))
        return [
            ops.convert_to_numpy(y) for y in keras.tree.flatten(layer(*a, **k))
        ]

    try:
        together = call(slice(0, STEPS))
        apart = [call(slice(t, t + 1)) for t in range(STEPS)]
    except Exception:  # of a layer that wants other values: its user knows
        return
    for y, *steps in zip(together, *apart, strict=True):
        joined = np.concatenate(steps, axis=1)
        if joined.shape != y.shape or not np.allclose(
            y, joined, rtol=1e-3, atol=1e-5
        ):
            raise refusal(
                layer,
                "`stepwise` names it, but its output at a step depends on "
                "other steps",
            )


def _example(rng, tensor):
    shape = (2, STEPS, *(size or 2 for size in tensor.shape[2:]))
    if keras.backend.is_float_dtype(tensor.dtype):
        return rng.normal(size=shape).astype("float32")
    return rng.integers(2, size=shape).astype(tensor.dtype)


def refusal(layer, reason):
    return ValueError(
        f"A model with the layer {layer.name!r} cannot run step by step: "
        f"{reason}."
    )


def tensors_of(nested):
    flat = keras.tree.flatten(nested)
    return [leaf for leaf in flat if isinstance(leaf, keras.KerasTensor)]
