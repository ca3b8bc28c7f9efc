"""LinearResidual: a linear residual layer."""

from typing import Any

import keras
from keras import ops
from keras.initializers import Initializer

from keras_rin.layers._offset_options import warn_about_effective_options
from keras_rin.layers._residual_branch import ResidualLayer
from keras_rin.layers._saved_weights import MarkedOffset


@keras.saving.register_keras_serializable(package="keras_rin")
class LinearResidual(MarkedOffset, ResidualLayer):
    """A linear residual layer: the identity plus a linear map.

    y = x + scale x A

    A stack of these layers computes x (I + A_1) ... (I + A_L), which is a
    linear map with the loss landscape of a deep network. With the default
    initialization, A = 0, the layer is the identity map.

    The offset A is stored in `kernel` `(features, features)`, so
    `keras.regularizers.L2` pulls the layer towards the identity.

    Args:
        kernel_initializer: Initializer of the offset A. Defaults to
            `"zeros"`, which makes the layer the identity map.
        kernel_regularizer: Regularizer of the offset A. Defaults to `None`.
        activity_regularizer: Regularizer of the output. Defaults to `None`.
        kernel_constraint: Constraint on the offset A. Defaults to `None`.
        scale: As in `ResidualDense`; `"rezero"` needs another initializer.
            Defaults to 1.
        **options: The arguments from `kernel_regularizer` on, by name, and
            `name`, `dtype`, `trainable`.

    Call arguments:
        x: Tensor of shape `(..., features)`.

    Returns:
        Tensor of the shape of `x`.

    Example:

    >>> layer = keras_rin.layers.LinearResidual()
    >>> keras.ops.convert_to_numpy(layer(np.full((1, 1), 7.0)))
    array([[7.]], dtype=float32)

    Reference:
        Hardt and Ma, 2017, Identity matters in deep learning (arXiv
        1611.04231), section 2.
    """

    WEIGHTS = ("kernel",)
    CONVERSION = (
        "Load the effective matrix of a Dense into "
        "`keras.layers.Dense(use_bias=False)`, and set the kernel A = W - I."
    )

    def __init__(
        self,
        kernel_initializer: str | Initializer = "zeros",
        **options: Any,
    ):
        super().__init__(kernel_initializer=kernel_initializer, **options)
        warn_about_effective_options(self, "kernel")

    def build(self, input_shape):
        shape = (self.fixed_features(input_shape),) * 2
        self.kernel = self.add_weight_of("kernel", "kernel", shape)
        self.add_scale()

    def call(self, x):
        x = ops.cast(x, self.compute_dtype)  # integers too
        return x + self.scaled(ops.matmul(x, self.kernel))
