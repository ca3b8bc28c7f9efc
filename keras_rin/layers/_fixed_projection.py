"""FixedProjection: an untrained random output layer."""

from typing import Any

import keras
from keras import ops
from keras.initializers import Initializer
from keras.regularizers import Regularizer

from keras_rin import _arguments
from keras_rin.initializers import _half_precision


@keras.saving.register_keras_serializable(package="keras_rin")
class FixedProjection(keras.layers.Layer):
    """A random linear projection that is not trained, for the output layer.

    y = x P

    All trainable weights of a model that ends in this layer are in the layers
    before it. `kernel` P `(features, units)` is drawn once and is saved and
    exported with the model, but it is never a trainable weight.

    Args:
        units: Positive integer, dimensionality of the output.
        kernel_initializer: Initializer of P. Defaults to `None`: a normal
            distribution with variance 1 / features, which preserves the mean
            square of the input in expectation. The paper does not specify an
            initializer.
        activity_regularizer: Regularizer of the output. Defaults to `None`.
        seed: Integer, random seed of the default initializer. It does not
            affect another `kernel_initializer`. Defaults to `None`.
        **kwargs: `name`, `dtype`, `trainable`.

    Call arguments:
        x: Tensor of shape `(..., features)`.

    Returns:
        Tensor of shape `(..., units)`.

    Raises:
        ValueError: If `units` is not a positive integer, if
            `kernel_initializer` is unknown to Keras, or if the number of
            features is undefined or differs from that of earlier calls.

    Example:

    >>> layer = keras_rin.layers.FixedProjection(10, seed=0)
    >>> tuple(layer(np.ones((2, 64))).shape), layer.trainable_weights
    ((2, 10), [])

    Reference:
        Hardt and Ma, 2017, Identity matters in deep learning (arXiv
        1611.04231), section 4.
    """

    def __init__(
        self,
        units: int,
        kernel_initializer: str | Initializer | None = None,
        activity_regularizer: str | Regularizer | None = None,
        *,
        seed: int | None = None,
        **kwargs: Any,
    ):
        super().__init__(activity_regularizer=activity_regularizer, **kwargs)
        self.supports_masking = True
        self.units = _arguments.integer("units", units)
        self.seed = seed
        self.kernel_initializer = keras.initializers.get(
            kernel_initializer or _mean_square_preserving(seed)
        )

    def build(self, input_shape):
        features = _arguments.checked_features(self.name, input_shape)
        self.input_spec = keras.InputSpec(min_ndim=2, axes={-1: features})
        self.kernel = self.add_weight(
            name="kernel",
            shape=(features, self.units),
            initializer=_half_precision.in_float32_if_orthogonal(
                self.kernel_initializer
            ),
            trainable=False,
        )

    def call(self, x):
        return ops.matmul(x, self.kernel)

    def compute_output_shape(self, input_shape):
        return (*input_shape[:-1], self.units)

    def get_config(self):
        return {
            **super().get_config(),
            "units": self.units,
            "kernel_initializer": keras.initializers.serialize(
                self.kernel_initializer
            ),
            "seed": self.seed,
        }


def _mean_square_preserving(seed):
    return keras.initializers.VarianceScaling(
        1.0, "fan_in", "untruncated_normal", seed
    )
