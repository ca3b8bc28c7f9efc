"""The layers within a layer or model, the recurrent ones among them."""

from collections.abc import Iterable
from typing import Any

import keras


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


def recurrent_layers(layer):
    """The recurrent layers within, and the cells of a stack."""
    return [
        inner
        for inner in layers_within(layer, is_leaf=is_recurrent)
        if is_recurrent(inner)
    ]


def is_recurrent(layer):
    """Whether a layer has one recurrent cell, or is one."""
    cell = cell_of(layer)
    is_stack = isinstance(cell, keras.layers.StackedRNNCells)
    return hasattr(cell, "state_size") and not is_stack


def cell_of(layer):
    """The cell or stack of cells of a layer, and of a cell within a cell."""
    while isinstance(getattr(layer, "cell", None), keras.layers.Layer):
        layer = layer.cell
    return layer


def is_functional(layer):
    """Whether a layer is a Sequential or functional model with known inputs."""
    return hasattr(layer, "layers") and bool(getattr(layer, "inputs", None))


def feature_count(cell):
    """The number of features that a cell reads, `None` if it is unknown."""
    return getattr(getattr(cell, "kernel", None), "shape", [None])[0]


def hidden_states(layer):
    """The states of the stateful recurrent layers within, each once."""
    states_by_id = {
        id(state): state
        for inner in layers_within(layer)
        if isinstance(inner, keras.layers.RNN)
        for state in keras.tree.flatten(getattr(inner, "states", None) or [])
    }
    return list(states_by_id.values())
