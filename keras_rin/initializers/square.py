"""Square matrices, for recurrent kernels alone."""

import math

import keras
from keras import ops

LARGEST = {
    "float16": 65504.0,
    "bfloat16": 3.3e38,
    "float32": 3.4e38,
    "float64": math.inf,
}


def side(initializer, shape):
    if len(shape) != 2 or shape[0] != shape[1] or not shape[0]:
        raise ValueError(
            f"{type(initializer).__name__} starts square matrices alone, such "
            f"as recurrent kernels. Received: shape={tuple(shape)}"
        )
    return shape[0]


def shift(initializer, shape, k, dtype, gain=None):
    """Ones on a diagonal, or the number that the initializer has as `gain`."""
    units = side(initializer, shape)
    dtype = keras.backend.standardize_dtype(dtype)
    ones = ops.eye(units, k=k, dtype=dtype)
    return ones if gain is None else weight(initializer, gain, dtype) * ones


def weight(initializer, gain, dtype):
    """A number of the initializer, which times 0 must be 0 in this dtype."""
    value = getattr(initializer, gain)
    if abs(value) > LARGEST.get(dtype, -1):
        raise ValueError(
            f"`{gain}` of {type(initializer).__name__} must be within the "
            "range of a floating dtype. "
            f"Received: {gain}={value}, dtype={dtype}"
        )
    return value
