"""Benchmark tasks for recurrent networks, as NumPy arrays.

A `ValueError` names a size or an array that is not as documented, a `TypeError`
an `rng` that is no `numpy.random.Generator`.
"""

from keras_rin.tasks import adding
from keras_rin.tasks import copying
from keras_rin.tasks import delayed_match
from keras_rin.tasks import flip_flop
from keras_rin.tasks import sequential_pixels

__all__ = [
    "adding",
    "copying",
    "delayed_match",
    "flip_flop",
    "sequential_pixels",
]
