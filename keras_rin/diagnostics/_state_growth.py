"""Growth of the hidden state of a recurrent layer with the time steps."""

import typing

import keras
import numpy as np
from keras import ops
from numpy.typing import ArrayLike

from keras_rin._layer_walk.undisturbed import undisturbed
from keras_rin.diagnostics import _cells
from keras_rin.diagnostics import _recurrent_matrices
from keras_rin.diagnostics import _sequences
from keras_rin.diagnostics import _state_map

BATCH = 32
# Cells by registered name: a subclass may do anything with its matrices.
UNGATED = (
    "SimpleRNNCell",
    "keras_rin>RINCell",
    "keras_rin>DeepTransitionRINCell",
)


class InputDrift(typing.NamedTuple):
    """What `input_drift` returns, in the units of the hidden state.

    Attributes:
        drift: Array `(units,)`, the mean of the last state.
        spread: Array `(units,)`, its standard deviation.
    """

    drift: np.ndarray
    spread: np.ndarray


def input_drift(
    layer: keras.Layer, x: "ArrayLike", *, mask: "ArrayLike | None" = None
) -> InputDrift:
    """Mean and standard deviation that the inputs alone give the last state.

    drift = sum_{k < T} m V^k,  m = E[x] W + b
    spread_j^2 = sum_{k < T} ((V^k)^T C V^k)_jj,  C = W^T Cov[x] W

    This is the linear network of the layer, from a zero state, with inputs
    drawn at each time step independently, of the mean and covariance of x. V
    is the effective recurrent matrix. At V = I the drift is T m, which
    `keras_rin.adapt` makes zero, and the spread grows like sqrt(T).

    Args:
        layer: A built recurrent layer or cell without gates: SimpleRNN, RIN,
            or one of their cells, `DeepTransitionRINCell` included.
        x: Array `(batch, time, features)`, as in `state_trajectories`.
        mask: Boolean array `(batch, time)`. Time steps where it is `False`
            are ignored, and T is that of the longest sequence. Defaults to
            `None`: all are used.

    Returns:
        An `InputDrift`, a named tuple `(drift, spread)`; inf where a sum is
        beyond float64.

    Raises:
        ValueError: As in `state_trajectories`; if the layer is another one.

    Example:

    >>> layer = keras_rin.layers.RIN(2, recurrent_initializer="zeros")
    >>> x = np.random.default_rng(0).random((64, 100, 1), "float32")
    >>> layer.build(x.shape)
    >>> keras_rin.adapt(layer, x)
    >>> drift, spread = keras_rin.diagnostics.input_drift(layer, x)
    >>> bool(np.all(abs(drift) < 1e-3 * spread))
    True
    """
    cell, steps, unmasked, _ = _sequences.cell_and_sequences(layer, x, mask)
    matrices = _recurrent_matrices.recurrent_matrices(cell)
    if keras.saving.get_registered_name(type(cell)) not in UNGATED:
        raise ValueError(
            "`input_drift` is for SimpleRNN, RIN and their cells, whose linear "
            f"network is known. Received: layer={layer}"
        )
    mean, covariance = _input_moments(cell, matrices, steps[unmasked])
    transition = matrices.get("transition", np.eye(len(mean)))
    effective = matrices["recurrent"] @ transition
    drift, variance = np.zeros_like(mean), np.zeros_like(covariance)
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(unmasked.sum(axis=1).max()):
            drift = drift @ effective + mean
            variance = effective.T @ variance @ effective + covariance
        spread = np.sqrt(np.maximum(np.diag(variance), 0))
    # Beyond float64, infinite terms of both signs make NaN.
    return InputDrift(
        *(np.where(np.isnan(array), np.inf, array) for array in (drift, spread))
    )


def _input_moments(cell, matrices, inputs):
    """Mean and covariance of what inputs `(steps, features)` add to a state."""
    kernel, bias = _cells.float64(cell.kernel), cell.bias
    mean = inputs.mean(axis=0) @ kernel
    mean += 0 if bias is None else _cells.float64(bias)
    factor = (inputs - inputs.mean(axis=0)) @ kernel
    covariance = factor.T @ factor / len(inputs)
    if "transition" in matrices:
        transition = matrices["transition"]
        covariance = transition.T @ covariance @ transition
        mean = mean @ transition
        mean += 0 if bias is None else _cells.float64(cell.transition_bias)
    return mean, covariance


def state_norms(
    layer: keras.Layer,
    x: "ArrayLike",
    *,
    mask: "ArrayLike | None" = None,
    initial_states: "ArrayLike | None" = None,
) -> np.ndarray:
    """The norm of the hidden state along a sequence, before any read-out.

    norm_t = sqrt(E[|h_t|^2]), over the sequences of x

    Args:
        layer: A built recurrent layer or cell of Keras. Of an LSTM, h_t is
            the output, not c_t.
        x: Array `(batch, time, features)`, as in `state_trajectories`.
        mask: Boolean array `(batch, time)`, as in `state_trajectories`.
            Defaults to `None`.
        initial_states: As in `state_trajectories`. Defaults to `None`.

    Returns:
        A float64 array `(time + 1,)`: entry t is norm_t; inf where a
        state is beyond the dtype of the layer.

    Raises:
        ValueError: As in `state_trajectories`, if states become NaN.

    Example:

    >>> layer = keras_rin.layers.RIN(
    ...     2, kernel_initializer="ones", recurrent_initializer="zeros"
    ... )
    >>> layer.build((None, None, 1))
    >>> keras_rin.diagnostics.state_norms(layer, np.ones((1, 3, 1))).round(3)
    array([0.   , 1.414, 2.828, 4.243])
    """
    cell, steps, unmasked, initial = _sequences.cell_and_sequences(
        layer, x, mask, initial_states
    )
    dtype = "float64" if cell.compute_dtype == "float64" else "float32"
    sizes = _state_map.sizes(cell)
    parts = np.split(initial.astype(dtype), np.cumsum(sizes)[:-1], axis=1)
    arrays = [unmasked, steps.astype(dtype), *parts]
    mask_input = keras.Input(unmasked.shape[1:], dtype="bool")
    inputs = [
        keras.Input(array.shape[1:], dtype=cell.compute_dtype)
        for array in arrays[1:]
    ]
    rnn = keras.layers.RNN(cell, return_sequences=True, dtype=cell.dtype_policy)
    states = rnn(inputs[0], mask=mask_input, initial_state=inputs[1:])
    model = keras.Model([mask_input, *inputs], ops.cast(states, dtype))
    squares = np.zeros(steps.shape[1] + 1)
    squares[0] = (initial[:, : sizes[0]] ** 2).sum()
    with undisturbed(cell):
        for start in range(0, len(steps), BATCH):
            batch = [array[start : start + BATCH] for array in arrays]
            states = model.predict_on_batch(batch).astype("float64")
            squares[1:] += (states**2).sum(axis=(0, 2))
    if np.isnan(squares).any():
        raise ValueError(
            f"The states of {layer.name} become NaN along `x`, beyond the "
            f"range of {cell.compute_dtype}. "
            f"Received: NaN from step {np.isnan(squares).argmax()} on"
        )
    return np.sqrt(squares / len(steps))
