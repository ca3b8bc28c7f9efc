"""The states of a recurrent layer along sequences, and their Jacobians."""

import keras
import numpy as np
from numpy.typing import ArrayLike

from keras_rin.diagnostics._dynamics.sequences import cell_and_sequences
from keras_rin.diagnostics._dynamics.state_map import state_map


def state_trajectories(
    layer: keras.Layer,
    x: "ArrayLike",
    *,
    mask: "ArrayLike | None" = None,
    initial_states: "ArrayLike | None" = None,
    dtype: str = "float32",
) -> np.ndarray:
    """All states of a recurrent layer along sequences.

    s_t = F(s_{t-1}, x_t)

    s is the hidden state h; of an LSTM it is h and c side by side, (h, c).

    Args:
        layer: A built recurrent layer or cell of Keras.
        x: Array `(batch, time, features)`, finite: what the layer reads,
            without dropout. With `go_backwards=True` the layer reads `x` from
            its end.
        mask: Boolean array `(batch, time)`. A time step where it is `False`
            leaves the state as it is, as in the layer. Defaults to `None`.
        initial_states: Array `(batch, state)`, s_0 of each sequence, or a list
            of its parts, such as `[h, c]`, as the `initial_state` of Keras.
            Defaults to `None`: zeros, also if the layer is stateful, or the
            `get_initial_state` of a cell of your own.
        dtype: `"float32"` or `"float64"`, in which the cell computes whatever
            the dtype of its weights. What a cell of your own computes in
            float32 stays in float32. Defaults to `"float32"`.

    Returns:
        An array `(batch, time + 1, state)` of this dtype, from s_0 to s_T;
        `state` is the number of units, of an LSTM twice that number.

    Raises:
        ValueError: If the layer has several cells or no weights yet; if an
            argument is not as above, or `mask` is `False` everywhere; if
            weights or states are not finite.

    Example:

    >>> layer = keras_rin.layers.RIN(
    ...     2, kernel_initializer="ones", recurrent_initializer="zeros"
    ... )
    >>> layer.build((None, None, 1))
    >>> keras_rin.diagnostics.state_trajectories(layer, np.ones((1, 2, 1)))
    array([[[0., 0.],
            [1., 1.],
            [2., 2.]]], dtype=float32)
    """
    cell, inputs, unmasked, initial = cell_and_sequences(
        layer, x, mask, initial_states, dtype
    )
    with state_map(cell, dtype) as step:
        return step.trajectory(initial, inputs, unmasked)


def state_jacobians(
    layer: keras.Layer,
    x: "ArrayLike",
    *,
    mask: "ArrayLike | None" = None,
    initial_states: "ArrayLike | None" = None,
    dtype: str = "float32",
) -> np.ndarray:
    """The Jacobians of a recurrent layer along sequences.

    J_t = d s_t / d s_{t-1}, J_t[i, j] = d s_t[i] / d s_{t-1}[j]

    s is the state of `state_trajectories`. For a linear SimpleRNN J_t is the
    transpose of its recurrent kernel, for a linear RIN that of V = U + I. The
    gradient of a loss runs back through J_T^T ... J_1^T.

    Automatic differentiation costs of order batch time state^3. The result has
    batch time state^2 numbers, which `lyapunov_spectrum` does not store.

    Args:
        layer: A built recurrent layer or cell of Keras.
        x: Array `(batch, time, features)`, as in `state_trajectories`.
        mask: Boolean array `(batch, time)`. A time step where it is `False`
            leaves the state as it is, and J_t is the identity. Defaults to
            `None`.
        initial_states: As in `state_trajectories`. Defaults to `None`.
        dtype: `"float32"` or `"float64"`, as in `state_trajectories`. Defaults
            to `"float32"`.

    Returns:
        An array `(batch, time, state, state)` of this dtype.

    Raises:
        ValueError: As in `state_trajectories`.

    Example:

    >>> layer = keras.layers.SimpleRNN(
    ...     2, None, recurrent_initializer=keras_rin.initializers.Chain()
    ... )
    >>> layer.build((None, None, 1))
    >>> x = np.zeros((1, 3, 1))
    >>> keras_rin.diagnostics.state_jacobians(layer, x)[0, -1]
    array([[0., 0.],
           [1., 0.]], dtype=float32)
    """
    cell, inputs, unmasked, initial = cell_and_sequences(
        layer, x, mask, initial_states, dtype
    )
    batch, time, features = inputs.shape
    with state_map(cell, dtype) as step:
        states = step.trajectory(initial, inputs, unmasked)[:, :-1]
        jacobians = step.jacobians(
            states.reshape(-1, step.size), inputs.reshape(-1, features)
        )
    jacobians = jacobians.reshape(batch, time, step.size, step.size)
    jacobians[~unmasked] = np.eye(step.size)
    return jacobians
