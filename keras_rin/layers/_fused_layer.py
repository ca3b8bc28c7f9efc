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
        _arguments.auto_or_boolean("fused", self.fused)
        name = "recompute" if self.recompute else "fused"
        if (self.fused is True or self.recompute) and (
            options := self._unsupported_options()
        ):
            raise ValueError(
                f"`{name}=True` does not support {' and '.join(options)}."
            )

    def inner_loop(self, sequences, initial_state, mask, training=False):
        has_resets = isinstance(mask, tuple)
        if has_resets and (self.fused is True or self.recompute):
            raise ValueError(
                "`resets` needs the loop of Keras: create "
                f"{self.name} without `fused=True` and `recompute=True`."
            )
        if has_resets or not self._uses_fused_recurrence(sequences, training):
            return self._generic_loop(sequences, initial_state, mask, training)
        x = self._cell_sequences(sequences, training)
        mask, _ = self._mask_and_resets(mask)
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
        return self._results(states, mask)

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
