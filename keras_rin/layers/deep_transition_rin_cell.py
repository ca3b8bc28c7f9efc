"""DeepTransitionRINCell: two transitions of the state in one step."""

import keras
from keras import ops

from keras_rin.initializers import PerGate
from keras_rin.layers.rin_cell import RINCell


@keras.saving.register_keras_serializable(package="keras_rin")
class DeepTransitionRINCell(RINCell):
    """One step of a RIN that takes two transitions (RIN-DT).

    a_t = activation(x_t W + h_{t-1} + h_{t-1} U_1 + b_1)
    h_t = activation(a_t + a_t U_2 + b_2)

    The first transition is the step of `RINCell`; the second, of the same
    form without an input, doubles the depth between two steps. Both are
    stored as offsets from the identity, and what pulls U_1 towards zero pulls
    U_2 as well. Wrap it as `keras.layers.RNN(DeepTransitionRINCell(units))`.

    The equations stand in an appendix of the paper that was not at hand: this
    is the deep transition of Pascanu et al., which its text names, with the
    identity in both transitions.

    The weights stand in this order: `kernel` W `(features, units)`,
    `recurrent_kernel` U_1 `(units, units)`, `bias` b_1 `(units,)`,
    `transition_kernel` U_2 `(units, units)`, `transition_bias` b_2
    `(units,)`.

    Args:
        units: Positive integer, the size of the state and of the output.
        activation: Activation function of both transitions. Defaults to
            `"relu"`; `None` for a linear cell.
        use_bias: Boolean, whether the cell has b_1 and b_2. Defaults to
            `True`.
        kernel_initializer: Initializer of W. Defaults to
            `"glorot_uniform"`, as in `SimpleRNNCell`; the paper draws W
            like U_1.
        recurrent_initializer: Initializer of the offsets U_1 and U_2, which
            draw different numbers from one random initializer, also if it
            has a seed. Defaults to `None`: the paper's normal distribution
            with standard deviation 0.001.
        bias_initializer: Initializer of b_1 and b_2. Defaults to `"zeros"`.
        kernel_regularizer: Regularizer of W. Defaults to `None`.
        recurrent_regularizer: Regularizer of U_1 and of U_2. Defaults to
            `None`.
        bias_regularizer: Regularizer of b_1 and of b_2. Defaults to `None`.
        kernel_constraint: Constraint on W. Defaults to `None`.
        recurrent_constraint: Constraint on U_1 and on U_2. Defaults to
            `None`.
        bias_constraint: Constraint on b_1 and on b_2. Defaults to `None`.
        dropout: Float in [0, 1], the fraction of the inputs to drop.
            Defaults to 0.
        recurrent_dropout: Float in [0, 1], the fraction of the state h_{t-1}
            to drop on its way through U_1, never on the identity path; a_t
            is not dropped. Defaults to 0.
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

    @property
    def effective_transition_kernel(self):
        """The matrix of the second transition, U_2 + I."""
        return self._effective("transition_kernel")

    def build(self, input_shape):
        super().build(input_shape)
        self.transition_kernel = self.add_weight(
            shape=(self.units, self.units),
            name="transition_kernel",
            initializer=_second(self.recurrent_initializer),
            regularizer=self.recurrent_regularizer,
            constraint=self.recurrent_constraint,
        )
        if self.use_bias:
            self.transition_bias = self.add_weight(
                shape=(self.units,),
                name="transition_bias",
                initializer=_second(self.bias_initializer),
                regularizer=self.bias_regularizer,
                constraint=self.bias_constraint,
            )

    def call(self, inputs, states, training=False):
        a, _ = super().call(inputs, states, training)
        z = a + ops.matmul(a, self.transition_kernel)
        h = self.activation(z + self.transition_bias if self.use_bias else z)
        return h, [h] if isinstance(states, (list, tuple)) else h


def _second(initializer):
    """Draws other numbers than `initializer`, which repeats its own."""

    def draw(shape, dtype=None):
        pair = PerGate(initializer, gates=2)
        *rows, units = shape
        return pair((*rows, 2 * units), dtype)[..., units:]

    return draw
