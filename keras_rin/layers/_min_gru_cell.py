"""MinGRUCell: one time step of a minimal gated recurrent unit."""

from collections.abc import Callable
from typing import Any

import keras
from keras import ops
from keras.constraints import Constraint
from keras.initializers import Initializer
from keras.regularizers import Regularizer

from keras_rin import _arguments
from keras_rin.initializers._serialization import with_initializers

# What a layer of Keras takes, of whatever class.
OTHER_OPTIONS = {"name", "dtype", "trainable", "autocast"}
RECURRENT_OPTIONS = (
    "recurrent_initializer",
    "recurrent_regularizer",
    "recurrent_constraint",
    "recurrent_dropout",
    "reset_after",
)


@keras.saving.register_keras_serializable(package="keras_rin")
class MinGRUCell(keras.layers.GRUCell):
    """Cell class of the `MinGRU` layer: one step of a minimal gated unit.

    z_t = recurrent_activation(x_t W_z + b_z)
    h_t = h_{t-1} + z_t (activation(x_t W_c + b_c) - h_{t-1})

    The gate z_t and the candidate read the input alone: there is no recurrent
    matrix. With a gate between 0 and 1 the hidden state stays among the
    candidates, so it cannot diverge. The offset from the identity,
    -z_t h_{t-1}, forgets within about 1 / z_t time steps.

    The weights are `kernel` `(features, 2 units)`, W_z and W_c side by side,
    and `bias` `(2 units,)`, b_z and b_c.

    Args:
        units: Positive integer, dimensionality of the hidden state and of the
            output.
        activation: Activation of the candidate. Defaults to `"linear"`.
        recurrent_activation: Activation of the gate. Defaults to `"sigmoid"`.
        use_bias: Boolean, whether the cell uses a bias vector. Defaults to
            `True`.
        kernel_initializer: Initializer of W_z and W_c. Defaults to
            `"glorot_uniform"`.
        bias_initializer: Initializer of b_c. Defaults to `"zeros"`.
        gate_bias: Finite number, the initial value of b_z. At -3 a gate of
            `"sigmoid"` begins near 0.05, with a memory of about 21 time
            steps. Defaults to -3.0.
        kernel_regularizer: Regularizer of W_z and W_c. Defaults to `None`.
        bias_regularizer: Regularizer of b_z and b_c. Defaults to `None`.
        kernel_constraint: Constraint on W_z and W_c. Defaults to `None`.
        bias_constraint: Constraint on b_z and b_c. Defaults to `None`.
        dropout: Float in [0, 1], fraction of the inputs to drop, with the same
            mask at every time step. Defaults to 0.
        seed: Integer, random seed of the dropout masks. Defaults to `None`.
        **kwargs: `name`, `dtype`, `trainable`, `autocast`.

    Call arguments:
        inputs: Tensor of shape `(batch, features)`.
        states: Tensor of shape `(batch, units)`, or a list that contains it.
        training: Boolean, whether to apply dropout. Defaults to `False`.

    Returns:
        The output h_t `(batch, units)` and the new hidden state, which is the
        same tensor, in a list if `states` is a list.

    Raises:
        TypeError: If an argument is not one of these.

    Example:

    >>> layer = keras.layers.RNN(keras_rin.layers.MinGRUCell(16))
    >>> tuple(layer(np.ones((32, 10, 4))).shape)
    (32, 16)

    Reference:
        Feng et al., 2024, Were RNNs all we needed? (arXiv 2410.01201).
    """

    def __init__(
        self,
        units: int,
        activation: str | Callable | None = "linear",
        recurrent_activation: str | Callable | None = "sigmoid",
        use_bias: bool = True,
        kernel_initializer: str | Initializer = "glorot_uniform",
        *,
        bias_initializer: str | Initializer = "zeros",
        gate_bias: float = -3.0,
        kernel_regularizer: str | Regularizer | None = None,
        bias_regularizer: str | Regularizer | None = None,
        kernel_constraint: str | Constraint | None = None,
        bias_constraint: str | Constraint | None = None,
        dropout: float = 0.0,
        seed: int | None = None,
        **kwargs: Any,
    ):
        if unknown := sorted(kwargs.keys() - OTHER_OPTIONS):
            raise TypeError(
                "A minGRU has no recurrent matrix, and no other arguments than "
                f"those of its documentation. Received: {', '.join(unknown)}"
            )
        super().__init__(
            _arguments.integer("units", units),
            activation,
            recurrent_activation,
            use_bias,
            kernel_initializer,
            bias_initializer=bias_initializer,
            kernel_regularizer=kernel_regularizer,
            bias_regularizer=bias_regularizer,
            kernel_constraint=kernel_constraint,
            bias_constraint=bias_constraint,
            dropout=_arguments.finite_number("dropout", dropout, 0, 1),
            seed=seed,
            **kwargs,
        )
        self.gate_bias = _arguments.finite_number("gate_bias", gate_bias)

    def build(self, input_shape):
        self.kernel = self.add_weight(
            shape=(input_shape[-1], 2 * self.units),
            name="kernel",
            initializer=self.kernel_initializer,
            regularizer=self.kernel_regularizer,
            constraint=self.kernel_constraint,
        )
        self.bias = None
        if self.use_bias:
            self.bias = self.add_weight(
                shape=(2 * self.units,),
                name="bias",
                initializer=self._initial_bias,
                regularizer=self.bias_regularizer,
                constraint=self.bias_constraint,
            )

    def _initial_bias(self, shape, dtype=None):
        gate = ops.full((self.units,), self.gate_bias, dtype)
        candidate = self.bias_initializer((self.units,), dtype=dtype)
        return ops.concatenate([gate, candidate])

    def call(self, inputs, states, training=False):
        is_list = isinstance(states, (list, tuple))
        h = states[0] if is_list else states
        dropout_mask = self.get_dropout_mask(inputs)
        if training and dropout_mask is not None:
            inputs = inputs * dropout_mask
        gate, candidate = self.gate_and_candidate(inputs)
        h = h + gate * (candidate - h)
        return h, [h] if is_list else h

    def gate_and_candidate(self, inputs):
        sums = ops.matmul(inputs, self.kernel)
        sums = sums + self.bias if self.use_bias else sums
        gate, candidate = ops.split(sums, 2, axis=-1)
        return self.recurrent_activation(gate), self.activation(candidate)

    def get_config(self):
        config = super().get_config()
        for name in RECURRENT_OPTIONS:
            del config[name]
        config = with_initializers(self, config)
        return {**config, "gate_bias": self.gate_bias}
