"""ResidualRNNCell: one time step of a residual unit in time."""

from collections.abc import Callable
from typing import Any

import keras
from keras import ops
from keras.constraints import Constraint
from keras.initializers import Initializer
from keras.regularizers import Regularizer

from keras_rin import _arguments
from keras_rin.initializers._serialization import with_initializers
from keras_rin.layers._dropout import apply_dropout
from keras_rin.layers._residual_branch import add_weight_of

# A tenth of the usual standard deviation, as 1 / sqrt(rows): the state moves
# slowly before training.
SMALL_VARIANCE = 0.01


@keras.saving.register_keras_serializable(package="keras_rin")
class ResidualRNNCell(keras.layers.SimpleRNNCell):
    """Cell class of the `ResidualRNN` layer: one step of a residual unit.

    h_t = h_{t-1} + activation(x_t W + h_{t-1} U + b) V

    Where all arguments of a ReLU are at most 0, the hidden state does not
    change by a bit. In `keras.layers.RNN(ResidualRNNCell(...))` there is no
    penalty that leads training there: add one, or use `ResidualRNN`.

    The weights are, in this order, `kernel` W `(features, inner_units)`,
    `recurrent_kernel` U `(units, inner_units)`, `output_kernel` V
    `(inner_units, units)` and `bias` b `(inner_units,)`.

    Args:
        units: Positive integer, dimensionality of the hidden state and of the
            output.
        inner_units: Positive integer, number of inner units, which read the
            input and the hidden state and add to the latter. All arguments
            are those of `ResidualRNN`.
        **options: Further arguments of `keras.layers.SimpleRNNCell`, by name.

    Call arguments:
        inputs: Tensor of shape `(batch, features)`.
        states: Tensor of shape `(batch, units)`, or a list that contains it.
        training: Boolean, whether to apply dropout. Defaults to `False`.

    Returns:
        The output h_t `(batch, units)` and the new hidden state, which is the
        same tensor, in a list if `states` is a list.

    Example:

    >>> cell = keras_rin.layers.ResidualRNNCell(8, inner_units=32)
    >>> layer = keras.layers.RNN(cell)
    >>> tuple(layer(np.ones((32, 10, 4))).shape)
    (32, 8)

    Reference:
        Hu et al., 2018 (arXiv 1801.06105), for the identity that carries the
        state; Hardt and Ma, 2017 (arXiv 1611.04231), for the residual unit.
    """

    # What `ResidualRNN` adds to the arguments that it sums.
    margin = 0.0

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
        *,
        output_regularizer: str | Regularizer | None = None,
        output_constraint: str | Constraint | None = None,
        **options: Any,
    ):
        for name in ("dropout", "recurrent_dropout"):
            _arguments.finite_number(name, options.get(name, 0), 0, 1)
        if bias_initializer is None:
            bias_initializer = keras.initializers.Constant(-0.5)
        super().__init__(
            _arguments.integer("units", units),
            activation=activation,
            use_bias=use_bias,
            kernel_initializer=kernel_initializer,
            recurrent_initializer=recurrent_initializer or _small_variance(),
            bias_initializer=bias_initializer,
            **options,
        )
        self.inner_units = _arguments.integer("inner_units", inner_units)
        self.output_initializer = keras.initializers.get(
            output_initializer or _small_variance()
        )
        self.output_regularizer = keras.regularizers.get(output_regularizer)
        self.output_constraint = keras.constraints.get(output_constraint)

    def build(self, input_shape):
        units, inner_units = self.units, self.inner_units
        for weight, name, shape in (
            ("kernel", "kernel", (input_shape[-1], inner_units)),
            ("recurrent", "recurrent_kernel", (units, inner_units)),
            ("output", "output_kernel", (inner_units, units)),
        ):
            setattr(self, name, add_weight_of(self, weight, name, shape))
        self.bias = None
        if self.use_bias:
            self.bias = add_weight_of(self, "bias", "bias", (inner_units,))

    def call(self, inputs, states, training=False):
        is_list = isinstance(states, (list, tuple))
        h, *activity = states if is_list else [states]
        x, dropped_h = apply_dropout(self, inputs, h, training)
        a = ops.matmul(x, self.kernel)
        a = a + ops.matmul(dropped_h, self.recurrent_kernel)
        a = a + self.bias if self.use_bias else a
        h = h + ops.matmul(self.activation(a), self.output_kernel)
        if activity:  # of `ResidualRNN`, in a loop of Keras
            near = ops.relu(a + self.margin)
            activity = [activity[0] + ops.sum(near, axis=-1, keepdims=True)]
        return h, [h, *activity] if is_list else h

    def get_config(self):
        config = {
            **super().get_config(),
            "inner_units": self.inner_units,
            "output_initializer": None,
            "output_regularizer": keras.regularizers.serialize(
                self.output_regularizer
            ),
            "output_constraint": keras.constraints.serialize(
                self.output_constraint
            ),
        }
        return with_initializers(self, config)


def _small_variance():
    # Each cell needs new instances, because an initializer returns the same
    # values at every call. Each takes a seed of Keras's generator.
    return keras.initializers.VarianceScaling(
        SMALL_VARIANCE, mode="fan_in", distribution="untruncated_normal"
    )
