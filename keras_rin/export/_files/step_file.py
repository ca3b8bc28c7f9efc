"""A file of one time step: what it cannot hold, and its description in JSON."""

import json
import math
import pathlib
import re

import keras
import numpy as np

from keras_rin import _files
from keras_rin import _version


def write_described(
    path, content, what, inputs, outputs, prefix="", **description
):
    """Writes a file and its description, or neither; returns the latter's name.

    `inputs` and `outputs` are lists of dictionaries in the order of the file,
    `what` is for error messages, `prefix` begins the name of a new state, and
    `description` is what else to write, in `.json` behind the name of the file.
    """
    for entry in inputs:
        if entry["name"] != "x":
            entry["initial"] = 0
    for entry in outputs:
        if entry["name"] != "y":
            entry["next"] = entry["name"].removeprefix(prefix)
    path = pathlib.Path(path)
    versions = {"keras_rin": _version.__version__, "keras": keras.__version__}
    description = {"file": path.name, **description, "inputs": inputs}
    description |= {"outputs": outputs, "made by": versions}
    text = json.dumps(description, indent=2)
    described = path.with_name(f"{path.name}.json")
    with _files.replacing_all([path, described], what) as (new, new_described):
        new.write_bytes(content)
        new_described.write_text(text + "\n", encoding="utf-8")
    return described.name


def state_bytes(step):
    """The bytes of the hidden states of one stream."""
    return sum(
        math.prod(tensor.shape[1:]) * np.dtype(tensor.dtype).itemsize
        for name, tensor in step.input.items()
        if name != "x"
    )


def check_path(format, path, ending):
    """Refuses another ending or backend than the format has."""
    backend = keras.backend.backend()
    if path.suffix != ending or backend != "tensorflow":
        raise ValueError(
            f"{format} needs the TensorFlow backend and a path ending in "
            f"{ending}. Received: path={str(path)!r} on {backend}"
        )


def check_arithmetic(arithmetic, supported, calibration):
    """Refuses an arithmetic that is unknown, or data that it does not read."""
    if arithmetic not in supported:
        raise ValueError(
            f"`arithmetic` must be one of {supported}. "
            f"Received: arithmetic={arithmetic!r}"
        )
    is_integer = arithmetic.startswith("integer")
    if calibration is not None and not is_integer:
        raise ValueError(
            "`calibration` is for an arithmetic in integers. "
            f"Received: an argument, and arithmetic={arithmetic!r}"
        )


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
