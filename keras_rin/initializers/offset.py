"""Offset: any initializer of an effective matrix, for a layer that stores U."""

import keras

from keras_rin.initializers import square


@keras.saving.register_keras_serializable(package="keras_rin")
class Offset(keras.initializers.Initializer):
    """Any start of an effective matrix, for layers that store the offset.

    U = W - I, where W is what `initializer` draws

    `keras_rin.layers.RIN` with `Offset(initializer)` starts from the
    recurrent matrix that `keras.layers.SimpleRNN` starts from with
    `initializer` alone.

    Args:
        initializer: Initializer of the effective matrix W: a Keras
            initializer, its name or its config. Defaults to `"orthogonal"`.

    Raises:
        ValueError: If `initializer` is not one that Keras knows, or if the
            shape asked for is not square.

    Example:

    >>> initializer = keras_rin.initializers.Offset("identity")
    >>> keras.ops.convert_to_numpy(initializer((2, 2)))
    array([[0., 0.],
           [0., 0.]], dtype=float32)
    """

    def __init__(self, initializer="orthogonal"):
        self.initializer = known(initializer)

    def __call__(self, shape, dtype=None):
        identity = square.shift(self, shape, 0, dtype)
        return self.initializer(shape, dtype=dtype) - identity

    def get_config(self):
        return {"initializer": keras.initializers.serialize(self.initializer)}


def known(initializer):
    made = keras.initializers.get(initializer)
    if made is None:
        raise ValueError(
            "`initializer` must be a Keras initializer, its name or its "
            "config. Received: initializer=None"
        )
    return made
