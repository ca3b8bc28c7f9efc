"""Conversion of SimpleRNN to RIN and back, for layers and for their cells."""

import keras
import numpy as np

from keras_rin.constraints import Orthogonal
from keras_rin.initializers import Offset
from keras_rin.regularizers import IdentityOffsetL2

NO_COUNTERPART = object()
OF_THE_CELL = (
    "units",
    "activation",
    "use_bias",
    "kernel_initializer",
    "bias_initializer",
    "kernel_regularizer",
    "bias_regularizer",
    "kernel_constraint",
    "bias_constraint",
    "dropout",
    "seed",
)
OF_THE_SEQUENCE = (
    "return_sequences",
    "return_state",
    "go_backwards",
    "stateful",
    "unroll",
    "zero_output_for_mask",
)


def converted(source, target, expected, to_offset, replaced):
    """A `target` of the outputs of `source`, with U = V - I or V = U + I.

    `source` must be of the class `expected`, and not of a subclass, which
    could compute something else.
    """
    if type(source) is not expected:
        raise ValueError(
            f"The layer to convert must be a {expected.__name__}. "
            f"Received: {source!r}"
        )
    cell = getattr(source, "cell", source)
    if not (source.built and cell.built):
        raise ValueError(
            f"{source.name} has no weights yet: build it, or call it on data, "
            "before converting it."
        )
    for name in replaced.keys() & {"units", "use_bias"}:
        raise ValueError(
            f"`{name}` cannot be replaced, because the weights of "
            f"{source.name} are copied. Received: {name}={replaced[name]!r}"
        )
    options = _converted_options(source, cell, to_offset)
    options = {**options, **replaced}
    for name, value in options.items():
        if value is NO_COUNTERPART:
            raise ValueError(
                f"`{name}` of {source.name} acts on the effective recurrent "
                "matrix V of a SimpleRNN or on the offset U = V - I of a RIN, "
                f"and has no exact counterpart: pass `{name}=` for the new "
                f"layer. Received: {name}={getattr(cell, name)!r}"
            )
    # SimpleRNN does not pass `activity_regularizer` to the base class.
    activity_regularizer = options.pop("activity_regularizer")
    layer = target(**options)
    layer.activity_regularizer = keras.regularizers.get(activity_regularizer)
    _copy_variables(source, cell, layer, -1 if to_offset else 1)
    return layer


def _converted_options(source, cell, to_offset):
    options = {name: getattr(cell, name) for name in OF_THE_CELL}
    if source is not cell:
        options |= {name: getattr(source, name) for name in OF_THE_SEQUENCE}
    for name in ("dtype_policy", "trainable", "activity_regularizer"):
        options[name.removesuffix("_policy")] = getattr(source, name)
    if initializer := _converted_initializer(
        cell.recurrent_initializer, to_offset
    ):
        options["recurrent_initializer"] = initializer
    return {
        **options,
        "recurrent_regularizer": _converted_regularizer(cell, to_offset),
        "recurrent_constraint": _converted_constraint(cell, to_offset),
        "recurrent_dropout": NO_COUNTERPART if cell.recurrent_dropout else 0,
    }


def _converted_initializer(initializer, to_offset):
    """An initializer of the same V; `None` if only that of U is known."""
    if to_offset:
        return Offset(initializer)
    return initializer.initializer if type(initializer) is Offset else None


def _converted_regularizer(cell, to_offset):
    regularizer = cell.recurrent_regularizer
    pair = IdentityOffsetL2, keras.regularizers.L2
    old, new = pair if to_offset else pair[::-1]
    if regularizer is None:
        return None
    return new(regularizer.l2) if type(regularizer) is old else NO_COUNTERPART


def _converted_constraint(cell, to_offset):
    constraint = cell.recurrent_constraint
    if constraint is None:
        return None
    if type(constraint) is Orthogonal and constraint.offset is not to_offset:
        return Orthogonal(offset=to_offset)
    return NO_COUNTERPART


def _copy_variables(source, cell, layer, sign):
    features = cell.kernel.shape[0]
    if source is cell:
        layer.build((None, features))
        new_cell = layer
    else:
        states = source.states if source.stateful and layer.stateful else []
        batch = states[0].shape[0] if states else None
        layer.build((batch, None, features))
        for new, old in zip(layer.states or [], states, strict=False):
            new.assign(old)
        new_cell = layer.cell
        new_cell.trainable = cell.trainable
    kernel, recurrent, *bias = cell.get_weights()
    identity = np.eye(len(recurrent))
    converted_kernel = np.asarray(recurrent, "float64") + sign * identity
    new_cell.set_weights([kernel, converted_kernel, *bias])
