"""Conversion of SimpleRNN to RIN and back, for layers and for their cells."""

import inspect

import keras
import numpy as np

from keras_rin.constraints import Orthogonal
from keras_rin.initializers import Offset
from keras_rin.regularizers import IdentityOffsetL2

NO_COUNTERPART = object()


def convert_layer(source, source_class, target_class, overrides):
    """A `target_class` with the outputs of `source`, a layer or a cell.

    U = V - I if `source` is of Keras, else V = U + I

    `source` must not be of a subclass of `source_class`, which could compute
    something else. `overrides` are options of the new layer.
    """
    if type(source) is not source_class:
        raise ValueError(
            f"The layer to convert must be a {source_class.__name__}. "
            f"Received: {source!r}"
        )
    cell = getattr(source, "cell", source)
    if not (source.built and cell.built):
        raise ValueError(
            f"{source.name} has no weights yet: build it, or call it on data, "
            "before converting it."
        )
    to_offset = not hasattr(source, "effective_recurrent_kernel")
    of_keras = source_class if to_offset else target_class
    options = _converted_options(source, cell, of_keras, to_offset)
    options = {**options, **overrides}
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
    layer = target_class(**options)
    layer.activity_regularizer = keras.regularizers.get(activity_regularizer)
    _copy_variables(source, cell, layer, to_offset)
    return layer


def _converted_options(source, cell, of_keras, to_offset):
    """The options of the new layer, which are those of the layer of Keras."""
    names = [*inspect.signature(of_keras.__init__).parameters][1:-1]
    names += ["activity_regularizer", "trainable"]
    names += [] if source is cell else ["zero_output_for_mask"]
    options = {
        name: getattr(source if hasattr(source, name) else cell, name)
        for name in names
    }
    initializer = options.pop("recurrent_initializer")
    if to_offset:
        options["recurrent_initializer"] = Offset(initializer)
    elif type(initializer) is Offset:  # Otherwise it is known of U only.
        options["recurrent_initializer"] = initializer.initializer
    return {
        **options,
        "dtype": source.dtype_policy,
        "recurrent_regularizer": _converted_regularizer(
            cell.recurrent_regularizer, to_offset
        ),
        "recurrent_constraint": _converted_constraint(
            cell.recurrent_constraint, to_offset
        ),
        "recurrent_dropout": NO_COUNTERPART if cell.recurrent_dropout else 0,
    }


def _converted_regularizer(regularizer, to_offset):
    classes = IdentityOffsetL2, keras.regularizers.L2
    source, target = classes if to_offset else reversed(classes)
    if type(regularizer) is source:
        return target(regularizer.l2)
    return None if regularizer is None else NO_COUNTERPART


def _converted_constraint(constraint, to_offset):
    if type(constraint) is Orthogonal and constraint.offset is not to_offset:
        return Orthogonal(offset=to_offset)
    return None if constraint is None else NO_COUNTERPART


def _copy_variables(source, cell, layer, to_offset):
    features = cell.kernel.shape[0]
    if source is cell:
        layer.build((None, features))
        new_cell = layer
    else:
        states = source.states if source.stateful and layer.stateful else []
        batch = states[0].shape[0] if states else None
        layer.build((batch, None, features))
        for new_state, state in zip(layer.states or [], states, strict=False):
            new_state.assign(state)
        new_cell = layer.cell
        new_cell.trainable = cell.trainable
    kernel, matrix, *bias = cell.get_weights()
    identity, matrix = np.eye(len(matrix)), np.asarray(matrix, "float64")
    new_matrix = matrix - identity if to_offset else matrix + identity
    new_cell.set_weights([kernel, new_matrix, *bias])
