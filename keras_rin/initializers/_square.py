"""Initializers of square matrices: their shape, and their diagonals."""

import keras
from keras import ops


class Effective(keras.initializers.Initializer):
    """Base class of initializers of V. Their attributes are their arguments."""

    def get_config(self):
        return dict(vars(self))


def checked_units(initializer, shape):
    """The number of units of a square matrix; ValueError for another shape."""
    if len(shape) != 2 or shape[0] != shape[1] or not shape[0]:
        name = type(initializer).__name__
        raise ValueError(
            f"{name} initializes square matrices only, such as recurrent "
            "kernels: for that of an LSTM or a GRU pass "
            f"PerGate({name}(...), gates=4) or gates=3. "
            f"Received: shape={tuple(shape)}"
        )
    return shape[0]


def diagonal(initializer, shape, dtype, k=0):
    """A matrix with ones on diagonal k."""
    units = checked_units(initializer, shape)
    return ops.eye(units, k=k, dtype=keras.backend.standardize_dtype(dtype))
