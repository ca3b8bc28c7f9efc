"""The loss of the best constant predictor, by the loss function."""

import keras
import numpy as np
from keras import ops


def baseline_loss(loss, y):
    """The loss of the best constant, `None` if it has no closed form."""
    name = loss_name(loss)
    y = np.asarray(ops.convert_to_numpy(y))
    rows = y.reshape(-1, y.shape[-1]) if y.ndim > 1 else y[:, None]
    if name == "mean_squared_error":
        return float(rows.var(axis=0).mean())
    if name == "mean_absolute_error":
        return float(abs(rows - np.median(rows, axis=0)).mean())
    if name == "binary_crossentropy":
        p = rows.mean(axis=0)
        return float((_entropy(p) + _entropy(1 - p)).mean())
    if name == "categorical_crossentropy":
        return float(_entropy(rows.mean(axis=0)).sum())
    if name == "sparse_categorical_crossentropy":
        _, counts = np.unique(y, return_counts=True)
        return float(_entropy(counts / counts.sum()).sum())
    return None


def _entropy(p):
    return -p * np.log(np.where(p > 0, p, 1))


def loss_name(loss):
    """The name of the function of a loss, `None` if there is no single one."""
    if not isinstance(loss, str | keras.losses.Loss) and not callable(loss):
        return None
    function = keras.losses.get(loss)
    return getattr(getattr(function, "fn", function), "__name__", None)
