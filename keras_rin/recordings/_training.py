"""Networks that follow a stream, trained on joined windows of a log."""

import functools
import math

import keras
import numpy as np

from keras_rin.initializers import Offset
from keras_rin.layers import RIN

BATCH, EPOCH, EPOCHS = 16, 25, 24  # sequences, updates of an epoch, epochs
LAYERS = {
    "RIN": functools.partial(
        RIN, recurrent_initializer=Offset(keras.initializers.Identity(0.95))
    ),
    "GRU": keras.layers.GRU,
}


class Training:
    """Compiled models, and how each is trained on windows of a log."""

    def __init__(self, log, window, seed):
        self.log, self.seed = log, seed
        lengths = np.bincount(log.piece, weights=log.part != "test")
        self.window = int(min(window, np.quantile(lengths[lengths > 0], 0.1)))
        self.joined = max(2, round(2 * window / self.window))
        x, _ = log.rows("train", "validate")
        self.mean, self.variance = x.mean(axis=0), x.var(axis=0)
        self.variance[self.variance == 0] = 1  # a channel that never changes
        self.models: dict = {}

    def build(self, layer, units):
        """A new model, which reads rows of the log."""
        return keras.Sequential(
            [
                keras.Input((None, len(self.mean))),
                keras.layers.Normalization(
                    mean=self.mean, variance=self.variance
                ),
                LAYERS[layer](units, return_sequences=True),
                keras.layers.Dense(len(self.log.classes)),
            ]
        )

    def fit(self, layer, units, rate, parts, seed, progress):
        """The model after training, or `None` if it diverged."""
        if (layer, units) not in self.models:
            model = self.build(layer, units)
            model.compile(
                keras.optimizers.Adam(beta_2=0.99, global_clipnorm=1.0),
                keras.losses.SparseCategoricalCrossentropy(from_logits=True),
                jit_compile=True,
                steps_per_execution=EPOCH,
            )
            self.models[layer, units] = model
        model = self.models[layer, units]
        keras.utils.set_random_seed(seed)
        model.set_weights(self.build(layer, units).get_weights())
        for variable in model.optimizer.variables:
            variable.assign(keras.ops.zeros(variable.shape, variable.dtype))
        rng = np.random.default_rng(seed)
        starts = self.log.starts(parts, self.window)
        shape = self.window, self.joined, BATCH * EPOCH
        for epoch in range(EPOCHS):
            decay = 0.5 + 0.5 * math.cos(math.pi * epoch / EPOCHS)
            model.optimizer.learning_rate = rate * decay
            x, y = self.log.windows(starts, *shape, rng)
            history = model.fit(x, y, batch_size=BATCH, verbose=0)
            progress.update()
            if not np.isfinite(history.history["loss"][0]):
                progress.update(EPOCHS - 1 - epoch)
                return None
        return model
