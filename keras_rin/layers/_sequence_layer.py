"""SequenceLayer: the base class of RIN, MinGRU, NoisyRNN and RateRNN."""

from typing import Any

import keras

from keras_rin._backends import require_batch_size
from keras_rin._backends import with_known_features
from keras_rin._layer_walk.layers import hidden_states


class SequenceLayer(keras.layers.RNN):
    """Knows the number of features, and carries states on every backend."""

    def build(self, sequences_shape, initial_state_shape=None):
        super().build(sequences_shape, initial_state_shape)
        features = sequences_shape[-1]
        self.input_spec = keras.InputSpec(ndim=3, axes={-1: features})

    def _known_sequences(self, sequences):
        """The sequences with all sizes that the layer knows."""
        sequences = with_known_features(self, sequences)
        return (
            require_batch_size(self, sequences) if self.stateful else sequences
        )

    @property
    def variables(self) -> list[Any]:
        """All variables, on JAX with the states of a stateful layer.

        `fit`, `predict` and `evaluate` carry nothing else from batch to batch
        on JAX. The states are no `weights`, and are not saved.
        """
        variables = super().variables
        if keras.backend.backend() != "jax":
            return variables
        return [*variables, *hidden_states(self)]
