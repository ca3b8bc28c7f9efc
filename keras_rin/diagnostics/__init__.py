"""What a recurrent matrix, or a layer, remembers: mathematics on arrays."""

from keras_rin.diagnostics.gradients import gradient_horizon
from keras_rin.diagnostics.hidden_chain import hidden_chain
from keras_rin.diagnostics.recurrent_layers import recurrent_matrices

__all__ = ["gradient_horizon", "hidden_chain", "recurrent_matrices"]
