"""Sequential pixels: images read one pixel at a time."""

import numpy as np

from keras_rin import arguments


def permutation(rng, steps):
    """Draws one order of the pixels, to use for all splits alike.

    Args:
        rng: A `numpy.random.Generator`.
        steps: Positive integer, the pixels of an image (height x width).

    Returns:
        An int64 array of shape `(steps,)` for `generate`.

    Raises:
        ValueError: If `steps` is not a positive integer.
        TypeError: If `rng` is not a `numpy.random.Generator`.
    """
    rng = arguments.generator("rng", rng)
    return rng.permutation(arguments.integer("steps", steps))


def generate(images, order=None):
    """Turns images into sequences of pixels, row by row.

    Args:
        images: Array of shape `(samples, height, width)` or
            `(samples, height, width, channels)`. Unsigned bytes are divided
            by 255, other numbers are taken as they are.
        order: Integer array of shape `(height * width,)`, the pixel to show
            at each step, from `permutation`. Defaults to `None`: row by row.

    Returns:
        A float32 array of shape `(samples, height * width, channels)`.

    Raises:
        ValueError: If `images` has another rank, or if `order` does not name
            every pixel once.

    Example:

    >>> images = np.zeros((10, 28, 28), "uint8")
    >>> order = keras_rin.tasks.sequential_pixels.permutation(
    ...     np.random.default_rng(0), steps=28 * 28)
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
    samples, height, width = images.shape[:3]
    x = images.reshape(samples, height * width, -1).astype("float32") / scale
    return x if order is None else x[:, _checked_order(order, height * width)]


def baseline_loss(labels):
    """The cross-entropy of answering with the share of each class, in nats.

    It is ln(classes) where the classes are equally frequent.

    Args:
        labels: Integer array of shape `(samples,)`, the classes.

    Returns:
        A float, the entropy of the labels.

    Raises:
        ValueError: If `labels` is empty.

    Example:

    >>> keras_rin.tasks.sequential_pixels.baseline_loss([0, 1, 0, 1])
    0.6931471805599453
    """
    share = _class_shares(labels)
    return float(-np.sum(share * np.log(share)))


def chance_accuracy(labels):
    """The accuracy of always answering the most frequent class.

    Args:
        labels: Integer array of shape `(samples,)`, the classes.

    Returns:
        A float, the share of the most frequent class.

    Raises:
        ValueError: If `labels` is empty.

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


def _checked_order(order, steps):
    order = np.asarray(order)
    if not np.array_equal(np.sort(order, axis=None), np.arange(steps)):
        raise ValueError(
            f"`order` must name each of the {steps} pixels once. "
            f"Received: order of shape {order.shape}"
        )
    return order
