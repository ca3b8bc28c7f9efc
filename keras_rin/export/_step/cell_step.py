"""Layers of one time step: of a recurrent layer, of a causal convolution."""

import keras
from keras import ops

from keras_rin._cell_descriptions import description_of
from keras_rin.export._step.stepwise import refuse


class CellStep(keras.layers.Layer):
    """The cell of a layer by another name: Keras calls them all alike."""

    def __init__(self, layer):
        super().__init__(
            name=f"{layer.name}_step", dtype=layer.cell.dtype_policy
        )
        self.supports_masking = True
        self.cell = layer.cell
        self.layer_dtype = layer.compute_dtype
        self.return_sequences = layer.return_sequences
        self.zero_output_for_mask = layer.zero_output_for_mask

    def call(self, x, states, x_mask=None):
        if keras.backend.is_float_dtype(x.dtype):
            x = ops.cast(x, self.layer_dtype)
        states = keras.tree.map_structure(
            lambda s: _with_batch_size_of(s, x), states
        )
        y, new_states = self.cell(x[:, 0], states)
        _reset_dropout_masks(self.cell)
        if x_mask is not None:
            is_unmasked = x_mask[:, 0]
            y = _select(is_unmasked, y, self._output_before(states, y))
            old, new = map(keras.tree.flatten, (states, new_states))
            selected = map(_select, [is_unmasked] * len(old), new, old)
            new_states = keras.tree.pack_sequence_as(states, list(selected))
        y = ops.cast(y, self.layer_dtype)
        return ops.expand_dims(y, 1) if self.return_sequences else y, new_states

    def compute_mask(self, x, previous_mask):
        return [previous_mask if self.return_sequences else None]

    def _output_before(self, states, y):
        """The output of Keras at a masked step."""
        if self.zero_output_for_mask:
            return ops.zeros_like(y)
        cell = self.cell
        if isinstance(cell, keras.layers.StackedRNNCells):
            cell, states = cell.cells[-1], states[-1]
        refuse(
            self,
            {
                "it has a mask, and at a masked step it repeats its previous "
                "output, which may not be one of its states; create it with "
                "`zero_output_for_mask=True`": (description_of(cell) is None),
            },
        )
        return keras.tree.flatten(states)[0]


def _with_batch_size_of(state, x):
    """The state, or an error: one of another batch size would be broadcast."""
    batch, state_batch = x.shape[0], state.shape[0]
    if batch is not None and batch == state_batch:
        return state
    # The sizes are known only when the graph runs, where `concatenate` fails
    # if they differ; TensorFlow takes a `reshape` out of the graph.
    column = ops.reshape(x, (ops.shape(x)[0], -1))[:, :1]
    flat = ops.reshape(state, (ops.shape(state)[0], -1))
    joined = ops.concatenate([flat, ops.cast(column, state.dtype)], axis=1)
    return ops.reshape(joined[:, :-1], ops.shape(state))


def _reset_dropout_masks(cell):
    """A cell keeps the masks it has drawn until its layer takes them away."""
    for inner in getattr(cell, "cells", [cell]):
        if hasattr(inner, "reset_dropout_mask"):
            inner.reset_dropout_mask()
            inner.reset_recurrent_dropout_mask()


def _select(is_unmasked, new, old):
    shape = (-1, *(1 for _ in new.shape[1:]))
    return ops.where(ops.reshape(is_unmasked, shape), new, old)


class ConvolutionStep(keras.layers.Layer):
    """The convolution of x and the samples before it, which are a state."""

    def __init__(self, layer):
        super().__init__(name=f"{layer.name}_step", dtype=layer.dtype_policy)
        self.layer = layer

    def call(self, x, before):
        layer = self.layer
        samples = ops.concatenate([before, x], axis=1)
        y = ops.conv(
            samples,
            layer.kernel,
            layer.strides[0],
            dilation_rate=layer.dilation_rate[0],
            data_format="channels_last",
        )
        if layer.use_bias:
            y += layer.bias
        if layer.activation is not None:
            y = layer.activation(y)
        return y, samples[:, x.shape[1] :]
