"""Helpers of the initializers of square matrices."""

import keras
from keras import ops


def side(initializer, shape):
    if len(shape) != 2 or shape[0] != shape[1]:
        name = type(initializer).__name__
        raise ValueError(
            f"{name} initializes square matrices only, such as recurrent "
            f"kernels. Received: shape={tuple(shape)}"
            f"{gates_hint(shape, f'{name}(...)')}"
        )
    return shape[0]


def gates_hint(shape, inner):
    """What to pass where the shape is that of a gated recurrent kernel."""
    for layer, gates in (("LSTM", 4), ("GRU", 3)):
        if len(shape) == 2 and shape[1] == gates * shape[0]:
            return (
                f". For the recurrent kernel of a {layer} pass "
                f"PerGate({inner}, gates={gates})."
            )
    return ""


def shift(initializer, shape, k, dtype):
    units = side(initializer, shape)
    return ops.eye(units, k=k, dtype=dtype or keras.config.floatx())
