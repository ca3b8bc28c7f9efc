"""Constraints on recurrent matrices."""

import keras
from keras import ops

from keras_rin import arguments


@keras.saving.register_keras_serializable(package="keras_rin")
class Orthogonal(keras.constraints.Constraint):
    """Constrains a matrix to be orthogonal.

    W <- V Z^T, where W = V S Z^T is the singular value decomposition

    After every update, the weight is replaced by the nearest orthogonal
    matrix. As a `recurrent_constraint`, it keeps the recurrent matrix
    orthogonal throughout training and not only at initialization.

    The decomposition is not computed. The Newton-Schulz iteration
    X <- X (3 I - X^T X) / 2 has the same limit, consists of matrix products,
    and takes about five steps if the weight is close to orthogonal after the
    update.

    If the matrix is singular, the nearest orthogonal matrix is not unique,
    and the result can remain singular. NaN is propagated. On a GPU that
    computes matrix products in TF32, the result is orthogonal to that
    precision.

    Args:
        offset: Boolean, whether the weight is the offset U from the identity,
            as in `keras_rin.layers.RIN`; U + I is then made orthogonal.
            Defaults to `False`.
        gates: Positive integer, number of square matrices in the weight, each
            of which is made orthogonal: 4 for an LSTM, 3 for a GRU. Defaults
            to 1.

    Raises:
        ValueError: If `gates` is not a positive integer, if the shape of the
            weight is not `(units, gates * units)`, or if its dtype is not a
            floating one.

    Example:

    >>> constraint = keras_rin.constraints.Orthogonal()
    >>> w = keras.ops.convert_to_numpy(constraint([[3.0, 0.0], [0.0, -0.1]]))
    >>> np.allclose(w, [[1, 0], [0, -1]], atol=1e-5)
    True

    Reference:
        Higham, 2008, Functions of matrices, chapter 8, for the iteration.
    """

    def __init__(self, offset: bool = False, gates: int = 1):
        self.offset = bool(offset)
        self.gates = arguments.integer("gates", gates)

    def __call__(self, w):
        w = ops.convert_to_tensor(w)
        units = self._units(tuple(w.shape))
        dtype = keras.backend.standardize_dtype(w.dtype)
        if "float" not in dtype:
            raise ValueError(
                "Orthogonal needs a weight of a floating dtype. "
                f"Received: dtype={dtype}"
            )
        wide = dtype if dtype == "float64" else "float32"
        identity = ops.eye(units, dtype=wide)
        x = ops.reshape(ops.cast(w, wide), (units, self.gates, units))
        x = ops.transpose(x, (1, 0, 2))
        x = x + identity if self.offset else x
        x = _nearest_orthogonal(x, identity)
        x = x - identity if self.offset else x
        x = ops.reshape(ops.transpose(x, (1, 0, 2)), w.shape)
        return ops.cast(x, dtype)

    def _units(self, shape):
        if len(shape) != 2 or shape[1] != self.gates * shape[0]:
            raise ValueError(
                f"Orthogonal(gates={self.gates}) needs a weight of shape "
                "(units, gates * units): the recurrent kernel of a SimpleRNN "
                "or a RIN has gates=1, of a GRU 3, of an LSTM 4. "
                f"Received: shape={shape}"
            )
        return shape[0]

    def get_config(self):
        return {"offset": self.offset, "gates": self.gates}


def _nearest_orthogonal(x, identity):
    def excess(x):
        return ops.matmul(ops.transpose(x, (0, 2, 1)), x) - identity

    def far(x, e):
        return ops.max(_norm(e)) > 0.25

    def step(x, e):
        x = x - ops.matmul(x, e) / 2
        return x, excess(x)

    # Within this distance the iteration converges. From further away it needs
    # a spectral norm below sqrt(3), which the Frobenius norm bounds.
    largest = ops.max(ops.abs(x), axis=(1, 2), keepdims=True)
    # Squares stay in range; twice, for 1 / 3e38 is 0 to many processors.
    root = ops.sqrt(ops.where(largest > 0, largest, 1))
    shrunk = x / root / root
    shrunk = shrunk / ops.maximum(_norm(shrunk), keras.config.epsilon())
    x = ops.where(_norm(excess(x)) < 1, x, shrunk)
    x, e = ops.while_loop(far, step, (x, excess(x)), maximum_iterations=100)
    # Convergence is quadratic: 0.25, 5e-2, 2e-3, 2e-6, 2e-12, 0.
    for _ in range(5):
        x, e = step(x, e)
    return x


def _norm(x):
    return ops.sqrt(ops.sum(ops.square(x), axis=(1, 2), keepdims=True))
