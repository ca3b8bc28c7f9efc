"""Whether a residual unit in time keeps its state, proved from the weights."""

from typing import Any
from typing import NamedTuple

import keras
import numpy as np

from keras_rin import _arguments
from keras_rin import _cell_descriptions
from keras_rin.diagnostics._built_cell import built_cell
from keras_rin.diagnostics._built_cell import check_weights
from keras_rin.diagnostics._built_cell import float64

DTYPES = ("float32", "float64")


class Holds(NamedTuple):
    """What `holds` proves of each state.

    Attributes:
        holds: Booleans `(states,)`, whether the state does not change by a bit
            under any input of the box.
        margin: Floats `(states,)`. The argument of each inner unit stays below
            minus this number; where it is negative, the state may change.
        unit: Integers `(states,)`, the inner unit with the largest argument,
            which would be the first to fire.
    """

    holds: np.ndarray
    margin: np.ndarray
    unit: np.ndarray

    def __repr__(self):
        worst = self.margin.argmin()
        return (
            f"{self.holds.sum():,} of {len(self.holds):,} states hold; least "
            f"margin {self.margin[worst]:.3g}, of inner unit {self.unit[worst]}"
        )


def holds(layer: keras.Layer, states: Any, low: Any, high: Any) -> Holds:
    """Proves that states of a `ResidualRNN` do not change between events.

    max over x in the box of x W + h U + b, at most 0 for each inner unit

    Then a ReLU adds nothing to h, and so again at the next step: h stays bit
    for bit, however long all inputs are within the box. A bound of the rounding
    errors of the layer's dtype is added to the argument, so the proof is of
    what the layer computes. It supposes products in that dtype: not in
    TensorFloat-32, which some GPUs use unless it is switched off.

    Args:
        layer: A built `ResidualRNN`, or `ResidualRNNCell`, with the activation
            `"relu"`, which computes in float32 or float64.
        states: Array `(states, units)`, hidden states, such as those of
            `state_trajectories`.
        low: Number, or array `(features,)`: the smallest inputs of the layer
            where there is no event, such as 0 in a channel of marks. Behind a
            `keras.layers.Normalization` these are normalized numbers.
        high: As `low`, the largest ones.

    Returns:
        A `Holds` of arrays `(states,)`: `holds`, `margin` and `unit`.

    Raises:
        ValueError: If the layer is another one, has no weights yet, or an
            argument is not finite or not of its shape, or `low` above `high`.

    Example:

    An event, an input of 1, opens the inner units; between 0 and 0.5 they are
    shut, whatever has happened before.

    >>> layer = keras_rin.layers.ResidualRNN(
    ...     4, inner_units=8, kernel_initializer="ones",
    ...     recurrent_initializer="zeros", bias_initializer=keras.initializers
    ...     .Constant(-0.6),
    ... )
    >>> states = keras.ops.convert_to_numpy(layer(np.ones((5, 3, 1))))
    >>> keras_rin.diagnostics.holds(layer, states, low=0, high=0.5)
    5 of 5 states hold; least margin 0.1, of inner unit 0
    """
    cell = _checked_cell(layer)
    kernel, recurrent_kernel = (
        float64(getattr(cell, name)) for name in ("kernel", "recurrent_kernel")
    )
    features, units = len(kernel), len(recurrent_kernel)
    # The states and inputs as the layer reads them.
    states = _arguments.finite_array("states", states).astype(
        cell.compute_dtype
    )
    _arguments.check_shape("states", states.shape, (len(states), units))
    states = states.astype("float64")
    low, high = (
        np.broadcast_to(_arguments.finite_array(name, value), features)
        for name, value in (("low", low), ("high", high))
    )
    if (low > high).any():
        channel = int((low > high).argmax())
        raise ValueError(
            "`low` must be at most `high`. Received: "
            f"low={low[channel]} and high={high[channel]} in channel {channel}"
        )
    bias = float64(cell.bias) if cell.use_bias else 0.0
    arguments = np.maximum(low[:, None] * kernel, high[:, None] * kernel).sum(0)
    arguments = arguments + states @ recurrent_kernel + bias
    sizes = np.maximum(np.abs(low), np.abs(high)) @ np.abs(kernel)
    sizes = sizes + np.abs(states) @ np.abs(recurrent_kernel) + np.abs(bias)
    arguments = arguments + _rounding(cell, features + units + 3) * sizes
    largest = arguments.max(axis=1)
    return Holds(largest <= 0, -largest, arguments.argmax(axis=1))


def _checked_cell(layer):
    cell = built_cell(layer)
    row = _cell_descriptions.description_of(cell)
    is_residual = row and row.step is _cell_descriptions.residual_step
    if not is_residual or cell.activation is not keras.activations.relu:
        raise ValueError(
            '`layer` must be a `ResidualRNN` with activation="relu", whose '
            f"inner units can be shut. Received: layer={layer}"
        )
    if cell.compute_dtype not in DTYPES:
        raise ValueError(
            f"`layer` must compute in {' or '.join(DTYPES)}. Received: "
            f"layer={layer}, which computes in {cell.compute_dtype}"
        )
    check_weights(cell)
    return cell


def _rounding(cell, operations):
    """Bounds the relative error of a sum of products, in any order.

    That of so many roundings of a term, and of those of the bound itself.
    """
    unit = np.finfo(cell.compute_dtype).eps / 2
    double = operations * np.finfo("float64").eps
    return operations * unit / (1 - operations * unit) + double
