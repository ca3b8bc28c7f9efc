"""Plots of the diagnostics. matplotlib is imported on first use."""

from keras_rin.plots._curves import plot_gradient_norms
from keras_rin.plots._curves import plot_hidden_chain
from keras_rin.plots._curves import plot_learning_curves
from keras_rin.plots._curves import plot_lyapunov_spectra
from keras_rin.plots._curves import plot_memory_curves
from keras_rin.plots._spectra import plot_eigenvalues
from keras_rin.plots._spectra import plot_jacobian_spectra
from keras_rin.plots._states import plot_fixed_points

__all__ = [
    "plot_eigenvalues",
    "plot_fixed_points",
    "plot_gradient_norms",
    "plot_hidden_chain",
    "plot_jacobian_spectra",
    "plot_learning_curves",
    "plot_lyapunov_spectra",
    "plot_memory_curves",
]
