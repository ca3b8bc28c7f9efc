"""Helpers of the initializers of square matrices."""

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
        name = type(initializer).__name__
        raise ValueError(
            f"{name} initializes square matrices only, such as recurrent "
            f"kernels. Received: shape={tuple(shape)}"
            f"{gates_hint(shape, f'{name}(...)')}"
        )
    return shape[0]


def gates_hint(shape, inner):
    """The advice for the shape of a gated recurrent kernel."""
    for layer, gates in (("an LSTM", 4), ("a GRU", 3)):
        if len(shape) == 2 and shape[0] and shape[1] == gates * shape[0]:
            return (
                f". For the recurrent kernel of {layer} pass "
                f"PerGate({inner}, gates={gates})."
            )
    return ""


def diagonal(initializer, shape, dtype, k=0, gain=None):
    """Ones on the k-th diagonal, or the initializer's attribute `gain`."""
    units = side(initializer, shape)
    dtype = keras.backend.standardize_dtype(dtype)
    ones = ops.eye(units, k=k, dtype=dtype)
    return ones if gain is None else weight(initializer, gain, dtype) * ones


def check_range(initializer, dtype):
    """Raises an error if a number within is beyond the range of the dtype."""
    for name, value in getattr(initializer, "__dict__", {}).items():
        if isinstance(value, float):
            weight(initializer, name, dtype)
        for inner in keras.tree.flatten(value):
            if isinstance(inner, keras.initializers.Initializer):
                check_range(inner, dtype)


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
