"""Square matrices, for recurrent kernels alone."""

import keras
from keras import ops


def side(initializer, shape):
    if len(shape) != 2 or shape[0] != shape[1]:
        raise ValueError(
            f"{type(initializer).__name__} starts square matrices alone, such "
            f"as recurrent kernels. Received: shape={tuple(shape)}"
        )
    return shape[0]


def shift(initializer, shape, k, dtype):
    units = side(initializer, shape)
    return ops.eye(units, k=k, dtype=dtype or keras.config.floatx())
