"""A feedforward chain hidden in a recurrent matrix."""

import typing

import keras
import numpy as np
from numpy.typing import ArrayLike

from keras_rin import _arguments
from keras_rin._layer_walk.layers import feature_count
from keras_rin.diagnostics._built_cell import built_cell
from keras_rin.diagnostics._dynamics import state_map
from keras_rin.diagnostics._dynamics.trajectories import state_trajectories
from keras_rin.diagnostics._matrices.recurrent_matrices import (
    recurrent_matrices,
)


class HiddenChain(typing.NamedTuple):
    """What `hidden_chain` returns, with n the number of units excited.

    Attributes:
        difference: Integer array `(2 n - 1,)`, from 1 - n to n - 1.
        mean_weight: Dict of arrays `(2 n - 1,)` by gate, as in
            `recurrent_matrices`: the mean over all pairs of a difference.
        standard_error: Dict of arrays `(2 n - 1,)`; NaN of one pair.
        order: Integer array `(n,)`, the units from first to last.
        activity: Array `(steps + 1, units)`, the response.
    """

    difference: np.ndarray
    mean_weight: dict[str, np.ndarray]
    standard_error: dict[str, np.ndarray]
    order: np.ndarray
    activity: np.ndarray


def hidden_chain(
    layer: keras.Layer,
    *,
    steps: int = 100,
    pulse: "ArrayLike | None" = None,
    rng: np.random.Generator | None = None,
) -> HiddenChain:
    """Orders units by when a pulse excites them most, and averages weights.

    The layer receives `pulse` at its first step and zeros from then on. Units
    are ordered by the step at which the absolute activity of each is largest,
    ties at random. The weight from unit i to unit j then counts under the

    order difference = position of j - position of i

    A layer that hides a chain has larger mean weights at small positive
    differences than at negative ones; in a pure chain they are zero except at
    1. Units whose response is exactly 0 at all steps are left out.

    Args:
        layer: A built recurrent layer or cell of Keras: SimpleRNN,
            `keras_rin.layers.RIN`, LSTM, GRU, or a cell of your own with
            attributes `kernel` and `recurrent_kernel`.
        steps: Positive integer, the steps after the pulse. Defaults to 100.
        pulse: Array `(features,)`, the input of the first step. Defaults to
            `None`: 1 in each feature.
        rng: A `numpy.random.Generator` that orders ties. Defaults to `None`:
            one of seed 0.

    Returns:
        A `HiddenChain`, a named tuple.

    Raises:
        ValueError: As in `recurrent_matrices`; if the layer has no input
            kernel, an argument is not as above, or the response is not finite
            or excites fewer than two units.
        TypeError: If `rng` is not a `numpy.random.Generator`.

    Example:

    >>> chain = keras_rin.initializers.Chain()
    >>> layer = keras.layers.SimpleRNN(
    ...     4, kernel_initializer="identity", recurrent_initializer=chain
    ... )
    >>> layer.build((None, None, 1))
    >>> hidden_chain = keras_rin.diagnostics.hidden_chain(layer)
    >>> hidden_chain.mean_weight["recurrent"]
    array([0., 0., 0., 0., 1., 0., 0.])

    Reference:
        Rajan, Harvey and Tank, 2016, Recurrent network models of sequence
        generation and memory; Orhan and Pitkow, 2020 (arXiv 1905.13715),
        figures 5 and 6.
    """
    steps = _arguments.integer("steps", steps)
    rng = _arguments.generator("rng", rng, seed=0)
    matrices = recurrent_matrices(layer)
    activity = _pulse_response(layer, steps, pulse)
    order = _peak_order(activity, rng)
    profiles = {
        gate: _mean_weights(matrix[np.ix_(order, order)])
        for gate, matrix in matrices.items()
    }
    return HiddenChain(
        difference=np.arange(1 - len(order), len(order)),
        mean_weight={gate: mean for gate, (mean, _) in profiles.items()},
        standard_error={gate: error for gate, (_, error) in profiles.items()},
        order=order,
        activity=activity,
    )


def _pulse_response(layer, steps, pulse):
    cell = built_cell(layer)
    features = feature_count(cell)
    if features is None:
        raise ValueError(
            f"{layer.name} must have its input matrix, of shape (features, "
            "units), in an attribute `kernel`. "
            f"Received: layer={layer}, without one"
        )
    pulse = np.ones(features) if pulse is None else pulse
    x = np.zeros((1, steps + 1, features))
    x[0, 0] = _arguments.vector("pulse", pulse, features)
    units = state_map.sizes(cell)[0]
    return state_trajectories(cell, x)[0, 1:, :units].astype("float64")


def _peak_order(activity, rng):
    size = np.abs(activity)
    excited = np.flatnonzero(size.max(axis=0))
    if len(excited) < 2:
        raise ValueError(
            "`pulse` must excite at least two units to put them in order: "
            f"try a larger one, or another sign. Excited: {len(excited)}"
        )
    peak = size[:, excited].argmax(axis=0)
    return excited[np.lexsort((rng.random(len(peak)), peak))]


def _mean_weights(matrix):
    """Mean and standard error of each diagonal."""
    n = len(matrix)
    diagonals = [np.diagonal(matrix, k) for k in range(1 - n, n)]
    mean = [weights.mean() for weights in diagonals]
    error = [
        weights.std(ddof=1) / np.sqrt(len(weights))
        if len(weights) > 1
        else np.nan
        for weights in diagonals
    ]
    return np.array(mean), np.array(error)
