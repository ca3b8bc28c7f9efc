"""Identity-parametrised and non-normal layers for Keras 3."""

from keras_rin import initializers
from keras_rin import layers
from keras_rin import models
from keras_rin import regularizers
from keras_rin import tasks
from keras_rin.version import __version__

__all__ = [
    "__version__",
    "initializers",
    "layers",
    "models",
    "regularizers",
    "tasks",
]
