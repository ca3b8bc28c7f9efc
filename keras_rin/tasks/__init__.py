"""Tasks for recurrent networks, as NumPy arrays."""

from keras_rin.tasks import adding
from keras_rin.tasks import sequential_pixels

__all__ = ["adding", "sequential_pixels"]
