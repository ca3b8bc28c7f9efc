"""FusedLayer: the base class of the layers that the fused recurrence runs."""

from typing import Any

import keras
from keras import ops

from keras_rin import _arguments
from keras_rin._recurrence.activations import PULLBACKS
from keras_rin._recurrence.backends import keras_predicts
from keras_rin._recurrence.fused import BACKENDS
from keras_rin._recurrence.fused import identity_recurrence
from keras_rin._recurrence.operands import Operands
from keras_rin.layers._sequence_layer import CellLayer


class FusedLayer(CellLayer):
    """Runs the fused recurrence where it is supported, else Keras's loop."""

    FUSED_CELL: Any  # the class of cells whose step the recurrence has
    OPTIONS: tuple[str, ...] = ("fused", "recompute")

    def __init__(self, cell_name, arguments, others):
        super().__init__(cell_name, arguments, others)
        self.fused, self.recompute = arguments["fused"], arguments["recompute"]
        self.recompute = bool(self.recompute)
        if not (self.fused == "auto" or isinstance(self.fused, bool)):
            raise ValueError(
                '`fused` must be "auto", True or False. '
                f"Received: fused={self.fused!r}"
            )
        name = "recompute" if self.recompute else "fused"
        if (self.fused is True or self.recompute) and (
            options := self._unsupported_options()
        ):
            raise ValueError(
                f"`{name}=True` does not support {' and '.join(options)}."
            )

    def call(self, sequences, initial_state=None, mask=None, training=False):
        self._check_call(sequences, initial_state, mask)
        return super().call(sequences, initial_state, mask, training)

    def _check_call(self, sequences, initial_state, mask):
        batch, time, _ = sequences.shape
        if mask is not None:
            _arguments.check_shape("mask", ops.shape(mask), (batch, time))
            if self.unroll and self.zero_output_for_mask:
                raise ValueError(
                    f"{self.name} with `zero_output_for_mask=True` takes a "
                    "mask only with `unroll=False`: the unrolled loop of Keras "
                    "sets the outputs of other time steps to zero."
                )
        if initial_state is not None:
            states = keras.tree.flatten(initial_state)
            if len(states) != 1:
                raise ValueError(
                    "`initial_state` must be one tensor, or a list of one. "
                    f"Received: {len(states)} tensors"
                )
            shape = ops.shape(states[0])
            _arguments.check_shape("initial_state", shape, (batch, self.units))

    def inner_loop(self, sequences, initial_state, mask, training=False):
        if not self._uses_fused_recurrence(sequences, training):
            return self._generic_loop(sequences, initial_state, mask, training)
        x = self._in_processing_order(sequences)
        dropout_mask = self.cell.get_dropout_mask(x[:, 0])
        if training and dropout_mask is not None:
            x = x * dropout_mask[:, None]
        if mask is not None:
            mask = self._in_processing_order(ops.cast(mask, "bool"))
        kernel = self.cell.kernel
        bias = self.cell.bias if self.use_bias else None
        states, activity = identity_recurrence(
            Operands(
                x,
                kernel,
                ops.zeros(kernel.shape[1], x.dtype) if bias is None else bias,
                ops.cast(initial_state[0], x.dtype),
                self.cell.recurrent_kernel,
                getattr(self.cell, "output_kernel", None),
                mask,
            ),
            self.cell.activation,
            margin=self._margin(training),
            return_sequences=self.return_sequences,
            recompute=self.recompute,
        )
        self._add_penalty(activity)
        outputs = self._masked_outputs(states, mask)
        if not self.return_sequences:
            return outputs, outputs, [states]
        return outputs[:, -1], outputs, [states[:, -1]]

    def _in_processing_order(self, sequences):
        return ops.flip(sequences, 1) if self.go_backwards else sequences

    def _masked_outputs(self, states, mask):
        """The outputs, with those of Keras at masked time steps."""
        if mask is None:
            return states
        if self.zero_output_for_mask:
            has_output = mask
        elif keras.backend.backend() == "jax":
            return states
        else:
            # Keras returns zeros up to the first step that is not masked.
            has_output = ops.cumsum(ops.cast(mask, "int32"), axis=1) > 0
        if not self.return_sequences:
            has_output = has_output[:, -1]
        return ops.where(has_output[..., None], states, 0)

    def _generic_loop(self, sequences, initial_state, mask, training):
        return super().inner_loop(sequences, initial_state, mask, training)

    def _margin(self, training):
        """That of a penalty on arguments near 0, `None` without one."""

    def _add_penalty(self, activity):
        """Adds that of the sum of arguments near 0."""

    def _uses_fused_recurrence(self, x, training):
        """Whether a call runs the fused recurrence."""
        if not self.fused or self._unsupported_options(training):
            return False
        is_tensorflow = keras.backend.backend() == "tensorflow"
        if self.fused is True or training or not is_tensorflow:
            return True
        # Elsewhere TensorFlow may be tracing the graph for an export.
        return keras_predicts(x, *(weight.value for weight in self.weights))

    def _unsupported_options(self, training=True):
        """The options in use that the fused recurrence does not support."""
        backend, rate = keras.backend.backend(), self.recurrent_dropout
        activation = getattr(self.activation, "__name__", self.activation)
        # A callable of the user may have no hash.
        supported_activations = list(PULLBACKS)
        names = ", ".join(phi.__name__ for phi in supported_activations)
        is_unsupported = {
            f"the backend {backend}": backend not in BACKENDS,
            f"a {type(self.cell).__name__}": (
                type(self.cell) is not self.FUSED_CELL
            ),
            f"activation={activation!r} (only {names})": (
                self.activation not in supported_activations
            ),
            "fused=False": not self.fused,
            "unroll=True": self.unroll,
            f"recurrent_dropout={rate}": training and rate,
        }
        return [option for option, value in is_unsupported.items() if value]
