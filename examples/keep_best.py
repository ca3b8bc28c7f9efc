"""Keeps the best network in a file that is whole at any moment."""

import math

import keras

from keras_rin import files


class KeepBest(keras.callbacks.Callback):
    """Saves the network after each epoch whose `monitor` is the best so far.

    `mode` is "min" or "max", `best` the value of the file that is there. A run
    that is killed while it writes keeps the best network before, and so does
    one whose disk is full.
    """

    def __init__(self, file, monitor, mode, best=None):
        super().__init__()
        self._file, self._monitor, self._mode = file, monitor, mode
        self._best = best

    def on_train_begin(self, logs=None):
        files.remove_unfinished(self._file)

    def on_epoch_end(self, epoch, logs=None):
        if self._is_best(logs[self._monitor]):
            with files.replacing(self._file, "The best network") as new:
                self.model.save(new)
            self._best = logs[self._monitor]

    def _is_best(self, value):
        if self._best is None or math.isnan(self._best):
            return True
        return value < self._best if self._mode == "min" else value > self._best
