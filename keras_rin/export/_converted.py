"""What a converter of TensorFlow's graph does not hold."""

import re


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


def check_dtypes(format, graph, dtypes):
    """Refuses a graph of a step that computes in other floats than these."""
    refused = {
        operation.name: tensor.dtype.name
        for operation in graph.get_operations()
        for tensor in operation.outputs
        if tensor.dtype.is_floating and tensor.dtype.name not in dtypes
    }
    if refused:
        name = max(refused, key=lambda name: name.count("/"))  # in a layer
        advice = f"copy the weights to a model with dtype={dtypes[0]!r}"
        raise refusal(format, advice, f"{name!r} in {refused[name]}")


def refusal(format, advice, received):
    return ValueError(
        f"The model must have a form in {format}: {advice}. "
        f"Received: {received}"
    )
