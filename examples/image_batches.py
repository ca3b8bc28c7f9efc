"""Batches of standardised images, shifted and mirrored while training."""

import numpy as np
import tensorflow as tf

BORDER = 2  # pixels on each side: 32 x 32 becomes 36 x 36


def batches(images, labels, size, training=False, flip=True):
    """A dataset of (images, labels), each image with mean 0 and variance 1.

    In training the images come in a new order each epoch, each one padded by
    `BORDER` pixels of 0, cut back at random and, with `flip`, mirrored every
    other time.
    """
    images = np.asarray(images)
    if images.ndim == 3:
        images = images[..., None]
    dataset = tf.data.Dataset.from_tensor_slices((images, labels))
    if training:
        dataset = dataset.shuffle(len(labels))

    def prepare(image, label):
        if training:
            image = _moved(image, flip)
        return tf.image.per_image_standardization(image), label

    dataset = dataset.map(prepare, num_parallel_calls=tf.data.AUTOTUNE)
    return dataset.batch(size).prefetch(tf.data.AUTOTUNE)


def _moved(image, flip):
    border = [(BORDER, BORDER), (BORDER, BORDER), (0, 0)]
    image = tf.image.random_crop(tf.pad(image, border), image.shape)
    return tf.image.random_flip_left_right(image) if flip else image
