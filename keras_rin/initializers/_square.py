"""Square matrices of initializers: their shape, diagonals and numbers."""

import math

import keras
from keras import ops

# A number beyond these would be infinite, and infinity times 0 is NaN.
LARGEST = {
    "float16": 65504.0,
    "bfloat16": 3.3e38,
    "float32": 3.4e38,
    "float64": math.inf,
}


def checked_units(initializer, shape):
    """The number of units of a square matrix; ValueError for another shape."""
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


def diagonal(initializer, shape, dtype, k=0, attribute=None):
    """A matrix with the initializer's `attribute`, or 1, on diagonal k."""
    units = checked_units(initializer, shape)
    dtype = keras.backend.standardize_dtype(dtype)
    ones = ops.eye(units, k=k, dtype=dtype)
    if attribute is None:
        return ones
    return checked_number(initializer, attribute, dtype) * ones


def check_range(initializer, dtype):
    """Raises an error if a number within is beyond the range of the dtype."""
    for name, value in getattr(initializer, "__dict__", {}).items():
        if isinstance(value, float):
            checked_number(initializer, name, dtype)
        for inner in keras.tree.flatten(value):
            if isinstance(inner, keras.initializers.Initializer):
                check_range(inner, dtype)


def checked_number(initializer, attribute, dtype):
    """A number of the initializer; ValueError if infinite in this dtype."""
    value = getattr(initializer, attribute)
    if abs(value) > LARGEST.get(dtype, -1):
        raise ValueError(
            f"`{attribute}` of {type(initializer).__name__} must be within the "
            "range of a floating dtype. "
            f"Received: {attribute}={value}, dtype={dtype}"
        )
    return value
