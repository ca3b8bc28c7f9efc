"""ResidualDenseStack: a deep stack of residual blocks in one layer."""

from collections.abc import Callable
from typing import Any

import keras
from keras import ops
from keras.initializers import Initializer

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
    takes the weight of all blocks at once: in a constraint, axis 0 is that of
    the blocks, and `keras.constraints.MaxNorm(2, axis=1)` limits the weights
    of each hidden unit. With the default initialization, V = 0, the layer is
    the identity map.

    Args:
        units: Positive integer, number of hidden units of each block. All
            arguments that are not listed are those of `ResidualDense`.
        depth: Positive integer, number of residual blocks.
        kernel_initializer: Initializer of U. Defaults to `"he_normal"`. Keras
            counts the leading axis as part of the fan-in, so the variance is
            2 / (depth * features).
        output_initializer: Initializer of V. Defaults to `"zeros"`.
        **options: Arguments of `ResidualDense`, by name.

    Call arguments:
        x: Tensor of shape `(..., features)`.

    Returns:
        Tensor of the shape of `x`.

    Example:

    >>> layer = keras_rin.layers.ResidualDenseStack(8, depth=100)
    >>> tuple(layer(np.ones((32, 4))).shape)
    (32, 4)

    Reference:
        Hardt and Ma, 2017 (arXiv 1611.04231), section 3; see `ResidualDense`.
    """

    SIZES = "units", "depth"

    def __init__(
        self,
        units: int,
        activation: str | Callable | None = "relu",
        use_bias: bool = True,
        *,
        depth: int,
        kernel_initializer: str | Initializer = "he_normal",
        output_initializer: str | Initializer = "zeros",
        **options: Any,
    ):
        super().__init__(
            activation=activation,
            use_bias=use_bias,
            kernel_initializer=kernel_initializer or "he_normal",
            output_initializer=output_initializer or "zeros",
            **options,
        )
        # On TensorFlow, XLA has no gradient of `keras.ops.scan`, and the
        # compiler of Torch unrolls it: `jit_compile="auto"` stays off.
        self.supports_jit = keras.backend.backend() == "jax"
        self.units = _arguments.integer("units", units)
        self.depth = _arguments.integer("depth", depth)

    def build(self, input_shape):
        features = self.fixed_features(input_shape)
        self.add_branch(
            (self.depth, features, self.units),
            (self.depth, self.units, features),
            (self.depth, self.units),
        )

    def call(self, x):
        x = ops.cast(x, self.compute_dtype)  # integers too

        def block(h, weights):
            return self.dense_block(h, *weights), None

        tensors = tuple(ops.convert_to_tensor(w) for w in self.weights)
        return ops.scan(block, x, tensors)[0]
