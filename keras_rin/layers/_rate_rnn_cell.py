"""RateRNNCell: one Euler step of a network of firing rates."""

import functools
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
from keras import ops
from keras.constraints import Constraint
from keras.initializers import Initializer
from keras.regularizers import Regularizer

from keras_rin import _arguments
from keras_rin.initializers._per_gate import reseeded
from keras_rin.initializers._serialization import with_initializers
from keras_rin.layers._residual_branch import KINDS
from keras_rin.layers._residual_branch import add_weight_of

OPTIONS = {
    f"{weight}_{kind}": module
    for weight in ("kernel", "recurrent", "bias")
    for kind, module in KINDS.items()
}


@keras.saving.register_keras_serializable(package="keras_rin")
class RateRNNCell(keras.layers.Layer):
    """Cell class of the `RateRNN` layer, without its noise.

    h_t = h_{t-1} + (dt / tau) (-h_{t-1} + phi(h_{t-1}) J + x_t W + b)

    The weights are, in this order, `kernel` W `(features, units)`, then
    `recurrent_kernel` J `(units, units)` or, with `rank`, `left_vectors` N and
    `right_vectors` M, both `(units, rank)`, and `bias` b `(units,)`.

    Args:
        units: Positive integer, dimensionality of the state and the output.
            All arguments are those of `RateRNN`.

    Call arguments:
        inputs: Tensor of shape `(batch, features)`. The cell of a `RateRNN`
            with noise takes `(batch, features + units)` too, and adds the last
            columns to the state.
        states: Tensor of shape `(batch, units)`, or a list that contains it.
        training: Not used.

    Returns:
        The output h_t `(batch, units)` and the new hidden state, which is the
        same tensor, in a list if `states` is a list.

    Raises:
        ValueError: If an argument is not as in `RateRNN`, or the number of
            features is another than that for which the cell was built.

    Example:

    >>> layer = keras.layers.RNN(keras_rin.layers.RateRNNCell(8, tau=10.0))
    >>> tuple(layer(np.ones((32, 10, 4))).shape)
    (32, 8)
    """

    noise_columns = 0  # of the inputs, beside the features

    def __init__(
        self,
        units: int,
        tau: float,
        dt: float = 1.0,
        activation: str | Callable | None = "tanh",
        rank: int | None = None,
        use_bias: bool = True,
        kernel_initializer: str | Initializer = "glorot_uniform",
        recurrent_initializer: str | Initializer | None = None,
        bias_initializer: str | Initializer = "zeros",
        kernel_regularizer: str | Regularizer | None = None,
        recurrent_regularizer: str | Regularizer | None = None,
        bias_regularizer: str | Regularizer | None = None,
        kernel_constraint: str | Constraint | None = None,
        recurrent_constraint: str | Constraint | None = None,
        bias_constraint: str | Constraint | None = None,
        **kwargs: Any,
    ):
        options = dict(locals())
        super().__init__(**kwargs)
        self.units = _arguments.integer("units", units)
        smallest = float(np.finfo("float32").tiny)
        self.tau = _arguments.finite_number("tau", tau, smallest)
        self.dt = _arguments.finite_number("dt", dt, smallest, self.tau)
        self.rank = None if rank is None else _arguments.integer("rank", rank)
        self.activation = keras.activations.get(activation)
        self.use_bias, self.bias = use_bias, None
        if recurrent_initializer is None:
            # An initializer without a seed takes one of Keras's generator.
            stddev = 1.0 if rank else self.units**-0.5
            normal = keras.initializers.RandomNormal(0, stddev)
            options["recurrent_initializer"] = normal
        for name, module in OPTIONS.items():
            setattr(self, name, module.get(options[name]))
        self.state_size = self.output_size = self.units
        # What is left of the state after a step, as a vector of the units.
        self.decay = np.full(self.units, 1 - self.dt / self.tau)

    def build(self, input_shape):
        add = functools.partial(add_weight_of, self)
        self.kernel = add("kernel", "kernel", (input_shape[-1], self.units))
        if self.rank is None:
            shape = self.units, self.units
            self._recurrent_kernel = add("recurrent", "recurrent_kernel", shape)
        else:
            shape = self.units, self.rank
            self.left_vectors = add("recurrent", "left_vectors", shape)
            other = reseeded(self.recurrent_initializer, 1)
            self.right_vectors = add(
                "recurrent", "right_vectors", shape, initializer=other
            )
        if self.use_bias:
            self.bias = add("bias", "bias", (self.units,))
        self.built = True

    @property
    def recurrent_kernel(self) -> Any:
        """The matrix J `(units, units)`, from rows to columns."""
        if self.rank is None:
            return self._recurrent_kernel
        left, right = (
            ops.cast(vectors, self.compute_dtype)
            for vectors in (self.left_vectors, self.right_vectors)
        )
        return ops.matmul(left, ops.transpose(right)) / self.units

    def get_initial_state(self, batch_size: Any = None) -> list[Any]:
        """The state before the first time step: zeros `(batch_size, units)`."""
        return [ops.zeros((batch_size, self.units), self.compute_dtype)]

    def call(self, inputs, states, training=False):
        is_list = isinstance(states, (list, tuple))
        h = states[0] if is_list else states
        features = self.kernel.shape[0]
        if inputs.shape[-1] not in (features, features + self.noise_columns):
            raise ValueError(
                f"{self.name} was built for inputs of {features} features. "
                f"Received: inputs of shape {tuple(inputs.shape)}"
            )
        new = ops.matmul(inputs[..., :features], self.kernel)
        new = new + self._recurrent_drive(self.activation(h))
        new = new + self.bias if self.use_bias else new
        h = h + self.dt / self.tau * (new - h)
        if inputs.shape[-1] > features:
            h = h + inputs[..., features:]
        return h, [h] if is_list else h

    def _recurrent_drive(self, rates):
        if self.rank is None:
            return ops.matmul(rates, self._recurrent_kernel)
        overlaps = ops.matmul(rates, self.left_vectors) / self.units
        return ops.matmul(overlaps, ops.transpose(self.right_vectors))

    def get_config(self):
        options = {
            name: module.serialize(getattr(self, name))
            for name, module in OPTIONS.items()
        }
        options = with_initializers(self, options)
        return {
            **super().get_config(),
            "units": self.units,
            "tau": self.tau,
            "dt": self.dt,
            "activation": keras.activations.serialize(self.activation),
            "rank": self.rank,
            "use_bias": self.use_bias,
            **options,
        }
