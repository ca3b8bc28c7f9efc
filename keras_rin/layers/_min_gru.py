"""MinGRU: the layer of a minimal gated recurrent unit."""

from collections.abc import Callable
from typing import Any

import keras
from keras.initializers import Initializer
from keras.regularizers import Regularizer

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

    Returns:
        The last output `(batch, units)`, or all outputs
        `(batch, time, units)` with `return_sequences`; with `return_state`
        also the last hidden state `(batch, units)`.

    Raises:
        TypeError: If an argument is not one of these.

    Example:

    >>> layer = keras_rin.layers.MinGRU(16)
    >>> tuple(layer(np.ones((32, 10, 4))).shape)
    (32, 16)

    Reference:
        Feng et al., 2024, Were RNNs all we needed? (arXiv 2410.01201).
    """

    CELL = MinGRUCell

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
        activity_regularizer: str | Regularizer | None = None,
        **options: Any,
    ):
        super().__init__("min_gru_cell", locals(), options)
