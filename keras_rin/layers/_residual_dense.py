"""ResidualDense: x + activation(x U + b) V."""

from collections.abc import Callable
from typing import Any

import keras
from keras import ops

from keras_rin import _arguments
from keras_rin.layers._residual_branch import ResidualBranch


@keras.saving.register_keras_serializable(package="keras_rin")
class ResidualDense(ResidualBranch):
    """Residual block of two dense layers, without normalization.

    y = x + activation(x U + b) V

    The trainable weights are, in this order, `kernel` U `(features, width)`,
    `output_kernel` V `(width, features)` and `bias` b `(width,)`. They
    parametrize the offset from the identity: with V = 0 the block is the
    identity map, so weight decay or
    `keras.regularizers.L2` pulls the block towards it.

    Args:
        width: Positive integer, number of hidden units.
        activation: Activation function of the hidden units. Defaults to
            `"relu"`. If you pass `None`, no activation is applied.
        use_bias: Boolean, whether the hidden units use a bias vector.
            Defaults to `True`.
        kernel_initializer: Initializer of U. Defaults to `None`:
            `SmallVarianceNormal`, with standard deviation 1 / width.
        output_initializer: Initializer of V. Defaults to `None`:
            `SmallVarianceNormal`, with standard deviation 1 / features.
            `"zeros"` makes the block the identity map.
        bias_initializer: Initializer of b. Defaults to `"zeros"`.
        kernel_regularizer: Regularizer of U. Defaults to `None`.
        output_regularizer: Regularizer of V. Defaults to `None`.
        bias_regularizer: Regularizer of b. Defaults to `None`.
        activity_regularizer: Regularizer of the output. Defaults to `None`.
        kernel_constraint: Constraint on U. Defaults to `None`.
        output_constraint: Constraint on V. Defaults to `None`.
        bias_constraint: Constraint on b. Defaults to `None`.
        **kwargs: `name`, `dtype`, `trainable`.

    Call arguments:
        x: Tensor of shape `(..., features)`.

    Returns:
        Tensor of the shape of `x`.

    Raises:
        ValueError: If `width` is not a positive integer, if the activation,
            an initializer, a regularizer or a constraint is unknown to Keras,
            or if the number of features is undefined or differs from that of
            earlier calls.

    Example:

    >>> layer = keras_rin.layers.ResidualDense(64, output_initializer="zeros")
    >>> x = np.ones((2, 3), "float32")
    >>> bool(np.all(keras.ops.convert_to_numpy(layer(x)) == x))
    True

    Reference:
        Hardt and Ma, 2017, Identity matters in deep learning (arXiv
        1611.04231), section 3, where x is a column vector.
    """

    def __init__(
        self,
        width: int,
        activation: str | Callable | None = "relu",
        use_bias: bool = True,
        **kwargs: Any,
    ):
        super().__init__(activation, use_bias, **kwargs)
        self.supports_masking = True
        self.width = _arguments.integer("width", width)

    def build(self, input_shape):
        features = _arguments.features(self.name, input_shape)
        self.input_spec = keras.InputSpec(min_ndim=2, axes={-1: features})
        self.add_branch(
            (features, self.width), (self.width, features), (self.width,)
        )

    def call(self, x):
        x = ops.cast(x, self.compute_dtype)  # integers too
        hidden = ops.matmul(x, self.kernel)
        if self.use_bias:
            hidden = hidden + self.bias
        return x + ops.matmul(self.activation(hidden), self.output_kernel)

    def compute_output_shape(self, input_shape):
        return input_shape

    def get_config(self):
        return {**super().get_config(), "width": self.width}
