"""MinGRU: the layer of a minimal gated recurrent unit."""

from collections.abc import Callable
from typing import Any

import keras
from keras import ops
from keras.initializers import Initializer
from keras.regularizers import Regularizer

from keras_rin import _arguments
from keras_rin.layers._min_gru_cell import MinGRUCell
from keras_rin.layers._sequence_layer import CellLayer


@keras.saving.register_keras_serializable(package="keras_rin")
class MinGRU(CellLayer):
    """Minimal gated recurrent unit, a `keras.layers.GRU` without recurrence.

    z_t = recurrent_activation(x_t W_z + b_z)
    h_t = h_{t-1} + z_t (activation(x_t W_c + b_c) - h_{t-1})

    The gate and the candidate read the input alone, so a layer has
    2 units (features + 1) weights and its hidden state cannot diverge.
    `MinGRUCell` describes the time step. A layer computes each unit by
    itself: stack layers where units have to interact.

    Args:
        units: Positive integer, dimensionality of the hidden state and of the
            output.
        activation: Activation of the candidate. Defaults to `"linear"`.
        recurrent_activation: Activation of the gate. Defaults to `"sigmoid"`.
        use_bias: Boolean, whether the layer uses a bias vector. Defaults to
            `True`.
        kernel_initializer: Initializer of W_z and W_c. Defaults to
            `"glorot_uniform"`.
        return_sequences: Boolean, whether to return the full sequence of
            outputs or the last output. Defaults to `False`.
        return_state: Boolean, whether to return the last hidden state in
            addition to the output. Defaults to `False`.
        go_backwards: Boolean, whether to process the sequence in reverse
            order and return the reversed sequence. Defaults to `False`.
        stateful: Boolean, whether the last hidden state of sample i is the
            initial state of sample i in the next batch. Defaults to `False`.
        unroll: Boolean, whether to unroll the loop, for short sequences.
            Defaults to `False`.
        zero_output_for_mask: Boolean, whether the outputs of masked time
            steps are zeros rather than the previous output. Defaults to
            `False`.
        parallel: `"auto"`, `True` or `False`, whether to compute all time
            steps at once, by a parallel scan in at least float32, or one after
            the other. The scan has the same results and needs a known number
            of time steps. On two CPU cores it took less time for a single
            sequence and more for 32. `"auto"` is the loop: neither was ever
            timed on a GPU. Defaults to `"auto"`.
        activity_regularizer: Regularizer of the output. Defaults to `None`.
        **options: Further arguments are those of `MinGRUCell`, by name, such as
            `gate_bias`.

    Call arguments:
        sequences: Tensor of shape `(batch, time, features)`.
        initial_state: Tensor of shape `(batch, units)`, or a list that
            contains it. Defaults to `None`: zeros, or the last state of the
            previous batch if `stateful`.
        mask: Boolean tensor of shape `(batch, time)`. Time steps where it is
            `False` leave the hidden state unchanged. Defaults to `None`.
        training: Boolean, whether to apply dropout. Defaults to `False`.
        resets: Boolean tensor of shape `(batch, time)`, `True` where a new
            sequence begins, as in `RIN`. Defaults to `None`.

    Returns:
        The last output `(batch, units)`, or all outputs
        `(batch, time, units)` with `return_sequences`; with `return_state`
        also the last hidden state `(batch, units)`.

    Raises:
        TypeError: If an argument is not one of these.
        ValueError: If `parallel=True` does not support another option.

    Example:

    >>> layer = keras_rin.layers.MinGRU(16)
    >>> tuple(layer(np.ones((32, 10, 4))).shape)
    (32, 16)

    Reference:
        Feng et al., 2024, Were RNNs all we needed? (arXiv 2410.01201);
        Martin and Cundy, 2018, Parallelizing linear recurrent neural nets over
        sequence length (arXiv 1709.04057), for the scan.
    """

    CELL, OPTIONS = MinGRUCell, ("parallel",)

    def __init__(
        self,
        units: int,
        activation: str | Callable | None = "linear",
        recurrent_activation: str | Callable | None = "sigmoid",
        use_bias: bool = True,
        kernel_initializer: str | Initializer = "glorot_uniform",
        *,
        return_sequences: bool = False,
        return_state: bool = False,
        go_backwards: bool = False,
        stateful: bool = False,
        unroll: bool = False,
        zero_output_for_mask: bool = False,
        parallel: bool | str = "auto",
        activity_regularizer: str | Regularizer | None = None,
        **options: Any,
    ):
        super().__init__("min_gru_cell", locals(), options)
        self.parallel = _arguments.auto_or_boolean("parallel", parallel)
        is_plain = type(self.cell) is MinGRUCell and not unroll
        if parallel is True and not is_plain:
            raise ValueError(
                "`parallel=True` supports a MinGRUCell, without `unroll=True`. "
                f"Received: a {type(self.cell).__name__}, unroll={unroll}"
            )

    def inner_loop(self, sequences, initial_state, mask, training=False):
        if self.parallel is not True:  # "auto" has not been timed on a GPU
            return super().inner_loop(sequences, initial_state, mask, training)
        if sequences.shape[1] is None:
            raise ValueError(
                "`parallel=True` needs a known number of time steps, as in "
                f"`keras.Input((1_000, 4))`. Received: {sequences.shape}"
            )
        mask, resets = self._mask_and_resets(mask)
        x = self._cell_sequences(sequences, training)
        # In half precision 1 - z is 1 for a small z, and nothing is forgotten.
        dtype = keras.backend.result_type(x.dtype, "float32")
        gate, candidate, h = (
            ops.cast(value, dtype)
            for value in (*self.cell.gate_and_candidate(x), initial_state[0])
        )
        # h_t = keep_t h_{t-1} + added_t
        keep, added = 1 - gate, gate * candidate
        if mask is not None:
            keep = ops.where(mask[..., None], keep, 1)
            added = ops.where(mask[..., None], added, 0)
        if resets is not None:
            keep = ops.where(resets[..., None], 0, keep)
        first = added[:, :1] + keep[:, :1] * h[:, None]
        added = ops.concatenate([first, added[:, 1:]], axis=1)
        states = ops.cast(_scan(keep, added), x.dtype)
        states = states if self.return_sequences else states[:, -1]
        return self._results(states, mask)


def _scan(keep, added):
    """All h_t = keep_t h_{t-1} + added_t from h_0 = 0.

    Two steps are one of the same form, so half as many give every second state.
    XLA compiles no `keras.ops.associative_scan` of TensorFlow.
    """
    length = keep.shape[1]
    if length == 1:
        return added
    pairs = length // 2
    earlier, keep_odd = slice(0, 2 * pairs, 2), keep[:, 1::2]
    odd = _scan(
        keep[:, earlier] * keep_odd,
        added[:, earlier] * keep_odd + added[:, 1::2],
    )
    even = keep[:, 2::2] * odd[:, : (length - 1) // 2] + added[:, 2::2]
    even = ops.concatenate([added[:, :1], even], axis=1)
    both = ops.stack([even[:, :pairs], odd], axis=2)
    both = ops.reshape(both, (-1, 2 * pairs, keep.shape[2]))
    return ops.concatenate([both, even[:, pairs:]], axis=1)
