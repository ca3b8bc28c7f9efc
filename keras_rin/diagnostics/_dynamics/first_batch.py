"""What the recurrent layers of a model read of a batch."""

import keras
import numpy as np
from keras import ops

from keras_rin import _arguments
from keras_rin._layer_walk.functional_calls import order_by_inputs
from keras_rin._layer_walk.layers import is_functional
from keras_rin._layer_walk.recurrent_inputs import recurrent_inputs
from keras_rin.diagnostics._built_cell import has_built_cell


def first_rows(name, structure, count=None):
    """An array, or a list or dict of arrays, up to a row, in NumPy."""

    def rows(array):
        if not hasattr(array, "shape"):
            raise ValueError(
                f"`{name}` must be an array, or a list or dict of arrays. "
                f"Received: {type(array).__name__}"
            )
        array = ops.convert_to_numpy(array[:count])
        _arguments.finite_array(name, array)
        return array

    return keras.tree.map_structure(rows, structure)


def first_inputs(model, x):
    """Pairs of a recurrent layer with weights and a function of nothing.

    The function returns what the layer reads in its first call, in float32
    and with the mask, when `model` reads the arrays x.
    """
    if not is_functional(model):
        raise ValueError(
            "`x` needs a Sequential or functional model that is built: begin "
            "it with `keras.Input`. "
            f"Received: a model of type {type(model).__name__}"
        )
    arrays = order_by_inputs(model.inputs, x)
    first_calls: dict = {}
    for layer, batches in recurrent_inputs(model, lambda: [(arrays, None)]):
        if layer.weights and has_built_cell(layer):
            first_calls.setdefault(id(layer), (layer, batches))
    return [
        (layer, lambda batches=batches: _only_batch(batches()))
        for layer, batches in first_calls.values()
    ]


def _only_batch(batches):
    """The inputs in float32 and their mask, of ones where it is `None`."""
    ((x, mask),) = batches
    x = ops.convert_to_numpy(ops.cast(x, "float32"))
    if mask is None:
        mask = np.ones(x.shape[:2], bool)
    return x, ops.convert_to_numpy(mask)
