"""The gradient norm of the last state, step by step."""

import keras
import numpy as np
from numpy.typing import ArrayLike

from keras_rin import _arguments
from keras_rin.diagnostics._dynamics import state_map
from keras_rin.diagnostics._dynamics.sequences import cell_and_sequences
from keras_rin.diagnostics._dynamics.sequences import sorted_steps


def gradient_norms(
    layer: keras.Layer,
    x: "ArrayLike",
    *,
    mask: "ArrayLike | None" = None,
    initial_states: "ArrayLike | None" = None,
    directions: int = 10,
    rng: np.random.Generator | None = None,
) -> np.ndarray:
    """The gradient norm of the last hidden state, along a sequence.

    norm_t = sqrt(mean of |d(v . h_T) / ds_t|^2), over sequences and unit
    directions v

    s_t is the state after step t, and h_t its part that is the output; in an
    LSTM s_t = (h_t, c_t). For orthonormal directions the mean is the squared
    Frobenius norm of d h_T / d s_t over the number of units, 1 for an identity.

    Args:
        layer: A built recurrent layer or cell of Keras.
        x: Array `(batch, time, features)`, as in `state_trajectories`.
        mask: Boolean array `(batch, time)`. Time steps where it is `False`
            are left out, as by the layer: entry T - k is then k steps
            before the last one of each sequence that is not. Defaults to
            `None`.
        initial_states: As in `state_trajectories`. Defaults to `None`.
        directions: Positive integer, how many orthonormal directions v to
            draw. As many as units, or more, make the norm exact. Defaults to
            10.
        rng: A `numpy.random.Generator` that draws the directions. Defaults
            to `None`: one of seed 0.

    Returns:
        A float64 array `(time + 1,)`: entry t is norm_t, 1 at the last state;
        inf or 0 where the gradient is beyond the range of float32, or of
        float64 for a float64 layer, in which it is computed.

    Raises:
        ValueError: As in `state_trajectories`; if `directions` is no such
            integer; if gradients are NaN.
        TypeError: If `rng` is not a `numpy.random.Generator`.

    Example:

    >>> layer = keras.layers.SimpleRNN(
    ...     3, None, recurrent_initializer=keras.initializers.Identity(0.5)
    ... )
    >>> layer.build((None, None, 1))
    >>> x = np.zeros((1, 3, 1))
    >>> keras_rin.diagnostics.gradient_norms(layer, x).round(3)
    array([0.125, 0.25 , 0.5  , 1.   ])
    """
    cell, sequences, unmasked, initial = cell_and_sequences(
        layer, x, mask, initial_states
    )
    directions = _arguments.integer("directions", directions)
    rng = _arguments.generator("rng", rng, seed=0)
    initial = initial[unmasked.any(axis=1)]
    sequences, unmasked = _align_steps(sequences, unmasked)
    units, count = state_map.sizes(cell)[0], len(sequences)
    directions = min(directions, units)
    basis = np.linalg.qr(rng.normal(size=(units, directions)))[0].T
    dtype = "float64" if cell.compute_dtype == "float64" else "float32"
    with state_map.state_map(cell, dtype) as step:
        v = np.zeros((count, directions, step.size))
        v[..., :units] = basis
        norms = step.gradient_norms(initial, sequences, unmasked, v)
    norms = np.sqrt((norms.astype("float64") ** 2).mean(axis=0) / directions)
    if np.isnan(norms).any():
        raise ValueError(
            f"The states or the gradients of {layer.name} along `x` are beyond "
            f"the range of {dtype}, so that its gradient is NaN. "
            f"Received: NaN at {np.isnan(norms).sum()} of {len(norms)} steps"
        )
    return norms


def _align_steps(sequences, unmasked):
    """The time steps that count, moved to the end of each sequence."""
    has_steps = unmasked.any(axis=1)
    sequences, unmasked = sequences[has_steps], unmasked[has_steps]
    sequences = sorted_steps(sequences, unmasked)
    return sequences, np.sort(unmasked, axis=1)
