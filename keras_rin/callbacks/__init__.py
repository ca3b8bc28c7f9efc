"""Callbacks that guard and follow training."""

from keras_rin.callbacks._recurrent_diagnostics import RecurrentDiagnostics
from keras_rin.callbacks._restore_on_nan import RestoreOnNaN

__all__ = ["RecurrentDiagnostics", "RestoreOnNaN"]
