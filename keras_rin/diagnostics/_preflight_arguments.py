"""The arguments of `preflight`, checked."""

import keras
import numpy as np
from keras import ops

from keras_rin import _arguments
from keras_rin._functional_calls import order_by_inputs
from keras_rin.diagnostics._baseline_loss import loss_name
from keras_rin.diagnostics._layer_inputs import LayerInputs


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
    if not LayerInputs(model).layers:
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
    """Samples to look at, with a list of the inputs; then all targets."""
    batch_size = _arguments.integer("batch_size", batch_size)
    y_all = _arguments.real_array("y", y)
    x = [
        _first_samples("x", array, batch_size, len(y_all))
        for array in order_by_inputs(model.inputs, x)
    ]
    y = _first_samples("y", y_all, batch_size, len(y_all))
    _check_targets(model, y)
    return x, y, y_all


def _first_samples(name, array, batch_size, samples):
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
    """Whether the targets have the shape, or the classes, of the outputs."""
    output = model.outputs[0].shape
    if loss_name(model.loss) == "sparse_categorical_crossentropy":
        fits = y.size > 0 and 0 <= y.min() and y.max() < output[-1]
        expected = f"class numbers from 0 to {output[-1] - 1}"
    else:
        sizes, known = (
            [size for size in shape[1:] if size != 1]
            for shape in (y.shape, output)
        )
        fits = len(sizes) == len(known) and not any(
            map(_arguments.known_to_differ, sizes, known)
        )
        expected = f"the shape of the outputs, {output}"
    if not fits:
        raise ValueError(
            f"`y` must have {expected}. Received: y of shape {y.shape}, from "
            f"{y.min():.3g} to {y.max():.3g}"
        )
