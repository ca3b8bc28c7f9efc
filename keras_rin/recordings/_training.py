"""Trainings of one compiled network, each from new weights."""

import time
import typing
import warnings

import keras
import numpy as np
from sklearn.preprocessing import StandardScaler

BATCH = 16  # sequences of an update
EPOCH = 25  # updates, at most, of one call of the compiled program


def precise_dtype():
    """Float64, where the backend has it: on JAX with `JAX_ENABLE_X64=1`."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        number = keras.ops.ones((), "float64")
    return keras.backend.standardize_dtype(number.dtype)


def normalization(pieces):
    """The layer that scales rows, in float64, and that of scikit-learn."""
    scaler = StandardScaler()
    for rows in pieces:  # without a copy of all of them
        scaler.partial_fit(rows)
    moments = {"mean": scaler.mean_, "variance": scaler.scale_**2}
    layer = keras.layers.Normalization(dtype=precise_dtype(), **moments)
    return layer, scaler


class Network:
    """A `model` of scaled inputs, which XLA compiles once for all trainings.

    `raw_model`, of the same layers, reads raw values. `batch(is_final, rng)`
    draws inputs and targets, in a final training also of the validation.
    """

    model: keras.Model
    batch: typing.Callable

    def compile(self, loss, epoch, **options):
        self.epoch = epoch
        optimizer = keras.optimizers.Adam(beta_2=0.99, global_clipnorm=1.0)
        options["jit_compile"] = keras.backend.backend() != "torch"
        self.model.compile(
            optimizer, loss, steps_per_execution=epoch, **options
        )

    def seconds(self):
        """Seconds of an update, without what each training takes once."""
        self.train(False, 0.0, 0, self.epoch)  # compiles it
        times = [time.monotonic()]
        for epochs in (1, 3):
            self.train(False, 0.0, 0, epochs * self.epoch)
            times.append(time.monotonic())
        short, long = np.diff(times)
        return np.clip((long - short) / 2, long / 10, long / 3) / self.epoch

    def train(self, is_final, rate, seed, updates, end=np.inf):
        """The number of updates of a training from new weights.

        The rate has cosine decay over all updates, of which fewer are made if
        the clock passes `end` or the loss is not finite.
        """
        keras.utils.set_random_seed(seed)
        new = keras.models.clone_model(self.model).variables
        # Also the state of dropout, so that the seed alone determines a run.
        for variable, drawn in zip(self.model.variables, new, strict=True):
            variable.assign(drawn)
        for variable in self.model.optimizer.variables:
            variable.assign(np.zeros(variable.shape))
        rng, epochs = np.random.default_rng(seed), -(-updates // self.epoch)
        done = 0

        def batches():
            while True:
                yield self.batch(is_final, rng)

        def begin(epoch, logs):
            decay = (1 + np.cos(np.pi * epoch / epochs)) / 2
            self.model.optimizer.learning_rate = rate * decay

        def finish(epoch, logs):
            nonlocal done
            done = min(updates, (epoch + 1) * self.epoch)
            is_over = time.monotonic() >= end
            self.model.stop_training = is_over or not np.isfinite(logs["loss"])

        self.model.fit(
            batches(),
            epochs=epochs,
            steps_per_epoch=self.epoch,
            shuffle=False,
            verbose=0,
            callbacks=[keras.callbacks.LambdaCallback(begin, finish)],
        )
        return done
