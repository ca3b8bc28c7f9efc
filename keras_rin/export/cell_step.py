"""CellStep: one time step of a recurrent layer, as a layer."""

import keras
from keras import ops

from keras_rin.export.stepwise import refusal
from keras_rin.layers import DeepTransitionRINCell
from keras_rin.layers import RINCell

# Cells whose output is the first of their states.
SHOWS_ITS_STATE = (
    keras.layers.SimpleRNNCell,
    keras.layers.GRUCell,
    keras.layers.LSTMCell,
    RINCell,
    DeepTransitionRINCell,
)


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
        states = keras.tree.map_structure(lambda s: _of_batch(s, x), states)
        y, new_states = self.cell(x[:, 0], states)
        _forget_dropout(self.cell)
        if x_mask is not None:
            counts = self._checked(x_mask)[:, 0]
            y = _where(counts, y, self._output_before(states, y))
            new_states = keras.tree.pack_sequence_as(
                states,
                [
                    _where(counts, new, old)
                    for new, old in zip(
                        keras.tree.flatten(new_states),
                        keras.tree.flatten(states),
                        strict=True,
                    )
                ],
            )
        y = ops.cast(y, self.layer_dtype)
        return ops.expand_dims(y, 1) if self.return_sequences else y, new_states

    def compute_mask(self, x, previous_mask):
        return [previous_mask if self.return_sequences else None]

    def _checked(self, mask):
        if mask.ndim != 2:
            raise refusal(
                self, f"its mask has the shape {mask.shape}, not (batch, time)"
            )
        return mask

    def _output_before(self, states, y):
        """What Keras gives for a step that is masked."""
        if self.zero_output_for_mask:
            return ops.zeros_like(y)
        cell = self.cell
        if isinstance(cell, keras.layers.StackedRNNCells):
            cell, states = cell.cells[-1], states[-1]
        if type(cell) not in SHOWS_ITS_STATE:
            raise refusal(
                self,
                "it has a mask, and at a masked step it repeats its previous "
                "output, which may not be one of its states; create it with "
                "`zero_output_for_mask=True`",
            )
        return keras.tree.flatten(states)[0]


def _of_batch(state, x):
    """The state, or an error: one of another batch size would be broadcast."""
    batch, found = x.shape[0], state.shape[0]
    if None not in (batch, found):
        if batch != found:
            raise ValueError(
                f"States must have the batch size of `x`, {batch}. "
                f"Received: a state of shape {tuple(state.shape)}"
            )
        return state
    # The exported graph alone will know the sizes: what it joins is of one.
    column = ops.reshape(x, (ops.shape(x)[0], -1))[:, :1]
    flat = ops.reshape(state, (ops.shape(state)[0], -1))
    joined = ops.concatenate([flat, ops.cast(column, state.dtype)], axis=1)
    return ops.reshape(joined[:, :-1], ops.shape(state))


def _forget_dropout(cell):
    """A cell keeps the masks it has drawn until its layer takes them away."""
    for one in getattr(cell, "cells", [cell]):
        if hasattr(one, "reset_dropout_mask"):
            one.reset_dropout_mask()
            one.reset_recurrent_dropout_mask()


def _where(counts, one, other):
    shape = (-1, *(1 for _ in one.shape[1:]))
    return ops.where(ops.reshape(counts, shape), one, other)
