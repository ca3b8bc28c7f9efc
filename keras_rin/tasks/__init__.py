"""Benchmark tasks for recurrent networks, as NumPy arrays."""

from keras_rin.tasks import adding
from keras_rin.tasks import copying
from keras_rin.tasks import flip_flop
from keras_rin.tasks import sequential_pixels

__all__ = [
    "adding",
    "copying",
    "flip_flop",
    "sequential_pixels",
]
