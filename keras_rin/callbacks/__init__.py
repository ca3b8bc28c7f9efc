"""Callbacks that save, resume and follow training."""

from keras_rin.callbacks._keep_best import KeepBest
from keras_rin.callbacks._recurrent_diagnostics import RecurrentDiagnostics
from keras_rin.callbacks._restore_on_nan import RestoreOnNaN
from keras_rin.callbacks._resumable_training import ResumableTraining

__all__ = [
    "KeepBest",
    "RecurrentDiagnostics",
    "RestoreOnNaN",
    "ResumableTraining",
]
