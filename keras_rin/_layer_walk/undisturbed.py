"""A block of code that leaves a layer as it was."""

import contextlib

import keras
from keras import ops

from keras_rin._layer_walk.layers import hidden_states


@contextlib.contextmanager
def undisturbed(layer):
    """Leaves random and hidden states, metrics and masks as they were."""
    variables = [v for v in layer.variables if not v.trainable]
    variables += [*layer.metrics_variables, *hidden_states(layer)]
    copies = [(variable, ops.copy(variable.value)) for variable in variables]
    try:
        with _forked_torch_generator():
            yield
    finally:
        for variable, value in copies:
            variable.assign(value)
        for name in ("reset_dropout_mask", "reset_recurrent_dropout_mask"):
            getattr(layer, name, lambda: None)()


def _forked_torch_generator():
    """Restores Torch's generator, of which Keras draws dropout without seed."""
    if keras.backend.backend() != "torch":
        return contextlib.nullcontext()
    import torch

    return torch.random.fork_rng()
