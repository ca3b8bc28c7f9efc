"""Trainings of one compiled model, each from new weights."""

import time

import keras
import numpy as np

BATCH = 16  # sequences of an update


class Trainer:
    """A model that XLA compiles once, for all its trainings.

    An epoch is `updates` updates in one call of the compiled program.
    """

    def __init__(self, model, loss, updates, **options):
        self.model, self.updates = model, updates
        self.is_compiled = False
        optimizer = keras.optimizers.Adam(beta_2=0.99, global_clipnorm=1.0)
        options |= {"jit_compile": True, "steps_per_execution": updates}
        model.compile(optimizer, loss, **options)

    def fit(self, batch, rate, seed, epochs, limit=np.inf):
        """Seconds of a training from new weights, whose rate has cosine decay.

        `batch` is a function of a generator of random numbers that returns
        inputs and targets. The decay ends with the epochs, or after `limit`
        seconds, in which compiling does not count. The training of a loss that
        is not finite ends at once.
        """
        if not self.is_compiled:
            self.is_compiled = True
            self.fit(batch, rate, seed, 1)
        keras.utils.set_random_seed(seed)
        new = keras.models.clone_model(self.model).variables
        # Also the state of dropout, so that the seed alone determines a run.
        for variable, drawn in zip(self.model.variables, new, strict=True):
            variable.assign(drawn)
        for variable in self.model.optimizer.variables:
            variable.assign(np.zeros(variable.shape))
        rng, start = np.random.default_rng(seed), time.monotonic()

        def batches():
            while True:
                yield batch(rng)

        def begin(epoch, logs):
            spent = (time.monotonic() - start) / limit
            part = min(1, max(epoch / epochs, spent)) if epoch else 0
            decay = (1 + np.cos(np.pi * part)) / 2
            self.model.optimizer.learning_rate = rate * decay

        def end(epoch, logs):
            is_over = time.monotonic() - start >= limit
            self.model.stop_training = is_over or not np.isfinite(logs["loss"])

        self.model.fit(
            batches(),
            epochs=epochs,
            steps_per_epoch=self.updates,
            shuffle=False,
            verbose=0,
            callbacks=[keras.callbacks.LambdaCallback(begin, end)],
        )
        return time.monotonic() - start
