"""What is within a layer or model: layers, inputs, hidden states."""

import contextlib
from collections.abc import Iterable
from typing import Any

import keras
from keras import ops


def hidden_states(layer):
    """The states of the stateful layers within, each once."""
    states_by_id = {
        id(state): state
        for inner in layers_within(layer)
        if isinstance(inner, keras.layers.RNN)
        for state in keras.tree.flatten(getattr(inner, "states", None) or [])
    }
    return list(states_by_id.values())


def layers_within(layer, ends_at=lambda layer: False):
    """The layer and the layers within, those of a user's own layer as well.

    Each comes once, in the order of the attributes that hold them. Those
    within a layer that it `ends_at` are left out.
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
            members = [] if ends_at(value) else vars(value).values()
        elif isinstance(value, dict):  # keys may have no order
            members = value.values()
        elif isinstance(value, list | tuple):
            members = value
        waiting += reversed(list(members))
    return layers


def calls_of(layers, model):
    """The inputs of a functional or Sequential model, and calls in it.

    For each layer, [(tensors that it reads, masks that it is given), ...]: a
    mask may be `None`.
    """
    calls: dict[int, list] = {id(layer): [] for layer in layers}

    def record(layer, *args, **kwargs):
        if id(layer) in calls:
            inputs = next(iter([*args, *kwargs.values()]))
            tensors, masks = keras.tree.flatten(inputs), kwargs.get("mask")
            masks = [None] * len(tensors) if masks is None else masks
            calls[id(layer)].append((tensors, keras.tree.flatten(masks)))
        return layer(*args, **kwargs)

    copy = keras.models.clone_model(
        keras.Model(model.inputs, model.outputs),
        clone_function=lambda layer: layer,
        call_function=record,
    )
    return copy.inputs, [calls[id(layer)] for layer in layers]


def is_functional(layer):
    """Whether it is a Sequential or functional model, with known inputs."""
    return hasattr(layer, "layers") and bool(getattr(layer, "inputs", None))


def wrapped(layer):
    """The layers that a wrapper of Keras for recurrent layers calls."""
    if isinstance(layer, keras.layers.Bidirectional):
        return [layer.forward_layer, layer.backward_layer]
    if isinstance(layer, keras.layers.TimeDistributed):
        return [layer.layer]
    return []


def slices(x, mask=None):
    """What `TimeDistributed` passes to its layer, all of it in one batch.

    A recurrent layer needs a mask with an axis for the time steps of a slice.
    Ones without this axis are of inputs that have no mask.
    """

    def merge_axes(array):
        array = ops.convert_to_numpy(array)
        return array.reshape(-1, *array.shape[2:])

    has_steps = mask is not None and len(mask.shape) > 2
    return merge_axes(x), merge_axes(mask) if has_steps else None


def mask_of(x, mask=None):
    """The mask that reaches a layer with x, ones if there is none."""
    return _Mask()(x) if mask is None else mask


def hides_steps(masks):
    """Whether masks, or the one mask, are False at some time step."""
    return masks is not None and not all(
        ops.convert_to_numpy(mask).all() for mask in keras.tree.flatten(masks)
    )


class _Mask(keras.layers.Layer):
    """The mask of its input; ones if there is none."""

    def __init__(self):
        super().__init__()
        self.supports_masking = True

    def call(self, inputs, mask=None):
        if mask is None:
            mask = ops.ones(ops.shape(inputs)[:2], "bool")
        return mask


def in_order_of(inputs, data):
    """A list with the data of each input of a model."""
    if isinstance(data, dict):
        names = [tensor.name for tensor in inputs]
        if names and data.keys() >= set(names):
            return [data[name] for name in names]
    return keras.tree.flatten(data)  # dicts by key, as Keras orders inputs


@contextlib.contextmanager
def restored(variables):
    """Restores those variables that are left in the list it returns."""
    copies = [(v, ops.copy(v.value)) for v in variables]
    try:
        yield copies
    finally:
        for variable, value in copies:
            variable.assign(value)
