"""Full-batch descent on |(I + A_L) ... (I + A_1) - R|^2 / 2, in Keras."""

import keras
import numpy as np
from keras import ops

from keras_rin.layers import LinearResidual

DONE = 1e-10  # a loss that counts as learned
EVERY = 5  # steps between two looks at the loss


class _Losses(keras.callbacks.Callback):
    """The loss every few steps, until it is small or no number."""

    def __init__(self, x, y):
        super().__init__()
        self.x, self.y, self.losses = x, y, []

    def on_train_batch_end(self, batch, logs=None):
        error = ops.convert_to_numpy(self.model(self.x)) - self.y
        self.losses.append(float(np.sum(np.float64(error) ** 2) / 2))
        if not DONE <= self.losses[-1] < 1e6:
            self.model.stop_training = True


def losses(target, depth, steps, start="identity", rate=1.0, seed=0):
    """Descends towards R; `rate` is in units of `stable_rate`."""
    size = len(target)
    keras.utils.set_random_seed(seed)
    model = build_model(start, size, depth)
    optimizer = keras.optimizers.SGD(rate * stable_rate(target, depth))
    model.compile(optimizer, half_square, steps_per_execution=EVERY)
    x, y = np.eye(size, dtype="float32"), target.T.astype("float32")
    watch = _Losses(x, y)
    model.fit(
        np.tile(x, (steps, 1)),
        np.tile(y, (steps, 1)),
        batch_size=size,
        shuffle=False,
        callbacks=[watch],
        verbose=0,
    )
    return watch.losses


def build_model(start, size, depth):
    def layer():
        if start == "identity":
            return LinearResidual()
        gaussian = keras.initializers.RandomNormal(stddev=size**-0.5)
        return keras.layers.Dense(
            size, use_bias=False, kernel_initializer=gaussian
        )

    layers = [layer() for _ in range(depth)]
    return keras.Sequential([keras.Input((size,)), *layers])


def half_square(y, prediction):
    return ops.sum(ops.square(y - prediction)) / 2


def stable_rate(target, depth):
    """1 / (L max(1, |R|)^(2 - 2/L)): no faster than the curvature allows."""
    largest = max(1.0, np.linalg.norm(target, 2))
    return 1 / (depth * largest ** (2 - 2 / depth))


def steps_needed(curve):
    return EVERY * len(curve) if curve and curve[-1] < DONE else None
