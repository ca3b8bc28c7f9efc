"""SmallVarianceNormal: residual branches that need no normalization."""

import math

import keras

from keras_rin import arguments


@keras.saving.register_keras_serializable(package="keras_rin")
class SmallVarianceNormal(keras.initializers.Initializer):
    """A normal start for residual branches, in need of no normalisation.

    sigma = 1 / (k^2 c)

    k is the size of the kernel and c its number of output channels. Of a
    kernel that is not square k^2 is height times width, of a dense one it is
    1: sigma = 1 / c. This is the square of the usual 1 / (k sqrt(c)), with
    which each residual block adds half the variance it is given.

    Args:
        seed: Integer, 0 or more, that makes every kernel of one shape alike.
            Defaults to `None`: each kernel is drawn anew.

    Raises:
        ValueError: If `seed` is neither `None` nor such an integer, or if
            the shape asked for has fewer than two axes, or one of size 0.

    Example:

    >>> initializer = keras_rin.initializers.SmallVarianceNormal(seed=0)
    >>> kernel = initializer((3, 3, 64, 64))
    >>> f"{keras.ops.convert_to_numpy(kernel).std() * 9 * 64:.1f}"
    '1.0'

    Reference:
        Hardt and Ma, 2017, Identity matters in deep learning (arXiv
        1611.04231), section 4.
    """

    def __init__(self, seed=None):
        if seed is not None:
            seed = arguments.integer("seed", seed, at_least=0)
        self.seed = seed

    def __call__(self, shape, dtype=None):
        if len(shape) < 2 or not all(shape):
            raise ValueError(
                "SmallVarianceNormal starts kernels, whose last two axes are "
                f"their inputs and outputs. Received: shape={tuple(shape)}"
            )
        *window, _, channels = shape
        sigma = 1 / (math.prod(window) * channels)
        # A new one each time: one initializer repeats its numbers.
        normal = keras.initializers.RandomNormal(stddev=sigma, seed=self.seed)
        return normal(shape, dtype)

    def get_config(self):
        return {"seed": self.seed}
