"""Layers within a layer, and hidden states, which Keras does not track."""

import contextlib

import keras
from keras import ops


def hidden_states(layer):
    """The states of the stateful layers within, each once."""
    found = {
        id(state): state
        for one in layers_within(layer)
        for state in keras.tree.flatten(getattr(one, "states", None) or [])
    }
    return list(found.values())


def layers_within(layer, ends_at=lambda layer: False):
    """The layer and the layers within, those of a user's own layer as well.

    Each comes once, in the order of the attributes that hold them. Those
    within a layer that it `ends_at` are left out.
    """
    found = {}
    waiting = [layer]
    while waiting:
        one = waiting.pop()
        if id(one) not in found:
            found[id(one)] = one
            inner = () if ends_at(one) else _held(vars(one))
            waiting += reversed(list(inner))
    return list(found.values())


def _held(value):
    """The layers in a container, keys of which may have no order."""
    if isinstance(value, keras.layers.Layer):
        yield value
    elif isinstance(value, dict | list | tuple):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _held(one)


@contextlib.contextmanager
def restored(variables):
    """Restores those variables that are left in the list it returns."""
    before = [(v, ops.copy(v.value)) for v in variables]
    try:
        yield before
    finally:
        for variable, value in before:
            variable.assign(value)
