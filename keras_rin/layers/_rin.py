"""RIN: the layer of a Recurrent Identity Network."""

from collections.abc import Callable
from typing import Any

import keras
from keras.constraints import Constraint
from keras.initializers import Initializer
from keras.regularizers import Regularizer

from keras_rin.layers._conversion import convert_layer
from keras_rin.layers._fused_layer import FusedLayer
from keras_rin.layers._rin_cell import RINCell


@keras.saving.register_keras_serializable(package="keras_rin")
class RIN(FusedLayer):
    """Recurrent Identity Network, a drop-in for `keras.layers.SimpleRNN`.

    h_t = activation(x_t W + h_{t-1} + h_{t-1} U + b)

    The effective recurrent matrix is V = U + I. The trained weight
    `recurrent_kernel` is the recurrent offset U, so regularization acts on
    the distance from the identity. `RINCell` describes the time step.

    A `SimpleRNN` whose `recurrent_kernel` is U + I computes the same outputs,
    except with recurrent dropout, which never drops the identity path here.
    `from_simple_rnn` and `to_simple_rnn` convert one into the other.

    Args:
        units: Positive integer, dimensionality of the hidden state and of the
            output.
        activation: Activation function. Defaults to `"relu"`. If you pass
            `None`, no activation is applied.
        use_bias: Boolean, whether the layer uses a bias vector. Defaults to
            `True`.
        kernel_initializer: Initializer of W. Defaults to `"glorot_uniform"`.
        recurrent_initializer: Initializer of the offset U. Defaults to
            `None`: a normal distribution with standard deviation 0.001, as in
            the paper. `keras_rin.initializers.Offset(initializer)` initializes
            the effective matrix V with `initializer`.
        bias_initializer: Initializer of b. Defaults to `"zeros"`.
        kernel_regularizer: Regularizer of W. Defaults to `None`.
        recurrent_regularizer: Regularizer of the offset U:
            `keras.regularizers.L2` pulls V towards the identity. Defaults to
            `None`.
        bias_regularizer: Regularizer of b. Defaults to `None`.
        activity_regularizer: Regularizer of the output. Defaults to `None`.
        kernel_constraint: Constraint on W. Defaults to `None`.
        recurrent_constraint: Constraint on the offset U. Defaults to `None`.
        bias_constraint: Constraint on b. Defaults to `None`.
        dropout: Float in [0, 1], fraction of the inputs to drop, with the same
            mask at every time step. Defaults to 0.
        recurrent_dropout: Float in [0, 1], fraction of the hidden state to
            drop in the product h_{t-1} U, never on the identity path.
            Defaults to 0.
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
        seed: Integer, random seed of the dropout masks. Defaults to `None`.
        zero_output_for_mask: Boolean, whether the outputs of masked time
            steps are zeros rather than the previous output. Defaults to
            `False`.
        fused: `"auto"`, `True` or `False`, whether to use the fused recurrence
            of this package, which returns the same results faster,
            or the loop of `keras.layers.RNN`. `"auto"` uses the fused
            recurrence where it is supported, on TensorFlow only in training
            and in `predict`, `evaluate` and their like, which XLA compiles if
            the number of time steps is known; elsewhere, as in exports, the
            loop of Keras runs. `True` raises an error if an option is not
            supported. The fused recurrence has first derivatives by
            backpropagation only: for second derivatives and forward-mode
            differentiation in training, pass `False`. Defaults to `"auto"`.
        recompute: Boolean, whether training keeps about the square root of
            the number of time steps of hidden states in place of all, and
            computes the others again in the backward pass. Has the same
            restrictions as `fused=True`. Use it for long sequences with
            `return_sequences=False`. Defaults to `False`.
        **kwargs: `name`, `dtype`, `trainable`, `autocast`, `input_shape`.

    Call arguments:
        sequences: Tensor of shape `(batch, time, features)`.
        initial_state: Tensor of shape `(batch, units)`, or a list that
            contains it, cast to the compute dtype. Defaults to `None`: zeros,
            or the last state of the previous batch if `stateful`.
        mask: Boolean tensor of shape `(batch, time)`. Time steps where it is
            `False` leave the hidden state unchanged. Defaults to `None`.
        training: Boolean, whether to apply dropout. Defaults to `False`.
        resets: Boolean tensor of shape `(batch, time)`, `True` where a new
            sequence begins within `sequences`, also at a masked time step. The
            hidden state before it is zero, or after it with `go_backwards`.
            Runs the loop of Keras. Wrappers such as `Bidirectional` do not
            take it. Defaults to `None`.

    Returns:
        The last output `(batch, units)`, or all outputs
        `(batch, time, units)` with `return_sequences`; with `return_state`
        also the last hidden state `(batch, units)`.

    Raises:
        ValueError: If `fused=True` or `recompute=True` does not support
            another option, or `resets`.
        ValueError: If a mask is passed to a layer with both `unroll` and
            `zero_output_for_mask`, for which Keras returns wrong outputs.
        ValueError: If the batch size of a stateful layer changes; in a graph
            of TensorFlow an `InvalidArgumentError`.
        NotImplementedError: If a gradient of the fused recurrence is
            differentiated, or a forward-mode derivative computed;
            `LookupError` on TensorFlow.

    Example:

    With U = 0 the hidden state is carried from step to step unchanged: the
    first of 1,000 inputs is still there after the last.

    >>> x = np.zeros((1, 1000, 1), "float32")
    >>> x[:, 0] = 1
    >>> rin = keras_rin.layers.RIN(8, recurrent_initializer="zeros")
    >>> first, last = rin(x[:, :1]), rin(x)
    >>> bool(keras.ops.any(last > 0)) and np.allclose(first, last)
    True

    Over more than about a hundred time steps, normalize the inputs and clip
    the gradients, as with `keras.optimizers.Adam(global_clipnorm=1.0)`.

    Reference:
        Hu, Huber, Anumula and Liu, 2018, Overcoming the vanishing gradient
        problem in plain recurrent networks (arXiv 1801.06105).
    """

    CELL = FUSED_CELL = RINCell

    def __init__(
        self,
        units: int,
        activation: str | Callable | None = "relu",
        use_bias: bool = True,
        kernel_initializer: str | Initializer = "glorot_uniform",
        recurrent_initializer: str | Initializer | None = None,
        bias_initializer: str | Initializer = "zeros",
        kernel_regularizer: str | Regularizer | None = None,
        recurrent_regularizer: str | Regularizer | None = None,
        bias_regularizer: str | Regularizer | None = None,
        activity_regularizer: str | Regularizer | None = None,
        kernel_constraint: str | Constraint | None = None,
        recurrent_constraint: str | Constraint | None = None,
        bias_constraint: str | Constraint | None = None,
        dropout: float = 0.0,
        recurrent_dropout: float = 0.0,
        return_sequences: bool = False,
        return_state: bool = False,
        go_backwards: bool = False,
        stateful: bool = False,
        unroll: bool = False,
        seed: int | None = None,
        *,
        zero_output_for_mask: bool = False,
        fused: bool | str = "auto",
        recompute: bool = False,
        **kwargs: Any,
    ):
        super().__init__("rin_cell", locals(), kwargs)

    @classmethod
    def from_simple_rnn(
        cls, layer: keras.layers.SimpleRNN, **kwargs: Any
    ) -> "RIN":
        """Creates a RIN with the outputs of a built `keras.layers.SimpleRNN`.

        U = V - I

        V is the `recurrent_kernel` of `layer` and U that of the new layer.
        All other weights, the options, the dtype policy and the states of a
        stateful layer are copied. Options of the recurrent kernel act on V in
        one layer and on U in the other: an initializer becomes
        `Offset(initializer)`, `IdentityOffsetL2` becomes
        `keras.regularizers.L2`, and `Orthogonal()` becomes
        `Orthogonal(offset=True)`.

        Args:
            layer: A built `keras.layers.SimpleRNN`.
            **kwargs: Options of the new layer, such as `name`, that replace
                those of `layer`. Not copied: the name, and the state of the
                dropout seed.

        Returns:
            A built `RIN`.

        Raises:
            ValueError: If `layer` is not a built `SimpleRNN`.
            ValueError: If `layer` has recurrent dropout or another regularizer
                or constraint on its recurrent kernel, which have no exact
                counterpart, and `kwargs` does not replace it.

        Example:

        >>> simple_rnn = keras.layers.SimpleRNN(8)
        >>> simple_rnn.build((None, None, 3))
        >>> rin = keras_rin.layers.RIN.from_simple_rnn(simple_rnn)
        >>> x = np.ones((2, 5, 3), "float32")
        >>> bool(np.allclose(rin(x), simple_rnn(x), atol=1e-5))
        True
        """
        return convert_layer(layer, keras.layers.SimpleRNN, cls, kwargs)

    def to_simple_rnn(self, **kwargs: Any) -> keras.layers.SimpleRNN:
        """Creates a `keras.layers.SimpleRNN` with the outputs of this layer.

        The reverse of `from_simple_rnn`, V = U + I. An initializer
        `Offset(initializer)` becomes `initializer`; any other is replaced by
        the default of `SimpleRNN`. The sum U + I is rounded to the precision
        of the weights: an offset below 1e-7 is lost in float32.

        Args:
            **kwargs: Options of the new layer, such as `name`, that replace
                those of this layer.

        Returns:
            A built `keras.layers.SimpleRNN`.

        Raises:
            ValueError: As for `from_simple_rnn`.
        """
        return convert_layer(self, RIN, keras.layers.SimpleRNN, kwargs)

    @property
    def effective_recurrent_kernel(self) -> Any:
        """The effective recurrent matrix, V = U + I."""
        return self.cell.effective_recurrent_kernel
