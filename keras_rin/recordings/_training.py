"""Networks that follow a stream, trained on joined windows of a log."""

import functools
import math
import time

import keras
import numpy as np

from keras_rin.initializers import Offset
from keras_rin.layers import RIN
from keras_rin.layers import MinGRU

BATCH, EPOCH, EPOCHS = 16, 25, 24  # sequences, updates of an epoch, epochs
# The layer, and learning rates to choose from, the usual first.
LAYERS: dict = {
    "MinGRU": (MinGRU, (0.03, 0.1, 0.3)),
    "GRU": (keras.layers.GRU, (0.03, 0.01, 0.1)),
    "RIN": (
        functools.partial(
            RIN, recurrent_initializer=Offset(keras.initializers.Identity(0.95))
        ),
        (0.01, 0.003, 0.03),
    ),
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
        # The most seconds that compiling, and a compiled training, took.
        self.compiling = self.seconds = 0.0

    def build(self, layer, units):
        """A new model, which reads rows of the log."""
        scale = {"mean": self.mean, "variance": self.variance}
        return keras.Sequential(
            [
                keras.Input((None, len(self.mean))),
                keras.layers.Normalization(**scale),
                LAYERS[layer][0](units, return_sequences=True),
                keras.layers.Dense(len(self.log.classes)),
            ]
        )

    def _compiled(self, layer, units):
        if (layer, units) not in self.models:
            model = self.build(layer, units)
            model.compile(
                keras.optimizers.Adam(beta_2=0.99, global_clipnorm=1.0),
                keras.losses.SparseCategoricalCrossentropy(from_logits=True),
                jit_compile=True,
                steps_per_execution=EPOCH,
            )
            self.models[layer, units] = model
        return self.models[layer, units]

    def fit(self, layer, units, rate, parts, seed, progress):
        """The model after training, or `None` if it diverged."""
        model = self._compiled(layer, units)
        keras.utils.set_random_seed(seed)
        model.set_weights(self.build(layer, units).get_weights())
        for variable in model.optimizer.variables:
            variable.assign(keras.ops.zeros(variable.shape, variable.dtype))
        rng = np.random.default_rng(seed)
        starts = self.log.starts(parts, self.window)
        shape = self.window, self.joined, BATCH * EPOCH
        begin = time.monotonic()
        for epoch in range(EPOCHS):
            decay = 0.5 + 0.5 * math.cos(math.pi * epoch / EPOCHS)
            model.optimizer.learning_rate = rate * decay
            x, y = self.log.windows(starts, *shape, rng)
            history = model.fit(x, y, batch_size=BATCH, verbose=0)
            progress.update()
            if epoch == 0:
                self.compiling = max(self.compiling, time.monotonic() - begin)
                begin = time.monotonic()
            if not np.isfinite(history.history["loss"][0]):
                progress.update(EPOCHS - 1 - epoch)
                return None
        self.seconds = max(self.seconds, time.monotonic() - begin)
        return model
