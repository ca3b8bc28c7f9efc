"""Batches of standardised images, moved about where they train."""

import numpy as np
import tensorflow as tf

BORDER = 2  # pixels on each side: 32 x 32 becomes 36 x 36


def training(images, labels, size, augment, flip):
    """Batches in a new order each epoch.

    With `augment` each image gets a border of 0, is cut back at random and,
    with `flip`, mirrored every other time.
    """
    images = _with_channels(images)
    dataset = tf.data.Dataset.from_tensor_slices((images, labels))
    dataset = dataset.shuffle(len(labels))
    if augment:
        dataset = dataset.map(
            lambda image, label: (_moved(image, flip), label),
            num_parallel_calls=tf.data.AUTOTUNE,
        )
    return _standardised(dataset, size)


def evaluation(images, labels, size):
    """Batches in the order given, nothing moved."""
    images = _with_channels(images)
    dataset = tf.data.Dataset.from_tensor_slices((images, labels))
    return _standardised(dataset, size)


def _with_channels(images):
    images = np.asarray(images)
    return images[..., None] if images.ndim == 3 else images


def _moved(image, flip):
    border = [(BORDER, BORDER), (BORDER, BORDER), (0, 0)]
    image = tf.image.random_crop(tf.pad(image, border), image.shape)
    return tf.image.random_flip_left_right(image) if flip else image


def _standardised(dataset, size):
    """In batches, each image with mean 0 and variance 1."""
    return (
        dataset.batch(size)
        .map(
            lambda images, labels: (
                tf.image.per_image_standardization(images),
                labels,
            ),
            num_parallel_calls=tf.data.AUTOTUNE,
        )
        .prefetch(tf.data.AUTOTUNE)
    )
