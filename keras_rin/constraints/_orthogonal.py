"""Constraints on recurrent matrices."""

import keras
from keras import ops

from keras_rin import _arguments

# The smallest number of a dtype grows to 1 in this number of steps.
MOST_STEPS = {"float32": 150, "float64": 1150}


@keras.saving.register_keras_serializable(package="keras_rin")
class Orthogonal(keras.constraints.Constraint):
    """Constrains a matrix to be orthogonal.

    V <- P Q^T, where V = P S Q^T is the singular value decomposition

    After every update, the weight is replaced by the nearest orthogonal
    matrix. As a `recurrent_constraint`, it keeps the recurrent matrix
    orthogonal throughout training and not only at initialization.

    The decomposition is not computed. The Newton-Schulz iteration
    X <- X (3 I - X^T X) / 2 has the same limit, consists of matrix products,
    and takes five steps if the weight is close to orthogonal after the
    update, or up to 130 more from further away.

    A finite weight of any scale and condition number becomes orthogonal. If
    the matrix is singular, the result is one of several nearest matrices;
    singular values below 1e-37 of the Frobenius norm (1e-307 in float64) count
    as 0. Beyond a condition number of 1e7 (1e16), the result is the nearest
    one to a matrix within rounding of V. NaN is propagated. On a GPU that
    computes matrix products in TF32, the result has that precision.

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

    def is_far(x, e):
        return ops.any(_norm(e) > 0.25)

    def step(x, e):
        # With 0.9, small singular values grow by 1.9 in place of 1.5, and
        # those at 1 still converge.
        factor = ops.cast(ops.where(_norm(e) < 0.9, 0.5, 0.9), x.dtype)
        x = x - factor * ops.matmul(x, e)
        return x, excess(x)

    def approach(x, e):
        steps = MOST_STEPS[keras.backend.standardize_dtype(x.dtype)]
        return ops.while_loop(is_far, step, (x, e), maximum_iterations=steps)

    def from_afar():
        # The iteration needs a spectral norm of at most 1, which the
        # Frobenius norm bounds.
        y = ops.where(near, x, _scaled_to_unit_norm(x))
        y, e = approach(y, excess(y))
        # The iteration leaves singular values of 0 unchanged.
        y = ops.where(_norm(e) > 0.25, y + _null_space_map(y, e, identity), y)
        return y, excess(y)

    # Within this distance the iteration converges.
    e = excess(x)
    near = _norm(e) < 0.9
    x, e = ops.cond(ops.all(near), lambda: (x, e), from_afar)
    x, e = approach(x, e)
    # Convergence is quadratic: 0.25, 5e-2, 2e-3, 2e-6, 2e-12, 0.
    for _ in range(4):
        x = x - ops.matmul(x, e) / 2
        e = excess(x)
    return x - ops.matmul(x, e) / 2


def _null_space_map(x, e, identity):
    """A map of the null space of a partial isometry to that of its transpose.

    The map is random, because that of the identity is 0 for a chain.
    """
    dtype = keras.backend.standardize_dtype(x.dtype)
    size = 0.5 * identity.shape[0] ** -0.5  # a spectral norm of about 1
    noise = keras.random.normal(identity.shape, 0, size, dtype, seed=0)
    left = ops.matmul(x, ops.transpose(x, (0, 2, 1))) - identity
    return ops.matmul(ops.matmul(left, noise), e)


def _scaled_to_unit_norm(x):
    largest = ops.max(ops.abs(x), axis=(1, 2), keepdims=True)
    # The squares then stay in range. The root divides twice, because many
    # processors round 1 / 3e38 to 0.
    root = ops.sqrt(ops.where(largest > 0, largest, 1))
    x = x / root / root
    return x / ops.maximum(_norm(x), keras.config.epsilon())


def _norm(x):
    return ops.sqrt(ops.sum(ops.square(x), axis=(1, 2), keepdims=True))
