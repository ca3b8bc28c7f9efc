"""The calls of layers in a functional or Sequential model."""

import keras


def record_calls(model):
    """The inputs of a model, its calls in their order, and its outputs.

    A call is a tuple of layer, args, kwargs and the list of its outputs.
    """
    calls = []

    def record(layer, *args, **kwargs):
        outputs = layer(*args, **kwargs)
        calls.append((layer, args, kwargs, keras.tree.flatten(outputs)))
        return outputs

    copy = keras.models.clone_model(
        keras.Model(model.inputs, model.outputs),
        clone_function=lambda layer: layer,
        call_function=record,
    )
    return copy.inputs, calls, copy.outputs


def order_by_inputs(inputs, data):
    """A list with the data of each input of a model."""
    if isinstance(data, dict):
        names = [tensor.name for tensor in inputs]
        if names and data.keys() >= set(names):
            return [data[name] for name in names]
    # A dict comes in the order of its keys, as the inputs of Keras do.
    return keras.tree.flatten(data)
