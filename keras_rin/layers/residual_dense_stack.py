"""ResidualDenseStack: a deep stack of residual blocks in one layer."""

from collections.abc import Callable
from typing import Any

import keras
from keras import ops
from keras.initializers import Initializer

from keras_rin import arguments


@keras.saving.register_keras_serializable(package="keras_rin")
class ResidualDenseStack(keras.layers.Layer):
    """A stack of `depth` equal residual blocks, computed by a single layer.

    h_0 = x,  h_{i+1} = h_i + activation(h_i U_i + s_i) V_i,  y = h_depth

    The weights of all blocks are stored along a leading axis, and one loop
    runs over that axis. A stack of a thousand blocks therefore builds, saves
    and compiles as fast as one layer. Inputs are row vectors; the paper uses
    column vectors, h + V relu(U h + s).

    The weights are `kernel` U `(depth, features, width)`, `output_kernel` V
    `(depth, width, features)` and `bias` s `(depth, width)`. With the default
    initialization, V = 0, the layer is the identity map.

    Args:
        depth: Positive integer, number of residual blocks.
        width: Positive integer, number of hidden units of each block.
        activation: Activation function. Defaults to `"relu"`.
        kernel_initializer: Initializer of U, called once for all blocks.
            Defaults to `"he_normal"`, whose variance is divided by `depth`,
            because Keras counts the leading axis as part of the fan-in.
        output_initializer: Initializer of V. Defaults to `"zeros"`.
        **kwargs: `name`, `dtype`, `trainable`, `activity_regularizer`.

    Call arguments:
        x: Tensor of shape `(..., features)`.

    Returns:
        Tensor of the shape of `x`.

    Raises:
        ValueError: If `depth` or `width` is not a positive integer, or if the
            number of features is undefined or differs from that of earlier
            calls.

    Example:

    >>> layer = keras_rin.layers.ResidualDenseStack(depth=100, width=8)
    >>> tuple(layer(np.ones((32, 4))).shape)
    (32, 4)

    Reference:
        Hardt and Ma, 2017, Identity matters in deep learning (arXiv
        1611.04231), section 3.
    """

    def __init__(
        self,
        depth: int,
        width: int,
        activation: str | Callable | None = "relu",
        kernel_initializer: str | Initializer = "he_normal",
        output_initializer: str | Initializer = "zeros",
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        self.supports_masking = True
        # On TensorFlow, XLA has no gradient of `keras.ops.scan`, and the
        # compiler of Torch unrolls it: `jit_compile="auto"` stays off.
        self.supports_jit = keras.backend.backend() == "jax"
        self.depth = arguments.integer("depth", depth)
        self.width = arguments.integer("width", width)
        self.activation = keras.activations.get(activation)
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.output_initializer = keras.initializers.get(output_initializer)

    def build(self, input_shape):
        features = arguments.features(self.name, input_shape)
        self.kernel = self.add_weight(
            name="kernel",
            shape=(self.depth, features, self.width),
            initializer=self.kernel_initializer,
        )
        self.output_kernel = self.add_weight(
            name="output_kernel",
            shape=(self.depth, self.width, features),
            initializer=self.output_initializer,
        )
        self.bias = self.add_weight(
            name="bias", shape=(self.depth, self.width), initializer="zeros"
        )
        self.input_spec = keras.InputSpec(min_ndim=2, axes={-1: features})

    def call(self, x):
        def unit(h, weights):
            kernel, output_kernel, bias = weights
            hidden = self.activation(ops.matmul(h, kernel) + bias)
            return h + ops.matmul(hidden, output_kernel), None

        weights = (self.kernel, self.output_kernel, self.bias)
        weights = tuple(ops.convert_to_tensor(weight) for weight in weights)
        return ops.scan(unit, x, weights)[0]

    def compute_output_shape(self, input_shape):
        return input_shape

    def get_config(self):
        return {
            **super().get_config(),
            "depth": self.depth,
            "width": self.width,
            "activation": keras.activations.serialize(self.activation),
            "kernel_initializer": keras.initializers.serialize(
                self.kernel_initializer
            ),
            "output_initializer": keras.initializers.serialize(
                self.output_initializer
            ),
        }
