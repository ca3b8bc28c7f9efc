"""The cell of a recurrent layer, with its weights."""

import keras
import numpy as np
from keras import ops

from keras_rin._layer_walk.layers import cell_of
from keras_rin._layer_walk.layers import is_recurrent


def built_cell(layer):
    """The one cell of a recurrent layer, which has its weights."""
    if not isinstance(layer, keras.layers.Layer):
        raise ValueError(
            "`layer` must be a recurrent layer or cell of Keras. "
            f"Received: layer={layer!r}"
        )
    cell = cell_of(layer)
    if not is_recurrent(cell):
        raise ValueError(
            "`layer` must have one recurrent cell: pass a layer of a stack, "
            "or one direction of a Bidirectional, by itself. "
            f"Received: layer={layer}"
        )
    sizes = keras.tree.flatten(cell.state_size)
    if not all(isinstance(size, int) and size > 0 for size in sizes):
        raise ValueError(
            "`layer` must have states that are vectors, unlike those of a "
            f"convolutional cell. Received: layer={layer}"
        )
    if not cell.built:
        raise ValueError(
            f"{layer.name} has no weights yet: build it, or call it on data. "
            f"Received: layer={layer}"
        )
    return cell


def has_built_cell(layer):
    """Whether a layer has what `built_cell` asks for."""
    try:
        return bool(built_cell(layer))
    except ValueError:
        return False


def check_weights(cell):
    """Raises an error if a weight is NaN or infinite."""
    for weight in cell.weights:
        values = float64(weight.value)
        if not np.isfinite(values).all():
            raise ValueError(
                f"The weights of {cell.name} must be finite. Received: "
                f"{weight.path} with NaN or infinity"
            )


def float64(tensor):
    return np.asarray(ops.convert_to_numpy(tensor), "float64")
