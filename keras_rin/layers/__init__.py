"""Layers that store their offset from the identity."""

from keras_rin.layers.linear_residual import LinearResidual
from keras_rin.layers.residual_dense_stack import ResidualDenseStack
from keras_rin.layers.rin import RIN
from keras_rin.layers.rin_cell import RINCell

__all__ = ["RIN", "LinearResidual", "RINCell", "ResidualDenseStack"]
