"""What a recurrent matrix remembers and amplifies: mathematics on arrays."""

from keras_rin.diagnostics.fisher_memory import fisher_memory_curve
from keras_rin.diagnostics.fisher_memory import optimal_input_vector
from keras_rin.diagnostics.fisher_memory import spatial_memory_matrix
from keras_rin.diagnostics.fisher_memory import total_memory
from keras_rin.diagnostics.nonnormality import henrici_departure
from keras_rin.diagnostics.nonnormality import numerical_radius
from keras_rin.diagnostics.nonnormality import product_versus_power
from keras_rin.diagnostics.nonnormality import spectral_radius
from keras_rin.diagnostics.nonnormality import transient_amplification

__all__ = [
    "fisher_memory_curve",
    "henrici_departure",
    "numerical_radius",
    "optimal_input_vector",
    "product_versus_power",
    "spatial_memory_matrix",
    "spectral_radius",
    "total_memory",
    "transient_amplification",
]
