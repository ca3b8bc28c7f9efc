"""ResidualDenseStack: a deep stack of residual blocks in one layer."""

from collections.abc import Callable
from typing import Any

import keras
from keras import ops
from keras.constraints import Constraint
from keras.initializers import Initializer
from keras.regularizers import Regularizer

from keras_rin import _arguments
from keras_rin.layers._residual_branch import ResidualBranch


@keras.saving.register_keras_serializable(package="keras_rin")
class ResidualDenseStack(ResidualBranch):
    """A stack of `depth` equal residual blocks, computed by a single layer.

    h_0 = x,  h_{i+1} = h_i + activation(h_i U_i + b_i) V_i,  y = h_depth

    Each block is a `ResidualDense`. The weights of all blocks are stored along
    a leading axis, and one loop runs over that axis, so a stack of a thousand
    blocks builds, saves and compiles as fast as one layer.

    The trainable weights are, in this order, `kernel` U
    `(depth, features, units)`, `output_kernel` V `(depth, units, features)`
    and `bias` b `(depth, units)`. Each initializer, regularizer and constraint
    takes the weight of all blocks at once. With the default initialization,
    V = 0, the layer is the identity map.

    Args:
        units: Positive integer, number of hidden units of each block.
        activation: Activation function of the hidden units. Defaults to
            `"relu"`. If you pass `None`, no activation is applied.
        use_bias: Boolean, whether the hidden units use bias vectors. Defaults
            to `True`.
        kernel_initializer: Initializer of U. Defaults to `"he_normal"`. Keras
            counts the leading axis as part of the fan-in, so the variance is
            2 / (depth * features).
        bias_initializer: Initializer of b. Defaults to `"zeros"`.
        kernel_regularizer: Regularizer of U. Defaults to `None`.
        bias_regularizer: Regularizer of b. Defaults to `None`.
        activity_regularizer: Regularizer of the output. Defaults to `None`.
        kernel_constraint: Constraint on U. Axis 0 is that of the blocks:
            `keras.constraints.MaxNorm(2, axis=1)` limits the weights of each
            hidden unit. Defaults to `None`.
        bias_constraint: Constraint on b. Defaults to `None`.
        depth: Positive integer, number of residual blocks.
        output_initializer: Initializer of V. Defaults to `"zeros"`.
        output_regularizer: Regularizer of V. Defaults to `None`.
        output_constraint: Constraint on V. Defaults to `None`.
        **kwargs: `name`, `dtype`, `trainable`.

    Call arguments:
        x: Tensor of shape `(..., features)`.

    Returns:
        Tensor of the shape of `x`.

    Raises:
        ValueError: If `units` or `depth` is not a positive integer, if the
            activation, an initializer, a regularizer or a constraint is
            unknown to Keras, or if the number of features is undefined or
            differs from that of earlier calls.

    Example:

    >>> layer = keras_rin.layers.ResidualDenseStack(8, depth=100)
    >>> tuple(layer(np.ones((32, 4))).shape)
    (32, 4)

    Reference:
        Hardt and Ma, 2017, Identity matters in deep learning (arXiv
        1611.04231), section 3, where x is a column vector.
    """

    def __init__(
        self,
        units: int,
        activation: str | Callable | None = "relu",
        use_bias: bool = True,
        kernel_initializer: str | Initializer = "he_normal",
        bias_initializer: str | Initializer = "zeros",
        kernel_regularizer: str | Regularizer | None = None,
        bias_regularizer: str | Regularizer | None = None,
        activity_regularizer: str | Regularizer | None = None,
        kernel_constraint: str | Constraint | None = None,
        bias_constraint: str | Constraint | None = None,
        *,
        depth: int,
        output_initializer: str | Initializer = "zeros",
        output_regularizer: str | Regularizer | None = None,
        output_constraint: str | Constraint | None = None,
        **kwargs: Any,
    ):
        super().__init__(
            activation=activation,
            use_bias=use_bias,
            kernel_initializer=kernel_initializer or "he_normal",
            bias_initializer=bias_initializer,
            kernel_regularizer=kernel_regularizer,
            bias_regularizer=bias_regularizer,
            activity_regularizer=activity_regularizer,
            kernel_constraint=kernel_constraint,
            bias_constraint=bias_constraint,
            output_initializer=output_initializer or "zeros",
            output_regularizer=output_regularizer,
            output_constraint=output_constraint,
            **kwargs,
        )
        self.supports_masking = True
        # On TensorFlow, XLA has no gradient of `keras.ops.scan`, and the
        # compiler of Torch unrolls it: `jit_compile="auto"` stays off.
        self.supports_jit = keras.backend.backend() == "jax"
        self.units = _arguments.integer("units", units)
        self.depth = _arguments.integer("depth", depth)

    def build(self, input_shape):
        features = _arguments.checked_features(self.name, input_shape)
        self.input_spec = keras.InputSpec(min_ndim=2, axes={-1: features})
        self.add_branch(
            (self.depth, features, self.units),
            (self.depth, self.units, features),
            (self.depth, self.units),
        )

    def call(self, x):
        x = ops.cast(x, self.compute_dtype)  # integers too

        def block(h, weights):
            kernel, output_kernel, *bias = weights
            hidden = ops.matmul(h, kernel)
            if self.use_bias:
                hidden = hidden + bias[0]
            return h + ops.matmul(self.activation(hidden), output_kernel), None

        weights = [self.kernel, self.output_kernel]
        if self.use_bias:
            weights.append(self.bias)
        tensors = tuple(ops.convert_to_tensor(weight) for weight in weights)
        return ops.scan(block, x, tensors)[0]

    def compute_output_shape(self, input_shape):
        return input_shape

    def get_config(self):
        return {
            **super().get_config(),
            "units": self.units,
            "depth": self.depth,
        }
