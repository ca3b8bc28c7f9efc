"""The layers within a layer or model, and their variables."""

import contextlib
from collections.abc import Iterable
from typing import Any

import keras
from keras import ops


def hidden_states(layer):
    """The states of the stateful recurrent layers within, each once."""
    states_by_id = {
        id(state): state
        for inner in layers_within(layer)
        if isinstance(inner, keras.layers.RNN)
        for state in keras.tree.flatten(getattr(inner, "states", None) or [])
    }
    return list(states_by_id.values())


def layers_within(layer, is_leaf=lambda layer: False):
    """The layer and the layers within, those of a user's own layer as well.

    Each comes once, in the order of the attributes that hold them. Those
    within a layer for which `is_leaf` is true are left out.
    """
    layers, visited, waiting = [], set(), [layer]
    while waiting:
        value = waiting.pop()
        if id(value) in visited:
            continue
        visited.add(id(value))
        members: Iterable[Any] = []
        if isinstance(value, keras.layers.Layer):
            layers.append(value)
            members = [] if is_leaf(value) else vars(value).values()
        elif isinstance(value, dict):
            # `keras.tree` would sort the keys, which may have no order.
            members = value.values()
        elif isinstance(value, list | tuple):
            members = value
        waiting += reversed(list(members))
    return layers


def is_functional(layer):
    """Whether a layer is a Sequential or functional model with known inputs."""
    return hasattr(layer, "layers") and bool(getattr(layer, "inputs", None))


def wrapped_layers(layer):
    """The layers that a wrapper of Keras for recurrent layers calls."""
    if isinstance(layer, keras.layers.Bidirectional):
        return [layer.forward_layer, layer.backward_layer]
    if isinstance(layer, keras.layers.TimeDistributed):
        return [layer.layer]
    return []


@contextlib.contextmanager
def restore_after(variables):
    """Restores the variables at the end of the `with` block.

    It yields a list of pairs of a variable and its value. A pair that the
    block deletes from the list is not restored.
    """
    copies = [(variable, ops.copy(variable.value)) for variable in variables]
    try:
        yield copies
    finally:
        for variable, value in copies:
            variable.assign(value)
