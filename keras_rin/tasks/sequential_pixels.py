"""Sequential image classification: one pixel per time step."""

import numpy as np
from numpy.typing import ArrayLike

__all__ = ["baseline_loss", "chance_accuracy", "generate"]


def generate(
    images: "ArrayLike", order: "ArrayLike | None" = None
) -> np.ndarray:
    """Converts images to sequences of pixels in row-major order.

    Args:
        images: Array of shape `(samples, height, width)` or
            `(samples, height, width, channels)`. `uint8` images are divided by
            255; other dtypes are not scaled.
        order: Integer array, the pixel of each time step, such as a
            permutation of all. Defaults to `None`: row-major order.

    Returns:
        A float32 array of shape `(samples, height * width, channels)`.

    Example:

    >>> images = np.zeros((10, 28, 28), "uint8")
    >>> order = np.random.default_rng(0).permutation(28 * 28)
    >>> keras_rin.tasks.sequential_pixels.generate(images, order).shape
    (10, 784, 1)

    Reference:
        Le, Jaitly and Hinton, 2015, A simple way to initialize recurrent
        networks of rectified linear units (arXiv 1504.00941).
    """
    images = np.asarray(images)
    if images.ndim not in (3, 4):
        raise ValueError(
            "`images` must have the shape (samples, height, width) or "
            "(samples, height, width, channels). "
            f"Received: images of shape {images.shape}"
        )
    scale = 255 if images.dtype == np.uint8 else 1
    samples, height, width, *channels = images.shape
    shape = samples, height * width, *(channels or [1])
    x = images.reshape(shape).astype("float32") / scale
    return x if order is None else x[:, np.asarray(order)]


def baseline_loss(labels: "ArrayLike") -> float:
    """Cross-entropy, in nats, of predicting the class frequencies.

    It equals ln(classes) if all classes are equally frequent.

    Args:
        labels: Integer array of shape `(samples,)`, the classes.

    Returns:
        A float, the entropy of the labels.

    Example:

    >>> keras_rin.tasks.sequential_pixels.baseline_loss([0, 1, 0, 1])
    0.6931471805599453
    """
    share = _class_shares(labels)
    return float(-np.sum(share * np.log(share)))


def chance_accuracy(labels: "ArrayLike") -> float:
    """Chance level: accuracy of predicting the most frequent class.

    Args:
        labels: Integer array of shape `(samples,)`, the classes.

    Returns:
        A float, the frequency of that class.

    Example:

    >>> keras_rin.tasks.sequential_pixels.chance_accuracy([0, 1, 0, 0])
    0.75
    """
    return float(_class_shares(labels).max())


def _class_shares(labels):
    counts = np.unique(labels, return_counts=True)[1]
    if counts.size == 0:
        raise ValueError("`labels` must not be empty. Received: labels=[]")
    return counts / counts.sum()
