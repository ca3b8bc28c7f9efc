"""`serve`, the function of whole sequences in a file, against its model."""

import keras
import numpy as np
from keras import ops

from keras_rin._layer_walk.functional_calls import record_calls
from keras_rin._layer_walk.layers import layers_within
from keras_rin.export._step.checks import steps_at_once

# Sequences, and steps of each, where the model has no sizes of its own.
SIZES = ((2, 3), (3, 5))


def specs(inputs, batch=None):
    """The specs with which TensorFlow traces a function of these inputs."""
    import tensorflow as tf

    def spec(tensor):
        shape = (batch or tensor.shape[0], *tensor.shape[1:])
        return tf.TensorSpec(shape, tensor.dtype)

    return keras.tree.map_structure(spec, inputs)


def add_serve(archive, model, batch=None):
    """Adds the endpoint to a Keras archive, and returns its function."""
    archive.track(model)
    return archive.add_endpoint(
        "serve",
        lambda x: model(x, training=False),
        input_signature=[specs(model.inputs[0], batch)],
    )


def check_serve(model, serve, batch=None, tolerance=1e-3):
    """Refuses a model if `serve` answers a few sequences in another way.

    What is traced for any number of sequences and steps may take one for the
    other, as `TimeDistributed` of Keras 3.15 does. Outputs may differ by a part
    `tolerance` of the largest, and `batch` is the one size if it is fixed.
    """
    if any("16" in layer.compute_dtype for layer in layers_within(model)):
        tolerance = max(tolerance, 0.1)
    shape = _difference(model, serve, batch, tolerance)
    if shape is None:
        return
    name = model.name
    (inputs,), calls, _ = record_calls(model)
    for layer, _, _, outputs in calls:
        part = keras.Model(inputs, outputs)
        traced = add_serve(keras.export.ExportArchive(), part, batch)
        if _difference(part, traced, batch, tolerance):
            name = layer.name
            break
    raise ValueError(
        f"The layer {name!r} does not answer in a file as it does in Keras, "
        "for any number of sequences and steps. Pass `step_only=True`, or give "
        "`keras.Input` the number of steps; a `Dense` needs no "
        "`TimeDistributed`. Received: a model that answers in another way to "
        f"an input of shape {shape}"
    )


def _difference(model, serve, batch, tolerance):
    """The first shape of an input for which outputs differ, or None."""
    dtype = model.inputs[0].dtype
    size, steps, *features = model.inputs[0].shape
    if None in features:
        return None
    rng, samples = np.random.default_rng(0), steps_at_once(model)
    for sequences, length in SIZES:
        sequences = batch or size or sequences
        shape = (sequences, steps or samples * length, *features)
        is_float = keras.backend.is_float_dtype(dtype)
        x = rng.normal(size=shape) if is_float else rng.integers(2, size=shape)
        x = x.astype(ops.convert_to_numpy(ops.zeros((), dtype)).dtype)
        expected = _arrays(model(x, training=False))
        is_equal = _are_equal(expected, _arrays(serve(x)), tolerance)
        # A model that draws noise is not equal to itself.
        again = is_equal or _arrays(model(x, training=False))
        if not is_equal and _are_equal(expected, again, 0):
            return shape
    return None


def _arrays(outputs):
    flat = keras.tree.flatten(outputs)
    return [ops.convert_to_numpy(y).astype("float64") for y in flat]


def _are_equal(expected, outputs, tolerance):
    return all(
        y.shape == z.shape
        and np.allclose(
            y, z, 0, tolerance * np.abs(y).max(initial=0), equal_nan=True
        )
        for y, z in zip(expected, outputs, strict=True)
    )
