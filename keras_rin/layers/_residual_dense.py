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

    y = x + scale activation(x U + b) V

    The trainable weights are, in this order, `kernel` U `(features, units)`,
    `output_kernel` V `(units, features)` and `bias` b `(units,)`. They
    parametrize the offset from the identity: with V = 0 the block is the
    identity map, so weight decay or `keras.regularizers.L2` pulls it there.

    Args:
        units: Positive integer, number of hidden units.
        activation: Activation function of the hidden units. Defaults to
            `"relu"`. If you pass `None`, no activation is applied.
        use_bias: Boolean, whether the hidden units use a bias vector.
            Defaults to `True`.
        kernel_initializer: Initializer of U. Defaults to `None`:
            `SmallVarianceNormal`, with standard deviation 1 / units.
        bias_initializer: Initializer of b. Defaults to `"zeros"`.
        kernel_regularizer: Regularizer of U. Defaults to `None`.
        bias_regularizer: Regularizer of b. Defaults to `None`.
        activity_regularizer: Regularizer of the output. Defaults to `None`.
        kernel_constraint: Constraint on U. Defaults to `None`.
        bias_constraint: Constraint on b. Defaults to `None`.
        output_initializer: Initializer of V. Defaults to `None`:
            `SmallVarianceNormal`, with standard deviation 1 / features.
            `"zeros"` makes the block the identity map.
        output_regularizer: Regularizer of V. Defaults to `None`.
        output_constraint: Constraint on V. Defaults to `None`.
        scale: Finite number by which the branch is multiplied, such as
            1 / depth for a stack of so many layers; or `"rezero"`, a trained
            number that begins at 0, in the weight `scale` after the others.
            Defaults to 1.
        **options: The arguments from `kernel_initializer` on, by name, and
            `name`, `dtype`, `trainable`.

    Call arguments:
        x: Tensor of shape `(..., features)`.

    Returns:
        Tensor of the shape of `x`.

    Raises:
        ValueError: If `scale="rezero"` and V is zero too at first, so that no
            weight has a gradient.

    Example:

    >>> layer = keras_rin.layers.ResidualDense(64, output_initializer="zeros")
    >>> x = np.ones((2, 3), "float32")
    >>> bool(np.all(keras.ops.convert_to_numpy(layer(x)) == x))
    True

    Reference:
        Hardt and Ma, 2017, Identity matters in deep learning (arXiv
        1611.04231), section 3, where x is a column vector; Bachlechner et
        al., 2020, ReZero is all you need (arXiv 2003.04887).
    """

    SIZES = ("units",)

    def __init__(
        self,
        units: int,
        activation: str | Callable | None = "relu",
        use_bias: bool = True,
        **options: Any,
    ):
        super().__init__(activation=activation, use_bias=use_bias, **options)
        self.units = _arguments.integer("units", units)

    def build(self, input_shape):
        features = self.fixed_features(input_shape)
        self.add_branch(
            (features, self.units), (self.units, features), (self.units,)
        )

    @classmethod
    def from_config(cls, config):
        names = {"width": "units"}  # in files of version 0.1.0
        return cls(**{names.get(k, k): value for k, value in config.items()})

    def call(self, x):
        x = ops.cast(x, self.compute_dtype)  # integers too
        hidden = ops.matmul(x, self.kernel)
        hidden = hidden + self.bias if self.use_bias else hidden
        branch = ops.matmul(self.activation(hidden), self.output_kernel)
        return x + self.scaled(branch)
