"""Identity-parametrized and non-normal layers for Keras 3."""

from keras_rin import _installed_backend  # noqa: F401  before Keras
from keras_rin import _removed_classes  # noqa: F401  of files
from keras_rin import callbacks
from keras_rin import cells
from keras_rin import constraints
from keras_rin import constructions
from keras_rin import diagnostics
from keras_rin import export
from keras_rin import initializers
from keras_rin import layers
from keras_rin import models
from keras_rin import plots
from keras_rin import recordings
from keras_rin import regularizers
from keras_rin import tasks
from keras_rin._adapt import adapt
from keras_rin._version import __version__
from keras_rin.recordings import _own_scale  # noqa: F401  is registered

__all__ = [
    "__version__",
    "adapt",
    "callbacks",
    "cells",
    "constraints",
    "constructions",
    "diagnostics",
    "export",
    "initializers",
    "layers",
    "models",
    "plots",
    "recordings",
    "regularizers",
    "tasks",
]
