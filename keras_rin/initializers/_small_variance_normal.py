"""SmallVarianceNormal: initializer of unnormalized residual blocks."""

import math

import keras

from keras_rin import _arguments


@keras.saving.register_keras_serializable(package="keras_rin")
class SmallVarianceNormal(keras.initializers.Initializer):
    """Normal initializer of residual blocks without normalization.

    sigma = 1 / (k^2 c)

    k is the kernel size and c the number of output channels. For a kernel
    that is not square, k^2 is height times width; for a dense kernel it is 1,
    so sigma = 1 / c. The standard deviation is the square of the usual
    1 / (k sqrt(c)), with which each residual block adds half the variance of
    its input.

    Args:
        seed: Integer, at least 0, random seed. With a seed, all kernels of one
            shape have the same values. Defaults to `None`.

    Raises:
        ValueError: If the shape has fewer than two axes, or one of size 0.

    Example:

    >>> initializer = keras_rin.initializers.SmallVarianceNormal(seed=0)
    >>> kernel = initializer((3, 3, 64, 64))
    >>> f"{keras.ops.convert_to_numpy(kernel).std() * 9 * 64:.1f}"
    '1.0'

    Reference:
        Hardt and Ma, 2017, Identity matters in deep learning (arXiv
        1611.04231), section 4.
    """

    def __init__(self, seed: int | None = None):
        if seed is not None:
            seed = _arguments.integer("seed", seed, at_least=0)
        self.seed = seed

    def __call__(self, shape, dtype=None):
        if len(shape) < 2 or not all(shape):
            raise ValueError(
                "SmallVarianceNormal initializes kernels of at least two "
                "axes, the last of them input and output channels. "
                f"Received: shape={tuple(shape)}"
            )
        *window, _, channels = shape
        sigma = 1 / (math.prod(window) * channels)
        # Each call needs a new instance, because an initializer repeats its
        # values.
        normal = keras.initializers.RandomNormal(stddev=sigma, seed=self.seed)
        return normal(shape, dtype)

    def get_config(self):
        return {"seed": self.seed}
