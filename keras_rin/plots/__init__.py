"""Plots of the diagnostics. matplotlib is imported on first use.

Each draws on `ax` and returns the `Figure`, by default a new one of
`matplotlib.pyplot`: `pyplot.show()` shows it in a script, a notebook by itself.
The keys of a dict are the legend; `STYLES` has one style for each layer and
initializer in all plots. A `ValueError` names data of another type or shape and
an empty dict.
"""

from keras_rin.plots._branches import plot_branches
from keras_rin.plots._branches import plot_cycles
from keras_rin.plots._curves import plot_gradient_norms
from keras_rin.plots._curves import plot_hidden_chain
from keras_rin.plots._curves import plot_learning_curves
from keras_rin.plots._curves import plot_lyapunov_spectra
from keras_rin.plots._curves import plot_memory_curves
from keras_rin.plots._curves import plot_schur_ablation
from keras_rin.plots._drawing import STYLES
from keras_rin.plots._fixed_points import plot_fixed_points
from keras_rin.plots._flow import plot_flow
from keras_rin.plots._planes import plot_eigenvalues
from keras_rin.plots._planes import plot_jacobian_spectra

__all__ = [
    "STYLES",
    "plot_branches",
    "plot_cycles",
    "plot_eigenvalues",
    "plot_fixed_points",
    "plot_flow",
    "plot_gradient_norms",
    "plot_hidden_chain",
    "plot_jacobian_spectra",
    "plot_learning_curves",
    "plot_lyapunov_spectra",
    "plot_memory_curves",
    "plot_schur_ablation",
]
