"""Initializers of weights of half precision, computed in float32.

Neither TensorFlow nor JAX decomposes a matrix of bfloat16, as an orthogonal
initializer does, and V - I would lose digits in it.
"""

import keras
from keras import ops


def draw(initializer, shape, dtype, shift=0.0):
    """The values of an initializer minus `shift`, both at least in float32."""
    dtype = keras.backend.standardize_dtype(dtype)
    wide = "float32" if dtype in ("bfloat16", "float16") else dtype
    values = initializer(shape, dtype=wide) - ops.cast(shift, wide)
    return ops.cast(values, dtype)
