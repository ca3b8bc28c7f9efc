"""What follows a model while it trains, and brings it through."""

from keras_rin.callbacks.recurrent_diagnostics import RecurrentDiagnostics
from keras_rin.callbacks.restore_on_nan import RestoreOnNaN
from keras_rin.callbacks.resumable_training import ResumableTraining

__all__ = ["RecurrentDiagnostics", "RestoreOnNaN", "ResumableTraining"]
