"""The inputs of the recurrent layers of a model."""

import itertools

import keras
import numpy as np
from keras import ops

from keras_rin._functional_calls import has_masked_steps
from keras_rin._functional_calls import mask_or_ones
from keras_rin._functional_calls import merge_steps
from keras_rin._functional_calls import order_by_inputs
from keras_rin._functional_calls import record_calls
from keras_rin._layer_walk import is_functional
from keras_rin._layer_walk import wrapped_layers
from keras_rin.diagnostics import _cells
from keras_rin.diagnostics import _recurrent_matrices


class LayerInputs:
    """The inputs of recurrent layers, computed from those of their model.

    Known are the inputs of the `layers` of a Sequential or functional model,
    and of those in `Bidirectional`, `TimeDistributed` and models inside.
    """

    def __init__(self, model):
        if not is_functional(model):
            raise ValueError(
                "`x` needs a Sequential or functional model, whose inputs are "
                f"known. Received: a model of type {type(model).__name__}"
            )
        self.model, self.layers = model, _layers_with_known_inputs(model)
        self._preceding_models = {}

    def __call__(self, x):
        """(layer, x, mask) of the first call of each layer, in float32."""
        if not self.layers:
            return
        x = order_by_inputs(self.model.inputs, x)
        with _cells.undisturbed(self.model):
            calls = list(self._recurrent_calls(self.model, x))
        first_calls = {id(layer): call for layer, *call in reversed(calls)}
        for layer in self.layers:
            x, mask = first_calls[id(layer)]
            x = ops.convert_to_numpy(ops.cast(x, "float32"))
            mask = np.ones(x.shape[:2], bool) if mask is None else mask
            yield layer, x, ops.convert_to_numpy(mask)

    def _recurrent_calls(self, layer, inputs, masks=None):
        if any(layer is recurrent for recurrent in self.layers):
            yield layer, inputs[0], masks and masks[0]
        elif is_functional(layer):
            if id(layer) not in self._preceding_models:
                self._preceding_models[id(layer)] = _preceding_model(layer)
            layers, preceding_model = self._preceding_models[id(layer)]
            masks = masks if has_masked_steps(masks) else None
            calls = preceding_model(inputs, training=False, mask=masks)
            for inner, *call in zip(layers, *calls, strict=True):
                yield from self._recurrent_calls(inner, *call)
        else:
            if isinstance(layer, keras.layers.TimeDistributed):
                x, mask = merge_steps(inputs[0], masks and masks[0])
                inputs, masks = [x], mask if mask is None else [mask]
            for inner in wrapped_layers(layer):
                yield from self._recurrent_calls(inner, inputs, masks)


def _layers_with_known_inputs(layer):
    """The recurrent layers inside whose inputs are known."""
    if _recurrent_matrices.has_matrices(layer):
        return [layer]
    inner = layer.layers if is_functional(layer) else wrapped_layers(layer)
    layers = itertools.chain.from_iterable(
        map(_layers_with_known_inputs, inner)
    )
    return list({id(layer): layer for layer in layers}.values())


def _preceding_model(model):
    """The layers with recurrent layers inside, and a model of their inputs.

    The inputs of a layer are those of its first call, with their masks.
    """
    layers = [
        layer for layer in model.layers if _layers_with_known_inputs(layer)
    ]
    inputs, calls = record_calls(layers, model)
    first_calls = [layer_calls[0] for layer_calls in calls]
    layer_inputs = [tensors for tensors, _ in first_calls]
    masks = [list(map(mask_or_ones, *call)) for call in first_calls]
    preceding_model = keras.Model(inputs, [layer_inputs, masks])
    # It returns the masks itself, so Keras need not warn of losing them.
    preceding_model.supports_masking = True
    return layers, preceding_model
