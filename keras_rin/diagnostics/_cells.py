"""The cell of a recurrent layer, with its weights and states."""

import contextlib

import keras
import numpy as np
from keras import ops

from keras_rin._layer_walk import hidden_states
from keras_rin._layer_walk import restore_after


def built_cell(layer):
    """The one cell of a recurrent layer, which has its weights."""
    if not isinstance(layer, keras.layers.Layer):
        raise ValueError(
            "`layer` must be a recurrent layer or cell of Keras. "
            f"Received: layer={layer!r}"
        )
    cell = layer
    while isinstance(getattr(cell, "cell", None), keras.layers.Layer):
        cell = cell.cell
    if isinstance(cell, keras.layers.StackedRNNCells) or not hasattr(
        cell, "state_size"
    ):
        raise ValueError(
            "`layer` must have one recurrent cell: pass a layer of a stack, "
            "or one direction of a Bidirectional, by itself. "
            f"Received: layer={layer}"
        )
    if not cell.built:
        raise ValueError(
            f"{layer.name} has no weights yet: build it, or call it on data. "
            f"Received: layer={layer}"
        )
    return cell


def features(cell):
    """The number of features that a cell reads, `None` if it is unknown."""
    return getattr(getattr(cell, "kernel", None), "shape", [None])[0]


def check_weights(cell):
    """Raises an error if a weight is NaN or infinite."""
    for weight in cell.weights:
        values = float64(weight.value)
        if not np.isfinite(values).all():
            raise ValueError(
                f"The weights of {cell.name} must be finite. Received: "
                f"{weight.path} with {(~np.isfinite(values)).sum()} of "
                f"{values.size} NaN or infinite"
            )


def float64(tensor):
    return np.asarray(ops.convert_to_numpy(tensor), "float64")


@contextlib.contextmanager
def undisturbed(cell):
    """Leaves random and hidden states, metrics and masks as they were."""
    variables = [v for v in cell.variables if not v.trainable]
    variables += [*cell.metrics_variables, *hidden_states(cell)]
    try:
        with restore_after(variables), _forked_torch_generator():
            yield
    finally:
        for name in ("reset_dropout_mask", "reset_recurrent_dropout_mask"):
            getattr(cell, name, lambda: None)()


def _forked_torch_generator():
    """Restores Torch's generator, of which Keras draws dropout without seed."""
    if keras.backend.backend() != "torch":
        return contextlib.nullcontext()
    import torch

    return torch.random.fork_rng()
