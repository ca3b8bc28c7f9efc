"""Hidden states of stateful layers, which Keras keeps but does not track."""

import contextlib

import keras
from keras import ops


def hidden_states(layer):
    """The states of the stateful layers within, each once."""
    found = {id(state): state for state in _within(layer)}
    return list(found.values())


def _within(layer):
    inner = [*getattr(layer, "layers", ())]
    inner += [layer.layer] if hasattr(layer, "layer") else []  # a wrapper
    for one in inner:
        yield from _within(one)
    yield from keras.tree.flatten(getattr(layer, "states", None) or [])


@contextlib.contextmanager
def restored(variables):
    """Restores those variables that are left in the list it returns."""
    before = [(v, ops.copy(v.value)) for v in variables]
    try:
        yield before
    finally:
        for variable, value in before:
            variable.assign(value)
