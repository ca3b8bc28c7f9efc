"""The base class of initializers of V, and how matrices are drawn."""

import keras
from keras import ops


class EffectiveInitializer(keras.initializers.Initializer):
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


def draw(initializer, shape, dtype, shift=0.0):
    """The values of an initializer minus `shift`, both at least in float32.

    Neither TensorFlow nor JAX decomposes a matrix of bfloat16, as an orthogonal
    initializer does, and V - I would lose digits in it.
    """
    dtype = keras.backend.standardize_dtype(dtype)
    wide = "float32" if dtype in ("bfloat16", "float16") else dtype
    values = initializer(shape, dtype=wide) - ops.cast(shift, wide)
    return ops.cast(values, dtype)
