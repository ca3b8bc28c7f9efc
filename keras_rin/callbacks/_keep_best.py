"""The best model of a training, in a file that is whole at any moment."""

import math
import os
import pathlib
import warnings
from typing import Literal

import keras
import numpy as np

from keras_rin import _callers
from keras_rin import _files


class KeepBest(keras.callbacks.Callback):
    """Saves the model after each epoch whose `monitor` is the best so far.

    It does what `keras.callbacks.ModelCheckpoint` does with
    `save_best_only=True` and one file, by way of another name: the model is
    written beside `filepath` and renamed when it is whole. A process that is
    killed while it writes keeps the best model before, and so does one whose
    disk is full.

    The best value so far is in the attribute `best`. A value that is NaN is
    never the best. To resume, pass the best value of the epochs before as
    `initial_value_threshold`; `ResumableTraining.history` has them.

    Args:
        filepath: The file, with the suffix `.keras`. Folders on the way to it
            are made. A relative path is made absolute here, so that training
            may change the current folder.
        monitor: String, name of the metric in the logs of `fit`. Defaults to
            `"val_loss"`.
        mode: `"min"` if lower values are better, `"max"` if higher ones are.
            Defaults to `None`: `"min"` if `monitor` ends in `"loss"`; any
            other needs a mode.
        initial_value_threshold: Float, the value that the model in `filepath`
            has; only a better one replaces it. Defaults to `None`: the first
            epoch is saved.

    Raises:
        ValueError: If `mode` is not `"min"` or `"max"`, or is missing where
            `monitor` is no loss; if `filepath` does not end in `.keras`, or
            has braces, which are not replaced; at the end of an epoch, if its
            logs do not have `monitor`, unless it was an epoch without
            validation, or it has several values; at the end of the training,
            if no epoch had it.
        OSError: If the file cannot be written, in which case it stays as it
            is.

    Example:

    >>> model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    >>> model.compile("sgd", "mse")
    >>> keep = keras_rin.callbacks.KeepBest(f"{path}.keras", "loss")
    >>> x, y = np.ones((8, 2)), np.ones((8, 1))
    >>> history = model.fit(x, y, epochs=3, callbacks=[keep], verbose=0).history
    >>> keep.best == min(history["loss"])
    True
    """

    def __init__(
        self,
        filepath: str | os.PathLike,
        monitor: str = "val_loss",
        mode: Literal["min", "max"] | None = None,
        initial_value_threshold: float | None = None,
    ):
        super().__init__()
        if mode is None and monitor.endswith("loss"):
            mode = "min"
        if mode not in ("min", "max"):
            raise ValueError(
                "`mode` must be 'min' or 'max', and may be left out for a "
                f"loss alone. Received: monitor={monitor!r}, mode={mode!r}"
            )
        path = os.fspath(filepath)
        if not path.endswith(".keras") or "{" in path:
            raise ValueError(
                "`filepath` must be one file, without braces, and end in "
                f"'.keras'. Received: filepath={path!r}"
            )
        self.filepath = pathlib.Path(path).absolute()
        self.monitor, self.mode = monitor, mode
        self.best = initial_value_threshold
        # These are logs without the metric, `None` once an epoch had it.
        self._logs_without_metric: dict | None = {}

    def on_train_begin(self, logs=None):
        _files.remove_unfinished(self.filepath)

    def on_train_end(self, logs=None):
        if self._logs_without_metric:
            self._raise_unknown_metric(self._logs_without_metric)

    def on_epoch_end(self, epoch, logs=None):
        logs = logs or {}
        value = logs.get(self.monitor)
        if value is None:
            validated = any(name.startswith("val_") for name in logs)
            if validated or not self.monitor.startswith("val_"):
                self._raise_unknown_metric(logs)
            if (
                self._logs_without_metric is not None
                and not self._logs_without_metric
            ):
                self._logs_without_metric = logs
                warnings.warn(
                    f"KeepBest saves no model before an epoch has "
                    f"{self.monitor!r}: this one was not validated.",
                    stacklevel=_callers.stacklevel(),
                )
            return
        self._logs_without_metric = None
        if np.ndim(value):
            raise ValueError(
                "`monitor` must name a metric of one value. "
                f"Received: monitor={self.monitor!r}, of {np.size(value)}"
            )
        if self._is_best(value):
            with _files.replacing(self.filepath, "The best model") as new:
                self.model.save(new)
            self.best = value

    def _raise_unknown_metric(self, logs):
        raise ValueError(
            f"`monitor` must be one of {sorted(logs)}, the logs of an epoch. "
            f"Received: monitor={self.monitor!r}"
        )

    def _is_best(self, value):
        if math.isnan(value) or self.best is None or math.isnan(self.best):
            return not math.isnan(value)
        return value < self.best if self.mode == "min" else value > self.best
