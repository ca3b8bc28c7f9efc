"""Regularizers of the distance of a matrix from the identity."""

from keras_rin.regularizers._identity_offset_l2 import IdentityOffsetL2

__all__ = ["IdentityOffsetL2"]
