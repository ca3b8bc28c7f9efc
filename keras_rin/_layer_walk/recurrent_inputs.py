"""What the recurrent layers of a model read."""

import functools

import keras
from keras import ops

from keras_rin._layer_walk.functional_calls import record_calls
from keras_rin._layer_walk.layers import cell_of
from keras_rin._layer_walk.layers import feature_count
from keras_rin._layer_walk.layers import is_functional
from keras_rin._layer_walk.layers import is_recurrent
from keras_rin._layer_walk.layers import recurrent_layers
from keras_rin._layer_walk.undisturbed import undisturbed


def recurrent_inputs(layer, batches):
    """Pairs of a recurrent layer within `layer` and what it reads.

    `batches()` returns an iterator over what `layer` reads: pairs of a list
    of arrays and a list of their masks, or `None`. What the layer within
    reads is such a function too, whose pairs have one array and one mask or
    `None`. It calls the layers before when it is iterated over, with the
    weights that they have then, and leaves their states as they are.

    A layer comes once for each of its calls, after those before it in the
    model. Known are the inputs within Sequential and functional models,
    `Bidirectional`, `TimeDistributed` and stacks of cells.
    """
    cell = cell_of(layer)
    if is_functional(layer):
        inputs, calls, _ = record_calls(layer)
        for inner, args, kwargs, _ in calls:
            if recurrent_layers(inner):
                tensors, masks = _inputs_of_call(args, kwargs)
                yield from recurrent_inputs(
                    inner, _batches_at(tensors, masks, inputs, batches)
                )
    elif isinstance(layer, keras.layers.Bidirectional):
        for inner in (layer.forward_layer, layer.backward_layer):
            yield from recurrent_inputs(inner, batches)
    elif isinstance(layer, keras.layers.TimeDistributed):
        yield from recurrent_inputs(layer.layer, _merged_steps(batches))
    elif isinstance(cell, keras.layers.StackedRNNCells):
        if getattr(layer, "go_backwards", False):
            batches = _mapped(lambda array: ops.flip(array, 1), batches)
        yield from _stack_inputs(cell, batches)
    elif is_recurrent(layer):
        yield (
            layer,
            lambda: ((x, masks and masks[0]) for (x, *_), masks in batches()),
        )


def _mapped(function, batches):
    """Batches with a function of each array and each mask."""
    return lambda: (
        ([*map(function, x)], masks and [*map(function, masks)])
        for x, masks in batches()
    )


def _stack_inputs(stack, batches):
    for cell in stack.cells:
        yield from recurrent_inputs(cell, batches)
        x = keras.Input((None, feature_count(cell)), dtype=cell.compute_dtype)
        layer = keras.layers.RNN(
            cell, return_sequences=True, dtype=cell.dtype_policy
        )
        batches = _batches_at([layer(x)], [None], [x], batches)


def _inputs_of_call(args, kwargs):
    """The input tensors of a layer and their masks, where one may be `None`."""
    tensors = keras.tree.flatten(next(iter([*args, *kwargs.values()])))
    masks = kwargs.get("mask")
    masks = [None] * len(tensors) if masks is None else masks
    return tensors, keras.tree.flatten(masks)


def _batches_at(tensors, masks, inputs, batches):
    """The batches of `tensors`, from those of the inputs of their model."""
    is_unchanged = [*map(id, inputs)] == [*map(id, tensors)]
    if is_unchanged and all(mask is None for mask in masks):
        return batches  # without a copy

    @functools.cache
    def preceding_model():
        known_masks = [
            # Without `mask` the layer would warn of a mask that is lost.
            keras.layers.Lambda(_mask_or_ones, mask=lambda *_: None)(tensor)
            if mask is None
            else mask
            for tensor, mask in zip(tensors, masks, strict=False)
        ]
        model = keras.Model(inputs, [tensors, known_masks])
        # It returns the masks itself, so Keras need not warn of losing them.
        model.supports_masking = True
        return model

    def batches_at_tensors():
        model = preceding_model()
        with undisturbed(model):
            for x, masks in batches():
                # Only a model inside another one has masks here.
                if all(ops.all(mask) for mask in masks or []):
                    yield model.predict_on_batch(x)
                else:
                    masks = [*map(ops.convert_to_tensor, masks)]
                    yield model(x, training=False, mask=masks)

    return batches_at_tensors


def _mask_or_ones(inputs, mask=None):
    return ops.ones(ops.shape(inputs)[:2], "bool") if mask is None else mask


def _merged_steps(batches):
    """The inputs that `TimeDistributed` passes to its layer, as one batch.

    A mask has an axis for the time steps of a slice, which a recurrent layer
    needs, unless it is made of ones for inputs without a mask.
    """

    def merge_axes(array):
        array = ops.convert_to_numpy(array)
        return array.reshape(-1, *array.shape[2:])

    def slice_batches():
        for x, masks in batches():
            yield x, masks if masks and len(masks[0].shape) > 2 else None

    return _mapped(merge_axes, slice_batches)
