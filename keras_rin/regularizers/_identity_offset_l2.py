"""Regularizers of the distance of a matrix from the identity."""

import keras
from keras import ops

from keras_rin import _arguments


@keras.saving.register_keras_serializable(package="keras_rin")
class IdentityOffsetL2(keras.regularizers.Regularizer):
    """L2 regularizer of the offset of a square matrix from the identity.

    penalty = l2 * sum((V - I)^2)

    Use it in layers that store the effective matrix V, for example as the
    `recurrent_regularizer` of `keras.layers.SimpleRNN` or the
    `kernel_regularizer` of a square `keras.layers.Dense`. In layers that store
    the offset U, such as `keras_rin.layers.RIN`, use `keras.regularizers.L2`,
    which gives the same penalty: IdentityOffsetL2(V = U + I) = L2(U).

    Args:
        l2: Finite number, at least 0: regularization strength. Defaults to
            0.01.

    Raises:
        ValueError: If the matrix is not square and of a floating dtype.

    Example:

    >>> regularizer = keras_rin.regularizers.IdentityOffsetL2(0.1)
    >>> float(regularizer(keras.ops.eye(3)))
    0.0
    """

    def __init__(self, l2: float = 0.01):
        self.l2 = _arguments.finite_number("l2", l2, at_least=0)

    def __call__(self, x):
        x = ops.convert_to_tensor(x)
        dtype = keras.backend.standardize_dtype(x.dtype)
        square = len(x.shape) == 2 and x.shape[0] == x.shape[1]
        if not square or "float" not in dtype:
            raise ValueError(
                "IdentityOffsetL2 needs a square matrix of a floating dtype, "
                "such as the recurrent kernel of a SimpleRNN. "
                f"Received: shape={tuple(x.shape)}, dtype={dtype}"
            )
        offset = x - ops.eye(x.shape[0], dtype=x.dtype)
        return self.l2 * ops.sum(ops.square(offset))

    def get_config(self):
        return {"l2": self.l2}
