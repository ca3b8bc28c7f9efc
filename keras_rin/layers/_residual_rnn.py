"""ResidualRNN: a residual unit in time, with a penalty that shuts it."""

from collections.abc import Callable
from typing import Any

import keras
from keras import ops
from keras.constraints import Constraint
from keras.initializers import Initializer
from keras.regularizers import Regularizer

from keras_rin import _arguments
from keras_rin.layers._fused_layer import FusedLayer
from keras_rin.layers._residual_rnn_cell import ResidualRNNCell


@keras.saving.register_keras_serializable(package="keras_rin")
class ResidualRNN(FusedLayer):
    """Residual unit in time: a memory that is exact between events.

    h_t = h_{t-1} + activation(a_t) V,  a_t = x_t W + h_{t-1} U + b

    In training this is added to the loss, the mean over the sequences of a
    batch and the sum over their unmasked time steps and inner units:

    penalty * sum max(a_t + margin, 0)

    It asks each inner unit to be shut, by a margin, where nothing happens.
    Where all arguments a_t of a ReLU are at most 0, the hidden state does not
    change by a bit, so what is learned on hundreds of steps holds for
    millions. `keras_rin.diagnostics.holds` proves it for a trained layer. It
    is for events that are rare, not for signals that never rest.

    Normalize the inputs. `keras.optimizers.Adam()` needs no clipping here.

    The weights are, in this order, `kernel` W `(features, inner_units)`,
    `recurrent_kernel` U `(units, inner_units)`, `output_kernel` V
    `(inner_units, units)` and `bias` b `(inner_units,)`.

    Args:
        units: Positive integer, dimensionality of the hidden state and of the
            output.
        inner_units: Positive integer, number of inner units, which read the
            input and the hidden state and add to the latter.
        activation: Activation function of the inner units. Defaults to
            `"relu"`. With another one there is no silence between events.
        use_bias: Boolean, whether the inner units use a bias vector. Defaults
            to `True`.
        kernel_initializer: Initializer of W. Defaults to `"glorot_uniform"`.
        recurrent_initializer: Initializer of U. Defaults to `None`: a normal
            distribution with standard deviation 0.1 / sqrt(units).
        output_initializer: Initializer of V. Defaults to `None`: a normal
            distribution with standard deviation 0.1 / sqrt(inner_units).
        bias_initializer: Initializer of b. Defaults to `None`: -0.5.
        penalty: Number of at least 0, as above. Defaults to 0.001.
        margin: Number of at least 0, as above. Defaults to 0.3.
        kernel_regularizer: Regularizer of W. Defaults to `None`.
        recurrent_regularizer: Regularizer of U. Defaults to `None`.
        output_regularizer: Regularizer of V. Defaults to `None`.
        bias_regularizer: Regularizer of b. Defaults to `None`.
        activity_regularizer: Regularizer of the output. Defaults to `None`.
        kernel_constraint: Constraint on W. Defaults to `None`.
        recurrent_constraint: Constraint on U. Defaults to `None`.
        output_constraint: Constraint on V. Defaults to `None`.
        bias_constraint: Constraint on b. Defaults to `None`.
        dropout: Float in [0, 1], fraction of the inputs to drop, with the same
            mask at every time step. Defaults to 0.
        recurrent_dropout: Float in [0, 1], fraction of the hidden state to
            drop in the product h_{t-1} U, never on the identity path.
            Defaults to 0.
        **options: `return_sequences`, `return_state`, `go_backwards`,
            `stateful`, `unroll`, `zero_output_for_mask`, `seed`, `fused` and
            `recompute` of `RIN`, and `name`, `dtype`, `trainable`.

    Call arguments:
        sequences: Tensor of shape `(batch, time, features)`.
        initial_state: Tensor of shape `(batch, units)`, or a list that
            contains it, cast to the compute dtype. Defaults to `None`: zeros,
            or the last state of the previous batch if `stateful`.
        mask: Boolean tensor of shape `(batch, time)`. Time steps where it is
            `False` leave the hidden state unchanged. Defaults to `None`.
        training: Boolean, whether to apply dropout and to add the penalty.
            Defaults to `False`.
        resets: As in `RIN`. Defaults to `None`.

    Returns:
        The last output `(batch, units)`, or all outputs
        `(batch, time, units)` with `return_sequences`; with `return_state`
        also the last hidden state `(batch, units)`.

    Raises:
        ValueError, NotImplementedError: As `RIN`.

    Example:

    Without an event, here an input of 1, nothing changes.

    >>> layer = keras_rin.layers.ResidualRNN(
    ...     8, inner_units=32, kernel_initializer="ones"
    ... )
    >>> x = np.zeros((1, 1000, 1), "float32")
    >>> x[:, 0] = 1
    >>> first, last = layer(x[:, :1]), layer(x)
    >>> bool(keras.ops.any(last != 0) and keras.ops.all(last == first))
    True

    Reference:
        Hu et al., 2018 (arXiv 1801.06105), for the identity that carries the
        state; Hardt and Ma, 2017 (arXiv 1611.04231), for the residual unit.
    """

    CELL = FUSED_CELL = ResidualRNNCell
    OPTIONS = (*FusedLayer.OPTIONS, "penalty", "margin")

    def __init__(
        self,
        units: int,
        inner_units: int,
        activation: str | Callable | None = "relu",
        use_bias: bool = True,
        kernel_initializer: str | Initializer = "glorot_uniform",
        recurrent_initializer: str | Initializer | None = None,
        output_initializer: str | Initializer | None = None,
        bias_initializer: str | Initializer | None = None,
        penalty: float = 1e-3,
        margin: float = 0.3,
        *,
        kernel_regularizer: str | Regularizer | None = None,
        recurrent_regularizer: str | Regularizer | None = None,
        output_regularizer: str | Regularizer | None = None,
        bias_regularizer: str | Regularizer | None = None,
        activity_regularizer: str | Regularizer | None = None,
        kernel_constraint: str | Constraint | None = None,
        recurrent_constraint: str | Constraint | None = None,
        output_constraint: str | Constraint | None = None,
        bias_constraint: str | Constraint | None = None,
        dropout: float = 0.0,
        recurrent_dropout: float = 0.0,
        fused: bool | str = "auto",
        recompute: bool = False,
        **options: Any,
    ):
        super().__init__("residual_rnn_cell", locals(), options)
        self.penalty = _arguments.finite_number("penalty", penalty, 0)
        self.margin = _arguments.finite_number("margin", margin, 0)
        self.cell.margin = self.margin

    def _margin(self, training):
        return self.margin if training and self.penalty else None

    def _generic_loop(self, sequences, initial_state, mask, training):
        arguments = sequences, initial_state, mask, training
        if self._margin(training) is None:
            return super()._generic_loop(*arguments)
        shape = ops.shape(sequences)[0], 1
        activity = ops.zeros(shape, self.compute_dtype)
        *outputs, (h, activity) = super()._generic_loop(
            sequences, [*initial_state, activity], mask, training
        )
        self._add_penalty(activity)
        return *outputs, [h]

    def _add_penalty(self, activity):
        if activity is not None:
            self.add_loss(self.penalty * ops.mean(activity))
