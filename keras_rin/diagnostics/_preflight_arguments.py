"""The arguments of `preflight`, checked."""

import keras
import numpy as np
from keras import ops

from keras_rin import _arguments
from keras_rin._layer_walk.functional_calls import order_by_inputs
from keras_rin.diagnostics._baseline_loss import loss_name
from keras_rin.diagnostics._layer_inputs import first_inputs


def check_model(model):
    if not isinstance(model, keras.Model) or not model.built:
        raise ValueError(
            "`model` must be a built Keras model: call it on data, or begin "
            f"it with `keras.Input`. Received: model={model!r}"
        )
    if not model.compiled:
        raise ValueError(
            "`model` must be compiled with a loss and an optimizer. "
            f"Received: model={model!r}"
        )
    if not first_inputs(model, model.inputs):
        raise ValueError(
            "`model` must have a recurrent layer whose inputs are known. "
            f"Received: a model with {model.layers}"
        )
    if len(model.outputs) != 1:
        raise ValueError(
            "`preflight` is for models with one output. Received: a model "
            f"with {len(model.outputs)} outputs"
        )


def first_samples(model, x, y, batch_size):
    """The first inputs, a list, the first targets, and all targets."""
    batch_size = _arguments.integer("batch_size", batch_size)
    all_targets = _arguments.real_array("y", y)
    inputs = [
        _finite_batch("x", array, batch_size, len(all_targets))
        for array in order_by_inputs(model.inputs, x)
    ]
    targets = _finite_batch("y", all_targets, batch_size, len(all_targets))
    _check_targets(model, targets)
    return inputs, targets, all_targets


def _finite_batch(name, array, batch_size, samples):
    if len(array) != samples:
        raise ValueError(
            "`x` and `y` must have as many samples. Received: "
            f"{len(array)} in `{name}` and {samples} in `y`"
        )
    batch = ops.convert_to_numpy(array[:batch_size])
    if not np.isfinite(batch).all():
        raise ValueError(
            f"`{name}` must be finite. Received: NaN or infinity in "
            f"{(~np.isfinite(batch)).sum()} of {batch.size} numbers"
        )
    return batch


def _check_targets(model, y):
    """Raises an error if the targets do not fit the outputs of the model."""
    output = model.outputs[0].shape
    if loss_name(model.loss) == "sparse_categorical_crossentropy":
        fits = y.size > 0 and 0 <= y.min() and y.max() < output[-1]
        expected = f"class numbers from 0 to {output[-1] - 1}"
    else:
        sizes, output_sizes = (
            [size for size in shape[1:] if size != 1]
            for shape in (y.shape, output)
        )
        fits = len(sizes) == len(output_sizes) and not any(
            map(_arguments.known_to_differ, sizes, output_sizes)
        )
        expected = f"the shape of the outputs, {output}"
    if not fits:
        raise ValueError(
            f"`y` must have {expected}. Received: y of shape {y.shape}, from "
            f"{y.min():.3g} to {y.max():.3g}"
        )
