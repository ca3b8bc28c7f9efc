"""Files of exported models, run as an application runs them.

A step is a function of `x` and of hidden states, by name, that returns a
dictionary of `y` and the new states.
"""

import contextlib
import pathlib
import tempfile
import time

import numpy as np
import tensorflow as tf
from ai_edge_litert.interpreter import Interpreter


@contextlib.contextmanager
def streaming_file(model, name, export, **options):
    """The file of a streaming model, in a folder that is removed in the end."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, name)
        export(model, path, **options)
        yield path


def file_bytes(path):
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files)


def litert_step(path):
    """The step of a LiteRT file, and its states before the first one."""
    step = Interpreter(str(path)).get_signature_runner("step")
    states = {
        name: np.zeros(details["shape"], details["dtype"])
        for name, details in step.get_input_details().items()
        if name != "x"
    }
    return step, states


def saved_model_step(path):
    """The step of a SavedModel, and its states before the first one."""
    served = tf.saved_model.load(path)  # its variables live as long
    (specs,), _ = served.step.concrete_functions[0].structured_input_signature
    states = {
        name: np.zeros((1, *spec.shape[1:]), "float32")
        for name, spec in specs.items()
        if name != "x"
    }

    def step(**inputs):
        outputs = served.step(inputs)
        return {name: value.numpy() for name, value in outputs.items()}

    return step, states


def stream(step, states, x):
    """Outputs, and microseconds of the steps, along a sequence."""
    outputs, microseconds = [], []
    for x_t in x:
        start = time.perf_counter()
        states = step(x=x_t[None], **states)
        microseconds.append(1e6 * (time.perf_counter() - start))
        outputs.append(states.pop("y")[0])
    return np.stack(outputs), microseconds
