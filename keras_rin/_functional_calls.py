"""The calls of layers in a functional model: inputs and masks."""

import keras
from keras import ops


def record_calls(layers, model):
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


def merge_steps(x, mask=None):
    """The inputs that `TimeDistributed` passes to its layer, as one batch.

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


def has_masked_steps(masks):
    """Whether a mask, or one of several, is False at some time step."""
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


def order_by_inputs(inputs, data):
    """A list with the data of each input of a model."""
    if isinstance(data, dict):
        names = [tensor.name for tensor in inputs]
        if names and data.keys() >= set(names):
            return [data[name] for name in names]
    return keras.tree.flatten(data)  # dicts by key, as Keras orders inputs
