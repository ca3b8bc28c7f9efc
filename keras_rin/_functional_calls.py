"""The calls of layers in a functional model: inputs and masks."""

import keras
from keras import ops


def record_calls(layers, model):
    """The inputs of a functional or Sequential model, and calls in it.

    The calls of a layer are a list of pairs of its input tensors and their
    masks, where a mask may be `None`. There is a list for each layer.
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


def mask_or_ones(x, mask=None):
    """The mask of a layer's input x, given or computed with x, else ones."""
    return _MaskOrOnes()(x) if mask is None else mask


class _MaskOrOnes(keras.layers.Layer):
    """The mask that Keras passes with the input; ones if there is none."""

    def __init__(self):
        super().__init__()
        self.supports_masking = True

    def call(self, inputs, mask=None):
        if mask is None:
            mask = ops.ones(ops.shape(inputs)[:2], "bool")
        return mask


def has_masked_steps(masks):
    """Whether a mask, or one of several, is False at some time step."""
    return masks is not None and not all(
        ops.convert_to_numpy(mask).all() for mask in keras.tree.flatten(masks)
    )


def merge_steps(x, mask=None):
    """The inputs that `TimeDistributed` passes to its layer, as one batch.

    A mask has an axis for the time steps of a slice, which a recurrent layer
    needs, unless it is the `mask_or_ones` of inputs without a mask.
    """

    def merge_axes(array):
        array = ops.convert_to_numpy(array)
        return array.reshape(-1, *array.shape[2:])

    has_slice_steps = mask is not None and len(mask.shape) > 2
    return merge_axes(x), merge_axes(mask) if has_slice_steps else None


def order_by_inputs(inputs, data):
    """A list with the data of each input of a model."""
    if isinstance(data, dict):
        names = [tensor.name for tensor in inputs]
        if names and data.keys() >= set(names):
            return [data[name] for name in names]
    # A dict comes in the order of its keys, as the inputs of Keras do.
    return keras.tree.flatten(data)
