"""How far the gradient reaches back through a recurrent layer."""

import keras
import numpy as np
from keras import ops
from numpy.typing import ArrayLike

from keras_rin import arguments
from keras_rin.diagnostics import recurrent_layers


def gradient_horizon(
    layer: keras.Layer,
    x: ArrayLike,
    directions: int = 10,
    rng: np.random.Generator | None = None,
) -> np.ndarray:
    """The gradient norm of the last hidden state, along a sequence.

    size_t = sqrt(mean of |d(v . h_T) / ds_t|^2), over sequences and unit
    directions v

    s_t is the state after step t, h_t its part that is the output: all of it
    in a SimpleRNN, a GRU or a RIN; in an LSTM s_t = (h_t, c_t). For
    orthonormal directions the mean is the squared Frobenius norm of
    d h_T / d s_t over the number of units: 1 where a recurrence keeps every
    direction at its length, as the identity does.

    Args:
        layer: A built recurrent layer or cell of Keras.
        x: Array `(batch, time, features)`, the sequences along which the
            gradient runs back, from zero states and without dropout.
        directions: Positive integer, how many orthonormal directions v to
            draw. As many as units, or more, make the size exact; fewer
            estimate it. Defaults to 10.
        rng: A `numpy.random.Generator` that draws the directions. Defaults
            to `None`: one of seed 0.

    Returns:
        A float64 array `(time + 1,)`: entry t is size_t, from the initial
        state at 0 to the last state, where it is 1; inf where the gradient is
        beyond the range of float32.

    Raises:
        ValueError: If the layer has no single cell or no weights yet, if its
            weights, its states along x or its gradient are NaN, if `x` has
            another shape or is not finite in the dtype of the layer, or if
            `directions` is not a positive integer.
        TypeError: If `rng` is not a `numpy.random.Generator`.

    Example:

    >>> layer = keras.layers.SimpleRNN(
    ...     3, None, recurrent_initializer=keras.initializers.Identity(0.5)
    ... )
    >>> layer.build((None, None, 1))
    >>> sizes = keras_rin.diagnostics.gradient_horizon(
    ...     layer, np.zeros((1, 3, 1))
    ... )
    >>> sizes.round(3)
    array([0.125, 0.25 , 0.5  , 1.   ])
    """
    cell = recurrent_layers.built_cell(layer)
    recurrent_layers.check_weights(cell)
    directions = arguments.integer("directions", directions)
    rng = arguments.generator("rng", rng, seed=0)
    sequences = recurrent_layers.sequences(x, cell)
    units = _sizes(cell)[0]
    count = min(directions, units)
    basis = np.linalg.qr(rng.normal(size=(units, count)))[0].T
    sequences = np.repeat(sequences, count, axis=0)
    inputs = ops.convert_to_tensor(sequences, cell.compute_dtype)
    nudges = ops.zeros((inputs.shape[1] + 1, len(inputs), sum(_sizes(cell))))
    v = ops.convert_to_tensor(
        np.tile(basis, (len(inputs) // count, 1)), "float32"
    )
    with recurrent_layers.undisturbed(cell):
        slopes = _gradient(lambda n: _project_last(cell, inputs, n, v), nudges)
    squares = np.asarray(ops.convert_to_numpy(slopes), "float64") ** 2
    sizes = np.sqrt(squares.sum(axis=2).mean(axis=1))
    if np.isnan(sizes).any():
        raise ValueError(
            f"The states of {layer.name} along `x` are beyond the range of "
            f"{cell.compute_dtype}, so that its gradient is NaN. "
            f"Received: NaN at {np.isnan(sizes).sum()} of {len(sizes)} steps"
        )
    return sizes


def _sizes(cell):
    return keras.tree.flatten(cell.state_size)


def _project_last(cell, x, nudges, v):
    """v . h_T, with one nudge added to the state after each step."""
    ends = np.cumsum(_sizes(cell)).tolist()

    def nudged(states, nudge):
        nudge = ops.cast(nudge, cell.compute_dtype)
        places = zip(states, [0, *ends], ends, strict=False)
        return [s + nudge[:, start:end] for s, start, end in places]

    def step(states, inputs):
        x_t, nudge = inputs
        _, states = cell(x_t, states, training=False)
        return nudged(keras.tree.flatten(states), nudge), None

    first = keras.tree.flatten(cell.get_initial_state(batch_size=len(x)))
    sequence = (ops.swapaxes(x, 0, 1), nudges[1:])
    states, _ = ops.scan(step, nudged(first, nudges[0]), sequence)
    return ops.sum(ops.cast(states[0], "float32") * v)


def _gradient(function, point):
    # keras.ops has no word for it.
    if keras.backend.backend() == "jax":
        import jax

        return jax.grad(function)(point)
    if keras.backend.backend() == "torch":
        import torch

        with torch.enable_grad():
            point = point.detach().requires_grad_()
            return torch.autograd.grad(function(point), point)[0]
    import tensorflow as tf

    with tf.GradientTape() as tape:
        tape.watch(point)
        value = function(point)
    return tape.gradient(value, point)
