"""What is within a layer or model: layers, inputs, hidden states."""

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


def input_and_mask(layer):
    """What a layer of a functional model reads, `(batch, time, ...)` first.

    The mask is one that the layer is called with, the one that the layers
    before it compute, or else ones.
    """
    x, *others = keras.tree.flatten(layer.input)
    masks = [one for one in others if one.dtype == "bool"]
    return x, masks[0] if masks else _Mask()(x)


class _Mask(keras.layers.Layer):
    """The mask of its input; ones if there is none."""

    def call(self, inputs, mask=None):
        if mask is None:
            mask = ops.ones(ops.shape(inputs)[:2], "bool")
        return mask


def in_order_of(inputs, data):
    """A list with the data of each input of a model."""
    if isinstance(data, dict):
        names = [one.name for one in inputs]
        if data.keys() >= set(names):
            return [data[name] for name in names]
    return keras.tree.flatten(data)  # dicts by key, as Keras orders inputs


@contextlib.contextmanager
def restored(variables):
    """Restores those variables that are left in the list it returns."""
    before = [(v, ops.copy(v.value)) for v in variables]
    try:
        yield before
    finally:
        for variable, value in before:
            variable.assign(value)
