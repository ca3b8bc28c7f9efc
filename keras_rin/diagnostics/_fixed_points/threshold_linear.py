"""Layers with ReLU, as networks h = relu(h V + c) of rates."""

import typing

import keras
import numpy as np

from keras_rin import _arguments
from keras_rin import _cell_descriptions
from keras_rin._layer_walk.layers import feature_count
from keras_rin.diagnostics._built_cell import built_cell
from keras_rin.diagnostics._built_cell import check_weights
from keras_rin.diagnostics._built_cell import float64
from keras_rin.diagnostics._matrices.recurrent_matrices import (
    recurrent_matrices,
)


class ThresholdLinear(typing.NamedTuple):
    """V, W, b and the leak: s = (1 - leak) s + leak (relu(s) V + c).

    Of a SimpleRNN or RIN, where the leak is `None`, s = relu(s V + c). Of a
    ResidualRNN, which has an output kernel O, s = s + relu(s V + c) O.
    """

    cell: keras.layers.Layer
    matrix: np.ndarray
    kernel: np.ndarray
    bias: np.ndarray
    leak: float | None
    factors: tuple[np.ndarray, np.ndarray] | None  # N and M of V = N M'
    output: np.ndarray | None

    @property
    def units(self):
        return len(self.matrix)

    def drive(self, x, name="x"):
        """c = x W + b, of zeros if `x` is `None`."""
        features = feature_count(self.cell) or 1
        x = np.zeros(features) if x is None else x
        return _arguments.vector(name, x, features) @ self.kernel + self.bias

    def states(self, rates, drive):
        """The states of fixed points, a row each, from their rates."""
        return rates if self.leak is None else rates @ self.matrix + drive

    def jacobian(self, is_active):
        """J_ij = d F_i / d s_j where these units are active, or matrices."""
        if self.output is not None:
            added = (self.matrix * is_active) @ self.output
            return np.eye(self.units) + added.T
        if self.leak is None:
            return is_active[..., :, None] * self.matrix.T
        identity = np.eye(self.units)
        slopes = self.matrix.T * is_active[..., None, :]
        return identity + self.leak * (slopes - identity)


def threshold_linear(layer, name, or_residual=False) -> ThresholdLinear:
    """The network of a layer; `name` is what asks for it."""
    cell = built_cell(layer)
    check_weights(cell)
    has_relu = getattr(cell, "activation", None) is keras.activations.relu
    row = _cell_descriptions.description_of(cell)
    steps = [_cell_descriptions.transition, _cell_descriptions.rate_step]
    steps += [_cell_descriptions.residual_step] * or_residual
    if not (has_relu and row and row.step in steps):
        layers = "SimpleRNN, RIN, RateRNN or ResidualRNN"
        layers = layers if or_residual else "SimpleRNN, RIN or RateRNN"
        raise ValueError(
            f"{name} takes a {layers} with ReLU. Received: layer={cell}"
        )
    factors = output = None
    if getattr(cell, "rank", None):
        left, right = map(float64, (cell.left_vectors, cell.right_vectors))
        factors = left / cell.units, right
        matrix = factors[0] @ right.T  # the cell rounds it to its dtype
    elif row.step is _cell_descriptions.residual_step:
        matrix = float64(cell.recurrent_kernel)
        output = float64(cell.output_kernel)
    else:
        matrix = recurrent_matrices(cell)["recurrent"]
    bias = np.zeros(matrix.shape[1])
    is_rate_network = row.step is _cell_descriptions.rate_step
    return ThresholdLinear(
        cell=cell,
        matrix=matrix,
        kernel=float64(cell.kernel),
        bias=bias if cell.bias is None else float64(cell.bias),
        leak=cell.dt / cell.tau if is_rate_network else None,
        factors=factors,
        output=output,
    )
