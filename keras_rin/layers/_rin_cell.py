"""RINCell: one time step of a Recurrent Identity Network."""

from collections.abc import Callable
from typing import Any

import keras
from keras import ops
from keras.initializers import Initializer

from keras_rin import _arguments
from keras_rin.initializers._serialization import with_initializers
from keras_rin.layers._conversion import convert_layer
from keras_rin.layers._dropout import apply_dropout
from keras_rin.layers._offset_options import warn_about_effective_options
from keras_rin.layers._saved_weights import MarkedOffset


@keras.saving.register_keras_serializable(package="keras_rin")
class RINCell(MarkedOffset, keras.layers.SimpleRNNCell):
    """Cell class of the `RIN` layer: one step of a Recurrent Identity Network.

    h_t = activation(x_t W + h_{t-1} + h_{t-1} U + b)

    The cell is a `keras.layers.SimpleRNNCell` whose effective recurrent
    matrix is V = U + I. The trained weight `recurrent_kernel` is the
    recurrent offset U. A small initialization of U, weight decay or
    `keras.regularizers.L2` therefore keeps V close to the identity, which
    preserves the hidden state. Do not use
    `keras_rin.regularizers.IdentityOffsetL2` here: applied to U, it pulls V
    towards 2 I.

    The weights are, in the order of Keras, `kernel` W `(features, units)`,
    `recurrent_kernel` U `(units, units)` and `bias` b `(units,)`.

    Args:
        units: Positive integer, dimensionality of the hidden state and of the
            output. All arguments are those of `RIN`.
        **options: Arguments of `keras.layers.SimpleRNNCell`, by name.

    Call arguments:
        inputs: Tensor of shape `(batch, features)`.
        states: Tensor of shape `(batch, units)`, or a list that contains it.
        training: Boolean, whether to apply dropout. Defaults to `False`.

    Returns:
        The output h_t `(batch, units)` and the new hidden state, which is the
        same tensor, in a list if `states` is a list.

    Example:

    >>> cells = [keras_rin.layers.RINCell(16), keras_rin.layers.RINCell(8)]
    >>> layer = keras.layers.RNN(cells)
    >>> tuple(layer(np.ones((32, 10, 4))).shape)
    (32, 8)

    Reference:
        Hu, Huber, Anumula and Liu, 2018, Overcoming the vanishing gradient
        problem in plain recurrent networks (arXiv 1801.06105), equation 13.
    """

    CONVERSION = (
        "Load the effective matrix of a SimpleRNN into "
        "`keras.layers.SimpleRNN` (or `SimpleRNNCell`), and convert the layer "
        "with `RIN.from_simple_rnn` (or the cell with "
        "`RINCell.from_simple_rnn_cell`)."
    )

    def __init__(
        self,
        units: int,
        activation: str | Callable | None = "relu",
        use_bias: bool = True,
        kernel_initializer: str | Initializer = "glorot_uniform",
        recurrent_initializer: str | Initializer | None = None,
        **options: Any,
    ):
        for name in ("dropout", "recurrent_dropout"):
            _arguments.finite_number(name, options.get(name, 0), 0, 1)
        # Each cell needs a new instance, because an initializer returns the
        # same values at every call. One takes a seed of Keras's generator.
        if recurrent_initializer is None:
            recurrent_initializer = keras.initializers.RandomNormal(0, 0.001)
        super().__init__(
            _arguments.integer("units", units),
            activation=activation,
            use_bias=use_bias,
            kernel_initializer=kernel_initializer,
            recurrent_initializer=recurrent_initializer,
            **options,
        )
        warn_about_effective_options(self, "recurrent")

    @classmethod
    def from_simple_rnn_cell(
        cls, cell: keras.layers.SimpleRNNCell, **kwargs: Any
    ) -> "RINCell":
        """Creates a `RINCell` with the outputs of a built `SimpleRNNCell`.

        Args:
            cell: A built `keras.layers.SimpleRNNCell`.
            **kwargs: Options of the new cell that replace those of `cell`.

        Returns:
            A built cell, or an error; see `RIN.from_simple_rnn`.
        """
        return convert_layer(cell, keras.layers.SimpleRNNCell, cls, kwargs)

    def to_simple_rnn_cell(self, **kwargs: Any) -> keras.layers.SimpleRNNCell:
        """Creates a `SimpleRNNCell` with the outputs of this built cell.

        Args:
            **kwargs: Options of the new cell that replace those of this one.

        Returns:
            A built `SimpleRNNCell`, or an error; see `RIN.to_simple_rnn`.
        """
        return convert_layer(self, RINCell, keras.layers.SimpleRNNCell, kwargs)

    @property
    def effective_recurrent_kernel(self) -> Any:
        """The effective recurrent matrix, V = U + I."""
        return self._effective_kernel("recurrent_kernel")

    def _effective_kernel(self, name):
        if not self.built:
            raise ValueError(
                f"{self.name} has no weights yet: build the cell, or call it "
                f"on data, before reading `effective_{name}`."
            )
        offset = getattr(self, name)
        return offset + ops.eye(self.units, dtype=offset.dtype)

    def call(self, inputs, states, training=False):
        is_list = isinstance(states, (list, tuple))
        h = states[0] if is_list else states
        x, dropped_h = apply_dropout(self, inputs, h, training)
        recurrent_input = h + ops.matmul(dropped_h, self.recurrent_kernel)
        z = ops.matmul(x, self.kernel)
        z = z + self.bias if self.use_bias else z
        h = self.activation(z + recurrent_input)
        return h, [h] if is_list else h

    def get_config(self):
        return with_initializers(self, super().get_config())
