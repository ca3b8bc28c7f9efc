"""Initializers of weights of half precision, computed in float32."""

import functools

import keras
from keras import ops

from keras_rin.initializers import _square

HALF = ("bfloat16", "float16")


def draw(initializer, shape, dtype):
    """The values of an initializer, computed in `compute_dtype`."""
    dtype = keras.backend.standardize_dtype(dtype)
    wide = compute_dtype(initializer, dtype)
    return ops.cast(initializer(shape, dtype=wide), dtype)


def compute_dtype(initializer, dtype):
    """float32 for a half precision, any other dtype itself.

    Neither TensorFlow nor JAX decomposes a matrix of bfloat16, as an
    orthogonal initializer does, and V - I would lose digits in it.
    """
    if dtype not in HALF:
        return dtype
    # The cast would turn a number beyond the range into infinity.
    _square.check_range(initializer, dtype)
    return "float32"


def in_float32_if_orthogonal(initializer):
    """The initializer for `add_weight`, one that computes in float32 if needed.

    Only an orthogonal initializer needs it; all others draw as in Keras.
    """
    if isinstance(initializer, keras.initializers.Orthogonal):
        return functools.partial(draw, initializer)
    return initializer
