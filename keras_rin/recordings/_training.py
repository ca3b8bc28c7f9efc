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
        optimizer = keras.optimizers.Adam(beta_2=0.99, global_clipnorm=1.0)
        options["jit_compile"] = keras.backend.backend() != "torch"
        options["steps_per_execution"] = updates
        model.compile(optimizer, loss, **options)

    def seconds(self, batch):
        """Seconds of one update, after the compilation."""
        self.fit(batch, 0.0, 0, self.updates)
        start = time.monotonic()
        self.fit(batch, 0.0, 0, self.updates)
        return (time.monotonic() - start) / self.updates

    def fit(self, batch, rate, seed, updates, end=np.inf):
        """The number of updates of a training from new weights.

        `batch` is a function of a generator of random numbers that returns
        inputs and targets. The rate has cosine decay over all updates, of which
        fewer are made if the clock passes `end` or the loss is not finite.
        """
        keras.utils.set_random_seed(seed)
        new = keras.models.clone_model(self.model).variables
        # Also the state of dropout, so that the seed alone determines a run.
        for variable, drawn in zip(self.model.variables, new, strict=True):
            variable.assign(drawn)
        for variable in self.model.optimizer.variables:
            variable.assign(np.zeros(variable.shape))
        rng, epochs = np.random.default_rng(seed), -(-updates // self.updates)
        done = 0

        def batches():
            while True:
                yield batch(rng)

        def begin(epoch, logs):
            decay = (1 + np.cos(np.pi * epoch / epochs)) / 2
            self.model.optimizer.learning_rate = rate * decay

        def finish(epoch, logs):
            nonlocal done
            done = min(updates, (epoch + 1) * self.updates)
            is_over = time.monotonic() >= end or not np.isfinite(logs["loss"])
            self.model.stop_training = is_over

        self.model.fit(
            batches(),
            epochs=epochs,
            steps_per_epoch=self.updates,
            shuffle=False,
            verbose=0,
            callbacks=[keras.callbacks.LambdaCallback(begin, finish)],
        )
        return done
