"""Batches of standardised images, moved about where they train."""

import epochs
import numpy as np
import tensorflow as tf

BORDER = 2  # pixels on each side: 32 x 32 becomes 36 x 36


def training(images, labels, size, augment, flip):
    """Batches in a new order each epoch.

    With `augment` each image gets a border of 0, is cut back at random and,
    with `flip`, mirrored every other time.
    """
    images = tf.constant(_with_channels(images))
    labels = tf.constant(labels)

    def of(seed):
        def image_and_label(row):
            image = images[row]
            if augment:
                of_row = tf.random.experimental.stateless_fold_in(seed, row)
                image = _moved(image, flip, of_row)
            return image, labels[row]

        rows = epochs.order(len(labels), seed)
        dataset = rows.map(image_and_label, num_parallel_calls=tf.data.AUTOTUNE)
        return _standardised(dataset, size)

    return epochs.Epochs(of, -(-len(labels) // size))


def evaluation(images, labels, size):
    """Batches in the order given, nothing moved."""
    images = _with_channels(images)
    dataset = tf.data.Dataset.from_tensor_slices((images, labels))
    return _standardised(dataset, size)


def _with_channels(images):
    images = np.asarray(images)
    return images[..., None] if images.ndim == 3 else images


def _moved(image, flip, seed):
    where, whether = tf.unstack(tf.random.experimental.stateless_split(seed))
    border = [(BORDER, BORDER), (BORDER, BORDER), (0, 0)]
    padded = tf.pad(image, border)
    image = tf.image.stateless_random_crop(padded, image.shape, where)
    if flip:
        image = tf.image.stateless_random_flip_left_right(image, whether)
    return image


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
