"""What follows a model while it trains, and brings it through."""

from keras_rin.callbacks.recurrent_diagnostics import RecurrentDiagnostics

__all__ = ["RecurrentDiagnostics"]
