"""Constraints on recurrent matrices."""

from keras_rin.constraints._orthogonal import Orthogonal

__all__ = ["Orthogonal"]
