"""Initializers of input kernels that choose where the input enters."""

from concurrent import futures

import keras
import numpy as np
from keras import ops
from keras.initializers import Initializer
from numpy.typing import ArrayLike

from keras_rin import _arguments
from keras_rin import diagnostics
from keras_rin.initializers import _effective
from keras_rin.initializers._offset import Offset
from keras_rin.initializers._offset import checked_initializer
from keras_rin.initializers._serialization import complete_config
from keras_rin.initializers._serialization import serialize


@keras.saving.register_keras_serializable(package="keras_rin")
class OneUnitInput(keras.initializers.Initializer):
    """Initializes an input kernel through which the input enters at one unit.

    W[i, unit] = gain for each feature i, all else 0

    In a `Chain` it then travels along the units; in an identity matrix it
    reaches no other unit.

    Args:
        gain: Finite number, the weight of each feature. Defaults to 1.
        unit: Integer, at least 0, the unit at which the input enters. Defaults
            to 0, where a chain begins.

    Raises:
        ValueError: If the kernel is not of shape `(features, units)`, or has
            no unit of that number.

    Example:

    >>> initializer = keras_rin.initializers.OneUnitInput()
    >>> keras.ops.convert_to_numpy(initializer((2, 3)))
    array([[1., 0., 0.],
           [1., 0., 0.]], dtype=float32)

    Reference:
        Keller, Muller, Sejnowski and Welling, 2024 (arXiv 2309.08045); see
        `Chain`.
    """

    def __init__(self, gain: float = 1.0, unit: int = 0):
        self.gain = _arguments.finite_number("gain", gain)
        self.unit = _arguments.integer("unit", unit, at_least=0)

    def __call__(self, shape, dtype=None):
        if len(shape) != 2 or self.unit >= shape[1]:
            raise ValueError(
                f"OneUnitInput(unit={self.unit}) needs an input kernel of "
                "shape (features, units), with more units than `unit`. "
                f"Received: shape={tuple(shape)}"
            )
        kernel = np.zeros(shape)
        kernel[:, self.unit] = self.gain
        return _tensor(kernel, dtype)

    def get_config(self):
        return {"gain": self.gain, "unit": self.unit}


@keras.saving.register_keras_serializable(package="keras_rin")
class AlignedInput(keras.initializers.Initializer):
    """Initializes an input kernel along the best remembered directions.

    W = gain [w_1; w_2; ...], J_s w_i = m_i w_i, m_1 >= m_2 >= ...

    The total memory of an input along w, in a linear network with noise, is
    w J_s w^T, of `keras_rin.diagnostics.spatial_memory_matrix`. The first
    feature enters along the top eigenvector, each further one along the next:
    no orthogonal directions have a larger memory together. The variance of the
    noise, equal in all units, does not change them. Those of a chain are its
    first units; in a normal matrix all directions are as good.

    Args:
        recurrent: The initial effective matrix V of the layer: its
            `recurrent_initializer`, within `Offset` or not, or an array of
            shape `(units, units)`. A random initializer needs a seed, so that
            it draws the matrix of the layer here too.
        gain: Finite number, the length of each row. Defaults to 1.
        horizon: Positive integer, the steps since the state was 0. Defaults to
            `None`: infinitely many, which needs a spectral radius below 1.

    Raises:
        ValueError: If `recurrent` is random without a seed, or the kernel not
            of shape `(features, units)` with at most as many features as units;
            as in `keras_rin.diagnostics.spatial_memory_matrix`.

    Example:

    >>> chain = keras_rin.initializers.Chain(1.02)
    >>> layer = keras.layers.SimpleRNN(
    ...     4,
    ...     kernel_initializer=keras_rin.initializers.AlignedInput(chain),
    ...     recurrent_initializer=chain,
    ... )
    >>> layer.build((None, None, 1))
    >>> keras.ops.convert_to_numpy(layer.cell.kernel)
    array([[1., 0., 0., 0.]], dtype=float32)

    Reference:
        Ganguli, Huh and Sompolinsky, 2008, Memory traces in dynamical
        systems.
    """

    def __init__(
        self,
        recurrent: "str | Initializer | ArrayLike",
        gain: float = 1.0,
        horizon: int | None = None,
    ):
        if isinstance(recurrent, (list, tuple, np.ndarray)):
            self.recurrent = _arguments.square_matrix("recurrent", recurrent)
        else:
            recurrent = checked_initializer(recurrent)
            if isinstance(recurrent, Offset):
                recurrent = recurrent.initializer
            if (complete_config(recurrent) or {}).get("seed", 0) is None:
                raise ValueError(
                    "`recurrent` must have a seed, so that it draws the "
                    "matrix of the layer here too. "
                    f"Received: recurrent={recurrent}, without one"
                )
            self.recurrent = recurrent
        self.gain = _arguments.finite_number("gain", gain)
        if horizon is not None:
            horizon = _arguments.integer("horizon", horizon)
        self.horizon = horizon

    def __call__(self, shape, dtype=None):
        matrix = self.recurrent
        if not isinstance(matrix, np.ndarray):
            matrix = _drawn(matrix, shape[-1])
        if len(shape) != 2 or shape[0] > shape[1] or shape[1] != len(matrix):
            raise ValueError(
                f"AlignedInput needs an input kernel of shape (features, "
                f"{len(matrix)}) with at most as many features as units. "
                f"Received: shape={tuple(shape)}"
            )
        memory = diagnostics.spatial_memory_matrix(matrix, horizon=self.horizon)
        directions = np.linalg.eigh(memory).eigenvectors.T[::-1][: shape[0]]
        largest = np.abs(directions).argmax(axis=1)[:, None]
        signs = np.sign(np.take_along_axis(directions, largest, axis=1))
        return _tensor(self.gain * signs * directions + 0.0, dtype)

    def get_config(self):
        is_array = isinstance(self.recurrent, np.ndarray)
        store = np.ndarray.tolist if is_array else serialize
        recurrent = store(self.recurrent)
        options = {"gain": self.gain, "horizon": self.horizon}
        return {"recurrent": recurrent, **options}


def _drawn(initializer, units):
    """The values of a square matrix, also where a layer is built in a trace.

    There every tensor is symbolic; a thread of its own is outside of it.
    """

    def draw():
        matrix = _effective.draw(initializer, (units, units), "float32")
        return ops.convert_to_numpy(matrix)

    with futures.ThreadPoolExecutor(1) as thread:
        return thread.submit(draw).result()


def _tensor(kernel, dtype):
    dtype = keras.backend.standardize_dtype(dtype)
    return ops.convert_to_tensor(kernel, dtype)
