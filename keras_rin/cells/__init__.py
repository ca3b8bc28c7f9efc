"""Recurrent cells of one's own, each described once."""

from keras_rin._cell_descriptions import CellDescription
from keras_rin._cell_descriptions import transition
from keras_rin.cells._describe import describe

__all__ = ["CellDescription", "describe", "transition"]
