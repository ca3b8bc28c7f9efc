"""Measures of recurrent matrices and of recurrent layers."""

from keras_rin.diagnostics._dynamics.gradients import gradient_norms
from keras_rin.diagnostics._dynamics.lyapunov import LyapunovSpectrum
from keras_rin.diagnostics._dynamics.lyapunov import lyapunov_spectrum
from keras_rin.diagnostics._dynamics.preflight import Preflight
from keras_rin.diagnostics._dynamics.preflight import PreflightLayer
from keras_rin.diagnostics._dynamics.preflight import preflight
from keras_rin.diagnostics._dynamics.trajectories import state_jacobians
from keras_rin.diagnostics._dynamics.trajectories import state_trajectories
from keras_rin.diagnostics._fixed_points.branch_and_bound import SearchEvidence
from keras_rin.diagnostics._fixed_points.branches import Branches
from keras_rin.diagnostics._fixed_points.branches import fixed_point_branches
from keras_rin.diagnostics._fixed_points.certificates import Certificate
from keras_rin.diagnostics._fixed_points.certificates import certificate
from keras_rin.diagnostics._fixed_points.cycles import Cycles
from keras_rin.diagnostics._fixed_points.cycles import cycles
from keras_rin.diagnostics._fixed_points.fixed_points import FixedPoints
from keras_rin.diagnostics._fixed_points.fixed_points import fixed_points
from keras_rin.diagnostics._fixed_points.holds import Holds
from keras_rin.diagnostics._fixed_points.holds import holds
from keras_rin.diagnostics._matrices.fisher_memory import fisher_memory_curve
from keras_rin.diagnostics._matrices.fisher_memory import optimal_input_vector
from keras_rin.diagnostics._matrices.fisher_memory import spatial_memory_matrix
from keras_rin.diagnostics._matrices.fisher_memory import total_memory
from keras_rin.diagnostics._matrices.hidden_chain import HiddenChain
from keras_rin.diagnostics._matrices.hidden_chain import hidden_chain
from keras_rin.diagnostics._matrices.nonnormality import henrici_departure
from keras_rin.diagnostics._matrices.nonnormality import spectral_radius
from keras_rin.diagnostics._matrices.nonnormality import transient_amplification
from keras_rin.diagnostics._matrices.recurrent_matrices import (
    recurrent_matrices,
)
from keras_rin.diagnostics._matrices.schur_ablation import SchurAblation
from keras_rin.diagnostics._matrices.schur_ablation import schur_ablation

__all__ = [
    "Branches",
    "Certificate",
    "Cycles",
    "FixedPoints",
    "HiddenChain",
    "Holds",
    "LyapunovSpectrum",
    "Preflight",
    "PreflightLayer",
    "SchurAblation",
    "SearchEvidence",
    "certificate",
    "cycles",
    "fisher_memory_curve",
    "fixed_point_branches",
    "fixed_points",
    "gradient_norms",
    "henrici_departure",
    "hidden_chain",
    "holds",
    "lyapunov_spectrum",
    "optimal_input_vector",
    "preflight",
    "recurrent_matrices",
    "schur_ablation",
    "spatial_memory_matrix",
    "spectral_radius",
    "state_jacobians",
    "state_trajectories",
    "total_memory",
    "transient_amplification",
]
