"""What a converter of TensorFlow's graph does not hold, by the layer."""

import re

from keras_rin._layer_walk.layers import is_recurrent
from keras_rin._layer_walk.layers import layers_within


def check_names(format, names, pattern, taken=()):
    """Refuses names of states that the format would change or confuse."""
    lower = [name.lower() for name in names]
    for name in names:
        is_valid = re.fullmatch(rf"[a-zA-Z]{pattern}", name, re.ASCII)
        if not is_valid or name in taken or lower.count(name.lower()) > 1:
            raise ValueError(
                f"{format} needs names of recurrent layers that match "
                f"'[a-zA-Z]{pattern}', differ in more than upper case and are "
                f"no keyword; rename the layer. Received: {name!r} of {names}"
            )


def check_dtypes(format, model, graph, dtypes):
    """Refuses a graph of a step that computes in other floats than these."""
    refused = {
        operation.name: tensor.dtype.name
        for operation in graph.get_operations()
        for tensor in operation.outputs
        if tensor.dtype.is_floating and tensor.dtype.name not in dtypes
    }
    names = {path: _layer_name(model, path) for path in refused}
    for path in sorted(refused, key=lambda path: names[path] == path):
        raise refusal(
            format,
            names[path],
            f"it computes in {refused[path]}; copy the weights to a model with "
            f"dtype={dtypes[0]!r}",
        )


def operation_refusal(format, model, path, operation):
    """The error for an operation that the format lacks."""
    return refusal(
        format,
        _layer_name(model, path),
        f"its operation {operation!r} cannot be converted; choose another "
        "layer or activation, or another format",
    )


def refusal(format, name, reason):
    return ValueError(f"The layer {name!r} has no form in {format}: {reason}.")


def _layer_name(model, path):
    """The innermost layer in the path of an operation, else the path.

    A part of it may end in `_step`, and in the number of a call.
    """
    names = {layer.name for layer in layers_within(model, is_recurrent)[1:]}
    for part in path.split("/")[::-1]:
        for name in (part, re.sub(r"_\d+$", "", part)):
            for known in (name, name.removesuffix("_step")):
                if known in names:
                    return known
    return path
