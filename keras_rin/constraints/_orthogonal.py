"""Constraints on recurrent matrices."""

import keras
from keras import ops

from keras_rin import _arguments


@keras.saving.register_keras_serializable(package="keras_rin")
class Orthogonal(keras.constraints.Constraint):
    """Constrains a matrix to be orthogonal.

    V <- P Q^T, where V = P S Q^T is the singular value decomposition

    After every update, the weight is replaced by the nearest orthogonal
    matrix. As a `recurrent_constraint`, it keeps the recurrent matrix
    orthogonal throughout training and not only at initialization.

    Close to an orthogonal matrix, as after an update, the decomposition is not
    computed: the Newton-Schulz iteration X <- X (3 I - X^T X) / 2 has the same
    limit and consists of matrix products, five or more of these steps.

    A finite weight of any scale becomes orthogonal. If the matrix is singular,
    the result is one of several nearest matrices. Beyond a condition number of
    1e7 (1e16 in float64), the result is the nearest one to a matrix within
    rounding of V. NaN is propagated. On a GPU that computes matrix products in
    TF32, the result has that precision.

    Args:
        offset: Boolean, whether the weight is the offset U from the identity,
            as in `keras_rin.layers.RIN`; U + I is then made orthogonal.
            Defaults to `False`.
        gates: Positive integer, number of square matrices in the weight, each
            of which is made orthogonal: 4 for an LSTM, 3 for a GRU. Defaults
            to 1.

    Raises:
        ValueError: If the weight is not of shape `(units, gates * units)`,
            or not of a floating dtype.

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
        self.gates = _arguments.integer("gates", gates)

    def __call__(self, w):
        w = ops.convert_to_tensor(w)
        shape, dtype = tuple(w.shape), keras.backend.standardize_dtype(w.dtype)
        units = shape[0] if shape else 0
        if shape != (units, self.gates * units) or "float" not in dtype:
            raise ValueError(
                f"Orthogonal(gates={self.gates}) needs a floating weight of "
                "shape (units, gates * units): the recurrent kernel of a "
                "SimpleRNN or a RIN has gates=1, of a GRU 3, of an LSTM 4. "
                f"Received: shape={shape}, dtype={dtype}"
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

    def get_config(self):
        return {"offset": self.offset, "gates": self.gates}


def _nearest_orthogonal(x, identity):
    def excess(x):
        return ops.matmul(ops.transpose(x, (0, 2, 1)), x) - identity

    def step(x, e):
        x = x - ops.matmul(x, e) / 2
        return x, excess(x)

    # Within this distance the iteration converges. Of 64, 256 and 512 units on
    # a CPU it takes 0.2 to 0.8 of the time of `ops.svd`.
    is_near = ops.all(_norm(excess(x)) < 0.9)
    x = ops.cond(is_near, lambda: x, lambda: _polar_factor(x))
    state = ops.while_loop(
        lambda x, e: ops.any(_norm(e) > 0.25), step, (x, excess(x))
    )
    # Convergence is quadratic: 0.25, 5e-2, 2e-3, 2e-6, 2e-12, 0.
    for _ in range(4):
        state = step(*state)
    x, e = state
    return x - ops.matmul(x, e) / 2


def _polar_factor(x):
    """P Q^T of each matrix, NaN where a number of it is not finite."""
    largest = ops.max(ops.abs(x), axis=(1, 2), keepdims=True)
    is_finite = ops.isfinite(largest)
    # Divided twice, because many processors round 1 / 3e38 to 0.
    root = ops.sqrt(ops.where(is_finite & (largest > 0), largest, 1))
    left, _, right = ops.svd(ops.where(is_finite, x / root / root, 0))
    return ops.where(is_finite, ops.matmul(left, right), float("nan"))


def _norm(x):
    return ops.sqrt(ops.sum(ops.square(x), axis=(1, 2), keepdims=True))
