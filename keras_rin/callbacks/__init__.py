"""What follows a model while it trains, and brings it through."""

from keras_rin.callbacks.keep_best import KeepBest
from keras_rin.callbacks.recurrent_diagnostics import RecurrentDiagnostics
from keras_rin.callbacks.restore_on_nan import RestoreOnNaN
from keras_rin.callbacks.resumable_training import ResumableTraining

__all__ = [
    "KeepBest",
    "RecurrentDiagnostics",
    "RestoreOnNaN",
    "ResumableTraining",
]
