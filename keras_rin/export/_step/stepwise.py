"""Which layers answer each time step from that step alone."""

import keras
import numpy as np

from keras_rin import layers as rin_layers
from keras_rin._layer_walk.layers import layers_within

TIME = 1  # the axis of time, after that of the batch


def is_stepwise(layer, args, rank):
    """Whether the output of a layer or operation depends on no other step.

    Decided by what a layer is, not by what it answers to some steps. Each Keras
    tensor in `args` is a sequence `(batch, time, ...)` of `rank` axes.
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
    known = (None, *vars(keras.activations).values())
    return any(activation is function for function in known)


def _beyond_time(axes, rank):
    """Whether there are axes, all of them within a single time step."""
    return axes is not None and all(np.atleast_1d(axes) % rank > TIME)


def _on_its_axes(layer, args, rank):
    return _beyond_time(layer.axis, rank)


def _on_its_new_axis(layer, args, rank):
    return _beyond_time(layer.axis, rank + 1)


def _with_one_constant(layer, args, rank):
    return np.ndim(layer.scale) == np.ndim(layer.offset) == 0


def _is_constant_in_time(value, rank):
    shape = np.shape(value)
    missing = rank - len(shape)
    return missing >= 0 and ((1,) * missing + shape)[: TIME + 1] == (1, 1)


def _elementwise(layer, args, rank):
    """Of sequences of equal rank, and constants that know of no time."""
    if args and isinstance(args[0], (list, tuple)):
        args = args[0]  # as the merging layers take them
    return all(
        value.ndim == rank
        if isinstance(value, keras.KerasTensor)
        else _is_constant_in_time(value, rank)
        for value in args
    )


def _concatenated(layer, args, rank):
    return _elementwise(layer, args, rank) and _on_its_axes(layer, args, rank)


def is_causal(layer):
    """Whether a layer is a convolution with earlier steps, and no others."""
    is_convolution = type(layer) is keras.layers.Conv1D and layer.groups == 1
    has_earlier = is_convolution and layer.kernel_size[0] > 1
    return has_earlier and layer.padding == "causal"


def _convolution(layer, args, rank):
    """One that is one step long, or causal."""
    has_one_step = layer.kernel_size[0] == layer.strides[0] == 1
    time_is_first = layer.data_format == "channels_last"
    is_known = has_one_step or is_causal(layer)
    return is_known and time_is_first and _on_features(layer, args, rank)


def _with_weights_for_all_steps(layer, args, rank):
    return TIME in (layer.shared_axes or ())


def _without_memory(layer, args, rank):
    return not any(
        getattr(inner, "stateful", False) for inner in layers_within(layer)
    )


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


def _table(names_by_rule):
    return {
        name: rule
        for rule, names in names_by_rule.items()
        for name in names.split()
    }


# Of Keras, which may lack some of them, and of this package.
LAYERS = {
    getattr(rin_layers, name, None) or getattr(keras.layers, name, None): rule
    for name, rule in _table(
        {
            _always: """
                ActivityRegularization AlphaDropout Dropout ELU Embedding
                GaussianDropout GaussianNoise Identity LeakyReLU ReLU
                SpatialDropout1D SpatialDropout2D SpatialDropout3D
            """,
            _on_features: """
                Activation Dense Masking LinearResidual ResidualDense
            """,
            _on_its_axes: """
                BatchNormalization LayerNormalization Normalization
                RMSNormalization Softmax UnitNormalization
            """,
            _elementwise: "Add Average Maximum Minimum Multiply Subtract",
            _concatenated: "Concatenate",
            _convolution: "Conv1D Conv2D Conv3D",
            _with_one_constant: "Rescaling",
            _with_weights_for_all_steps: "PReLU",
            _without_memory: "TimeDistributed",
        }
    ).items()
}

# By class name, because the classes behind `keras.ops` are not public.
OPERATIONS = _table(
    {
        _elementwise: """
            Absolute Add Cast Celu Cos Divide Elu Equal Erf Exp Expm1 Floor
            FloorDivide Gelu Greater GreaterEqual HardSigmoid HardSilu HardTanh
            Isfinite Isnan LeakyRelu Less LessEqual Log Log1p LogSigmoid
            LogicalAnd LogicalNot LogicalOr Maximum Minimum Mod Multiply
            Negative NotEqual OnesLike Power Reciprocal Relu Relu6 Rsqrt Selu
            Sigmoid Sign Silu Sin Softplus Softsign Sqrt Square StopGradient
            Subtract Tanh TrueDivide Where ZerosLike
        """,
        _on_its_axes: """
            All Any Argmax Argmin LogSoftmax Logsumexp Max Mean Min Prod
            Softmax Squeeze Std Sum Var
        """,
        _on_its_new_axis: "ExpandDims OneHot",
        _concatenated: "Concatenate",
        _keeps_all_steps: "GetItem",
    }
)


def refuse(layer, reasons, cannot="cannot run step by step"):
    """Raises the first of the reasons that holds."""
    for reason, holds in reasons.items():
        if holds:
            raise ValueError(f"The layer {layer.name!r} {cannot}: {reason}.")


def tensors_of(nested):
    flat = keras.tree.flatten(nested)
    return [leaf for leaf in flat if isinstance(leaf, keras.KerasTensor)]
