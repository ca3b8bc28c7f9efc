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
from keras_rin.diagnostics import _spectrum
from keras_rin.diagnostics._cells import float64

BATCH = 32


class InputDrift(typing.NamedTuple):
    """What `input_drift` returns, in the units of the hidden state.

    Attributes:
        drift: Array `(units,)`, the mean of the last state; inf beyond
            float64.
        spread: Array `(units,)`, its standard deviation; inf beyond float64.
    """

    drift: np.ndarray
    spread: np.ndarray


def input_drift(
    layer: keras.Layer, x: ArrayLike, *, mask: ArrayLike | None = None
) -> InputDrift:
    """Mean and standard deviation that the inputs alone give the last state.

    drift = sum_{k < T} m V^k,  m = E[x] W + b
    spread_j^2 = sum_{k < T} ((V^k)^T C V^k)_jj,  C = W^T Cov[x] W

    This is the linear network of the layer, from a zero state, with inputs
    drawn at each time step independently, of the mean and covariance that x
    has over sequences and time steps. V is the effective recurrent matrix. At
    V = I the drift is T m, and the spread grows like the square root of T:
    where the drift is many times the spread, the state is carried off before
    anything is learned, and `keras_rin.adapt` makes the drift zero.

    Args:
        layer: A built recurrent layer or cell without gates: SimpleRNN, RIN,
            or one of their cells, `DeepTransitionRINCell` included.
        x: Array `(batch, time, features)`, finite: what the layer reads.
        mask: Boolean array `(batch, time)`. Time steps where it is `False`
            are ignored, as the layer does; T is then the number of time steps
            of the longest sequence. Defaults to `None`: all are used.

    Returns:
        An `InputDrift`, a named tuple `(drift, spread)` of the mean and the
        standard deviation after T time steps.

    Raises:
        ValueError: If the layer has gates, several cells or no weights yet,
            if its weights are not finite, if `x` has another shape or is
            not finite in the dtype of the layer, or if `mask` has another
            shape or is `False` everywhere.

    Example:

    >>> layer = keras_rin.layers.RIN(2, recurrent_initializer="zeros")
    >>> x = np.random.default_rng(0).random((64, 100, 1), "float32")
    >>> layer.build(x.shape)
    >>> drift, _ = keras_rin.diagnostics.input_drift(layer, x)
    >>> kernel, *_ = layer.get_weights()
    >>> bool(np.allclose(drift, 100 * x.mean() * kernel[0]))
    True
    >>> keras_rin.adapt(layer, x)
    >>> drift, spread = keras_rin.diagnostics.input_drift(layer, x)
    >>> bool(np.all(abs(drift) < 1e-3 * spread))
    True
    """
    cell = _cells.built_cell(layer)
    _cells.check_weights(cell)
    x = _sequences.sequences(x, layer)
    matrices = _recurrent_matrices.recurrent_matrices(cell)
    if list(matrices) not in (["recurrent"], ["recurrent", "transition"]):
        raise ValueError(
            f"{layer.name} has gates, which bound its state: `input_drift` is "
            f"for layers without gates. Received: layer={layer}"
        )
    if not hasattr(cell, "kernel"):
        raise ValueError(
            f"{layer.name} has no input kernel. Received: layer={layer}"
        )
    unmasked = _sequences.unmasked_steps(mask, x, layer)
    mean, covariance = _input_moments(cell, matrices, x[unmasked])
    steps = int(unmasked.sum(axis=1).max())
    effective = matrices["recurrent"]
    if "transition" in matrices:
        effective = effective @ matrices["transition"]
    matrix, growth = _spectrum.scaled(effective)
    drift = _power_sum(mean, lambda v: v @ matrix, growth, steps)
    variance, exponent = _power_sum(
        covariance, lambda c: matrix.T @ c @ matrix, 2 * growth, steps
    )
    spread = np.sqrt(np.maximum(np.diag(variance), 0) * 2.0 ** (exponent % 2))
    with np.errstate(over="ignore"):
        return InputDrift(np.ldexp(*drift), np.ldexp(spread, exponent // 2))


def _input_moments(cell, matrices, inputs):
    """Mean and covariance of what inputs `(steps, features)` add to a state."""
    kernel = float64(cell.kernel)
    mean = inputs.mean(axis=0) @ kernel
    has_bias = getattr(cell, "bias", None) is not None
    if has_bias:
        mean += float64(cell.bias)
    factor = (inputs - inputs.mean(axis=0)) @ kernel
    covariance = factor.T @ factor / len(inputs)
    if "transition" in matrices:
        transition = matrices["transition"]
        mean = mean @ transition
        covariance = transition.T @ covariance @ transition
        if has_bias:
            mean += float64(cell.transition_bias)
    return mean, covariance


def _power_sum(term, advance, growth, steps):
    """The sum of a term after 0 to steps - 1 steps, and its power of 2.

    A step times 2^growth is one of the layer; nothing overflows on the way.
    """
    term, start = _spectrum.scaled(term)
    total, exponent = np.zeros_like(term), start
    for _ in range(steps):
        exponent += growth
        total = advance(total) + np.ldexp(term, start - exponent)
        total, change = _spectrum.scaled(total)
        exponent += change
    return total, exponent


def state_norms(
    layer: keras.Layer, x: ArrayLike, *, mask: ArrayLike | None = None
) -> np.ndarray:
    """The norm of the hidden state along a sequence, before any read-out.

    norm_t = sqrt(E[|h_t|^2]), over the sequences of x

    Args:
        layer: A built recurrent layer or cell of Keras. Of an LSTM, h_t is
            the output, not c_t.
        x: Array `(batch, time, features)`, finite: what the layer reads, from
            a zero state and without dropout, with `go_backwards=True` from
            its end.
        mask: Boolean array `(batch, time)`. A time step where it is `False`
            leaves the state as it is, as in the layer. Defaults to `None`.

    Returns:
        A float64 array `(time + 1,)`: entry t is norm_t, 0 at t = 0; inf
        where a state is beyond the dtype of the layer.

    Raises:
        ValueError: If the layer has no single cell or no weights yet, if its
            weights are not finite or its states become NaN, or if `x` has
            another shape or is not finite in the dtype of the layer, or if
            `mask` has another shape or is `False` everywhere.

    Example:

    >>> layer = keras_rin.layers.RIN(
    ...     2, kernel_initializer="ones", recurrent_initializer="zeros"
    ... )
    >>> layer.build((None, None, 1))
    >>> keras_rin.diagnostics.state_norms(layer, np.ones((1, 3, 1))).round(3)
    array([0.   , 1.414, 2.828, 4.243])
    """
    cell = _cells.built_cell(layer)
    _cells.check_weights(cell)
    x = _sequences.sequences(x, layer)
    unmasked = _sequences.unmasked_steps(mask, x, layer)
    inputs = keras.Input(x.shape[1:], dtype=cell.compute_dtype)
    input_mask = keras.Input(x.shape[1:2], dtype="bool")
    states = keras.layers.RNN(
        cell, return_sequences=True, dtype=cell.dtype_policy
    )(inputs, mask=input_mask)
    # Squares of float32 leave its range long before the states do.
    dtype = "float64" if cell.compute_dtype == "float64" else "float32"
    states = ops.cast(states, dtype)
    sizes = ops.max(ops.abs(states), axis=-1)
    shares = states / ops.where(sizes > 0, sizes, 1.0)[..., None]
    outputs = [sizes, ops.sum(shares**2, axis=-1)]
    model = keras.Model([inputs, input_mask], outputs)
    total = np.zeros(x.shape[1] + 1)
    with undisturbed(cell):
        for start in range(0, len(x), BATCH):
            part = slice(start, start + BATCH)
            batch = [x[part].astype(dtype), unmasked[part]]
            sizes, shares = model.predict_on_batch(batch)
            squares = (
                np.where(sizes < np.inf, shares, 1)
                * sizes.astype("float64") ** 2
            )
            total[1:] += squares.sum(axis=0)
    if np.isnan(total).any():
        raise ValueError(
            f"The states of {layer.name} become NaN along `x`, beyond the "
            f"range of {cell.compute_dtype}. "
            f"Received: NaN from step {np.isnan(total).argmax()} on"
        )
    return np.sqrt(total / len(x))
