"""Offset: an initializer of the effective matrix of a layer that stores U."""

import keras
from keras.initializers import Initializer

from keras_rin.initializers import _effective
from keras_rin.initializers._serialization import lost_arguments
from keras_rin.initializers._serialization import serialize


@keras.saving.register_keras_serializable(package="keras_rin")
class Offset(keras.initializers.Initializer):
    """Initializes a recurrent offset such that U + I has a given distribution.

    U = V - I, where V is drawn by `initializer`

    For weights of bfloat16 or float16, V and U are computed in float32.

    A `keras_rin.layers.RIN` with `recurrent_initializer=Offset(initializer)`
    has the same initial effective recurrent matrix V as a
    `keras.layers.SimpleRNN` with `recurrent_initializer=initializer`.

    Args:
        initializer: Initializer of the effective matrix V: a Keras
            initializer, its name or its config. Defaults to `"orthogonal"`.

    Raises:
        ValueError: If the config of the initializer would not bring back its
            arguments, so that a copy of the layer had other values.

    Example:

    >>> initializer = keras_rin.initializers.Offset("identity")
    >>> keras.ops.convert_to_numpy(initializer((2, 2)))
    array([[0., 0.],
           [0., 0.]], dtype=float32)
    """

    def __init__(self, initializer: str | Initializer = "orthogonal"):
        self.initializer = checked_initializer(initializer)

    def __call__(self, shape, dtype=None):
        identity = _effective.diagonal(self, shape, "float32")
        return _effective.draw(self.initializer, shape, dtype, identity)

    def get_config(self):
        return {"initializer": serialize(self.initializer)}


def checked_initializer(initializer):
    instance = keras.initializers.get(initializer)
    if instance is None:
        raise ValueError(
            "`initializer` must be a Keras initializer, its name or its "
            "config. Received: initializer=None"
        )
    if lost := lost_arguments(instance):
        kind = type(instance).__name__
        raise ValueError(
            f"The config of {kind} lacks {', '.join(lost)}: a copy of a layer "
            "(Bidirectional, clone_model, a saved file) would begin with other "
            f"values. Give {kind} a method `get_config` that returns them."
        )
    return instance
