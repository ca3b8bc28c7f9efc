"""Plots of the diagnostics. matplotlib is imported on first use."""

from keras_rin.plots._curves import gradient_norms
from keras_rin.plots._curves import hidden_chain
from keras_rin.plots._curves import learning_curves
from keras_rin.plots._curves import memory_curves
from keras_rin.plots._spectra import eigenvalues
from keras_rin.plots._spectra import jacobian_spectra
from keras_rin.plots._spectra import lyapunov_spectra
from keras_rin.plots._states import fixed_points

__all__ = [
    "eigenvalues",
    "fixed_points",
    "gradient_norms",
    "hidden_chain",
    "jacobian_spectra",
    "learning_curves",
    "lyapunov_spectra",
    "memory_curves",
]
