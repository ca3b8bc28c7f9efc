"""RINCell: one step of a Recurrent Identity Network."""

import keras
from keras import ops

from keras_rin import arguments
from keras_rin.layers.offset_options import warn_of_effective
from keras_rin.layers.simple_rnn import converted


@keras.saving.register_keras_serializable(package="keras_rin")
class RINCell(keras.layers.SimpleRNNCell):
    """One step of a Recurrent Identity Network.

    h_t = activation(x_t W + h_{t-1} + h_{t-1} U + b)

    This is a `keras.layers.SimpleRNNCell` whose recurrent matrix is written
    as U + I. The trained weight `recurrent_kernel` is the offset U alone, so
    whatever pulls a weight towards zero (a small start, weight decay,
    `keras.regularizers.L2`) pulls the recurrence towards the identity, that
    is towards keeping its state. Do not use
    `keras_rin.regularizers.IdentityOffsetL2` here: on an offset it would pull
    U + I towards 2 I.

    The weights stand in Keras's order: `kernel` W `(features, units)`,
    `recurrent_kernel` U `(units, units)`, `bias` b `(units,)`. The step is
    computed as h + h U, never as h (U + I): in bfloat16 1 + 0.001 is 1, and
    the offset would be lost.

    Args:
        units: Positive integer, the size of the state and of the output.
        activation: Activation function. Defaults to `"relu"`; `None` for a
            linear cell.
        use_bias: Boolean, whether the cell has a bias. Defaults to `True`.
        kernel_initializer: Initializer of W. Defaults to
            `"glorot_uniform"`, as in `SimpleRNNCell`; the paper draws W
            like U.
        recurrent_initializer: Initializer of the offset U. Defaults to
            `None`: the paper's normal distribution with standard deviation
            0.001. `"zeros"` starts at the identity exactly (an IRNN).
        bias_initializer: Initializer of b. Defaults to `"zeros"`.
        kernel_regularizer: Regularizer of W. Defaults to `None`.
        recurrent_regularizer: Regularizer of the offset U. Defaults to
            `None`.
        bias_regularizer: Regularizer of b. Defaults to `None`.
        kernel_constraint: Constraint on W. Defaults to `None`.
        recurrent_constraint: Constraint on the offset U. Defaults to `None`.
        bias_constraint: Constraint on b. Defaults to `None`.
        dropout: Float in [0, 1], the fraction of the inputs to drop.
            Defaults to 0.
        recurrent_dropout: Float in [0, 1], the fraction of the state to drop
            on its way through U. The identity path is never dropped: the
            same mask acts at every step, and what it scales up would grow
            with the length of the sequence. Defaults to 0.
        seed: Integer seed of the dropout masks. Defaults to `None`.
        **kwargs: `name`, `dtype`, `trainable`.

    Call arguments:
        inputs: Tensor of shape `(batch, features)`.
        states: Tensor of shape `(batch, units)`, or a list that holds it.
        training: Boolean, whether dropout acts. Defaults to `False`.

    Returns:
        The output h_t `(batch, units)` and the new state, the same h_t, in
        the form `states` had.

    Raises:
        ValueError: If `units` is not a positive integer, or if `dropout` or
            `recurrent_dropout` lies outside [0, 1].

    Example:

    >>> cells = [keras_rin.layers.RINCell(16), keras_rin.layers.RINCell(8)]
    >>> layer = keras.layers.RNN(cells)
    >>> tuple(layer(np.ones((32, 10, 4))).shape)
    (32, 8)

    Reference:
        Hu, Huber, Anumula and Liu, 2018, Overcoming the vanishing gradient
        problem in plain recurrent networks (arXiv 1801.06105), equation 13.
    """

    def __init__(
        self,
        units,
        activation="relu",
        use_bias=True,
        kernel_initializer="glorot_uniform",
        recurrent_initializer=None,
        **kwargs,
    ):
        for name in ("dropout", "recurrent_dropout"):
            arguments.finite_number(name, kwargs.get(name, 0), 0, 1)
        super().__init__(
            arguments.integer("units", units),
            activation=activation,
            use_bias=use_bias,
            kernel_initializer=kernel_initializer,
            recurrent_initializer=recurrent_initializer or _small_normal(),
            **kwargs,
        )
        warn_of_effective(
            self,
            self.recurrent_initializer,
            self.recurrent_regularizer,
            self.recurrent_constraint,
        )

    @classmethod
    def from_simple_rnn_cell(cls, cell, **kwargs):
        """Makes a RINCell of the outputs of a built `SimpleRNNCell`.

        Args:
            cell: A built `keras.layers.SimpleRNNCell`.
            **kwargs: Options of the new cell that replace those of `cell`.

        Returns:
            A built cell; see `RIN.from_simple_rnn`.

        Raises:
            ValueError: See `RIN.from_simple_rnn`.
        """
        if cls is not RINCell:
            raise ValueError(
                f"The new cell must be a RINCell. Received: {cls.__name__}"
            )
        return converted(cell, cls, keras.layers.SimpleRNNCell, True, kwargs)

    def to_simple_rnn_cell(self, **kwargs):
        """Makes a `SimpleRNNCell` of the outputs of this built cell.

        Args:
            **kwargs: Options of the new cell that replace those of this one.

        Returns:
            A built `keras.layers.SimpleRNNCell`; see `RIN.to_simple_rnn`.

        Raises:
            ValueError: See `RIN.to_simple_rnn`.
        """
        target = keras.layers.SimpleRNNCell
        return converted(self, target, RINCell, False, kwargs)

    @property
    def effective_recurrent_kernel(self):
        """The matrix that acts on the state, U + I."""
        return self._effective("recurrent_kernel")

    def _effective(self, name):
        if not self.built:
            raise ValueError(
                f"{self.name} has no weights yet: build it, or call it on "
                f"data, before asking for `effective_{name}`."
            )
        offset = getattr(self, name)
        return offset + ops.eye(self.units, dtype=offset.dtype)

    def project(self, x):
        """The part of a step that does not wait for the state, x W + b."""
        z = ops.matmul(x, self.kernel)
        return z + self.bias if self.use_bias else z

    def call(self, inputs, states, training=False):
        nested = isinstance(states, (list, tuple))
        h = states[0] if nested else states
        x, through_offset = self._dropped(inputs, h, training)
        carried = h + ops.matmul(through_offset, self.recurrent_kernel)
        h = self.activation(self.project(x) + carried)
        return h, [h] if nested else h

    def _dropped(self, x, h, training):
        x_mask = self.get_dropout_mask(x)
        h_mask = self.get_recurrent_dropout_mask(h)
        if training and x_mask is not None:
            x = x * x_mask
        if training and h_mask is not None:
            h = h * h_mask
        return x, h


def _small_normal():
    # A new one each time: one initializer repeats its numbers at every call.
    return keras.initializers.RandomNormal(stddev=0.001)
