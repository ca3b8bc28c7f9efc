"""Batches whose order depends on the seed and the epoch, on nothing else.

`model.fit` shuffles arrays in an order that starts anew with each call, so a
run that goes on after an end would see them in another order than one that
never ended. Here an epoch is data as well: epoch 7 of seed 3 is always the
same.
"""

import collections.abc
import dataclasses

import tensorflow as tf


@dataclasses.dataclass
class Epochs:
    """Batches to train on: `of(seed)`, two integers, are those of an epoch."""

    of: collections.abc.Callable
    steps: int

    def stream(self, seed, first, end):
        """All batches from the epoch `first` until before the epoch `end`."""

        def epoch(number):
            return self.of(tf.stack([seed, number])).take(self.steps)

        numbers = tf.data.Dataset.range(first, end)
        return numbers.flat_map(epoch).prefetch(tf.data.AUTOTUNE)


def shuffled(arrays, size):
    """Batches of the rows of arrays, in a new order each epoch."""
    arrays = tf.nest.map_structure(tf.constant, arrays)
    count = len(tf.nest.flatten(arrays)[0])

    def of(seed):
        batches = order(count, seed).batch(size)
        return batches.map(
            lambda rows: tf.nest.map_structure(
                lambda array: tf.gather(array, rows), arrays
            )
        )

    return Epochs(of, -(-count // size))


def order(rows, seed):
    """The numbers below `rows`, shuffled."""
    numbers = tf.random.experimental.stateless_shuffle(tf.range(rows), seed)
    return tf.data.Dataset.from_tensor_slices(numbers)
