"""DeepTransitionRINCell: a RIN cell with two transitions per time step."""

from typing import Any

import keras
from keras import ops

from keras_rin.initializers._per_gate import reseeded
from keras_rin.layers._rin_cell import RINCell


@keras.saving.register_keras_serializable(package="keras_rin")
class DeepTransitionRINCell(RINCell):
    """Cell class of a RIN with two transitions per time step (RIN-DT).

    a_t = activation(x_t W + h_{t-1} + h_{t-1} U_1 + b_1)
    h_t = activation(a_t + a_t U_2 + b_2)

    The first transition is that of `RINCell`. The second has the same form
    without an input and doubles the depth of a time step. Both recurrent
    matrices are stored as offsets from the identity, and the options of the
    recurrent kernel apply to U_1 and to U_2. To process sequences, wrap the
    cell: `keras.layers.RNN(DeepTransitionRINCell(units))`. It is called as
    `RINCell` is.

    The equations are in an appendix of the paper that was not available. This
    is the deep transition of Pascanu et al., which the text of the paper
    names, with the identity in both transitions.

    The weights are, in this order, `kernel` W `(features, units)`,
    `recurrent_kernel` U_1 `(units, units)`, `bias` b_1 `(units,)`,
    `transition_kernel` U_2 `(units, units)` and `transition_bias` b_2
    `(units,)`.

    Args:
        units: Positive integer, dimensionality of the hidden state and of the
            output. All arguments are those of `RIN`, and options of a bias
            apply to b_1 and to b_2.
        recurrent_initializer: Initializer of the offsets U_1 and U_2. A random
            initializer draws different values for the two, even if it has a
            seed, which U_1 uses. Defaults to `None`: a normal distribution
            with standard deviation 0.001, as in the paper.
        recurrent_dropout: Float in [0, 1], fraction of the hidden state to
            drop in the product h_{t-1} U_1. The identity path and a_t are
            never dropped. Defaults to 0.
        **options: Arguments of `keras.layers.SimpleRNNCell`, by name.

    Example:

    >>> cell = keras_rin.layers.DeepTransitionRINCell(8)
    >>> layer = keras.layers.RNN(cell)
    >>> tuple(layer(np.ones((32, 10, 4))).shape)
    (32, 8)

    Reference:
        Hu, Huber, Anumula and Liu, 2018, Overcoming the vanishing gradient
        problem in plain recurrent networks (arXiv 1801.06105); Pascanu,
        Gulcehre, Cho and Bengio, 2013, How to construct deep recurrent
        neural networks (arXiv 1312.6026).
    """

    # Python 3.11.2 shows the signature of `Layer.__new__` for one inherited.
    __init__ = RINCell.__init__

    @property
    def effective_transition_kernel(self) -> Any:
        """The effective matrix of the second transition, U_2 + I."""
        return self._effective_kernel("transition_kernel")

    def build(self, input_shape):
        super().build(input_shape)
        self.transition_kernel = self.add_weight(
            shape=(self.units, self.units),
            name="transition_kernel",
            initializer=reseeded(self.recurrent_initializer, 1),
            regularizer=self.recurrent_regularizer,
            constraint=self.recurrent_constraint,
        )
        if self.use_bias:
            self.transition_bias = self.add_weight(
                shape=(self.units,),
                name="transition_bias",
                initializer=reseeded(self.bias_initializer, 1),
                regularizer=self.bias_regularizer,
                constraint=self.bias_constraint,
            )

    def call(self, inputs, states, training=False):
        a, _ = super().call(inputs, states, training)
        z = a + ops.matmul(a, self.transition_kernel)
        h = self.activation(z + self.transition_bias if self.use_bias else z)
        return h, [h] if isinstance(states, (list, tuple)) else h
