"""The constant prediction with the lowest loss, where it is known."""

import keras
import numpy as np
from keras import ops

LOSSES = (
    keras.losses.MeanSquaredError(),
    keras.losses.MeanAbsoluteError(),
    keras.losses.BinaryCrossentropy(),
    keras.losses.CategoricalCrossentropy(),
    keras.losses.SparseCategoricalCrossentropy(),
)
TINY = 1e-15  # in place of a probability of 0, which has no logarithm


def best_constant(model, y):
    """A layer that returns the best constant in place of each output.

    `None` unless the loss is one of those above, whatever its options.
    """
    name, options = _name_and_options(model)
    if name is None or options.get("axis", -1) != -1:
        return None
    (y,) = keras.tree.flatten(y)  # may be within a list or dict
    if name.startswith("sparse"):
        classes = np.arange(model.outputs[0].shape[-1])
        is_counted = y != options.get("ignore_class")
        y = (y[..., None] == classes) & is_counted[..., None]

    def constant_outputs(outputs, mask=None):
        shape = tuple(outputs.shape)
        targets = y.reshape(shape)  # Keras adds or drops a last axis.
        if mask is not None and ops.any(mask):
            targets = targets[ops.convert_to_numpy(mask)]
        constant = _constant(name, options, targets.reshape(-1, shape[-1]))
        constant = ops.convert_to_tensor(constant, "float32")
        return ops.broadcast_to(constant, shape)

    # The outputs keep their mask: masked time steps have no loss.
    return keras.layers.Lambda(constant_outputs, mask=lambda x, mask: mask)


def _name_and_options(model):
    losses = keras.tree.flatten(model.loss)
    is_overridden = type(model).compute_loss is not keras.Model.compute_loss
    is_one = len(losses) == len(model.outputs) == 1
    # Keras chooses the function of the last two by the shapes.
    if is_one and not is_overridden and losses[0] not in ("crossentropy", "ce"):
        loss = keras.losses.get(losses[0])
        for known in LOSSES:
            if loss is getattr(keras.losses, known.name):
                loss = known
            if type(loss) is type(known):
                return known.name, loss.get_config()
    return None, {}


def _constant(name, options, targets):
    if name == "mean_absolute_error":
        return np.median(targets, axis=0)
    p = targets.mean(axis=0)
    if name == "mean_squared_error":
        return p
    is_binary = name == "binary_crossentropy"
    smoothing = options.get("label_smoothing", 0)
    p = p * (1 - smoothing) + smoothing / (2 if is_binary else len(p))
    if not options.get("from_logits"):
        return p  # Keras divides by the sum over classes.
    p = np.clip(p, TINY, 1 - TINY)
    return np.log(p) - is_binary * np.log(1 - p)
