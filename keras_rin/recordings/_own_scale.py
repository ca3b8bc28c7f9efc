"""The layer that scales each recording by itself."""

from typing import Any

import keras
from keras import ops


@keras.saving.register_keras_serializable(package="keras_rin")
class OwnScale(keras.layers.Layer):
    """Scales each recording by its own mean and deviation over time.

    The logarithm of the deviation, which may tell classes apart, is one more
    channel for each:

        y_t = [(x_t - mean) / deviation, log(deviation)]

    Inputs `(batch, time, channels)`, outputs `(batch, time, 2 channels)`.

    >>> x = np.array([[[1.0], [3.0]]])
    >>> outputs = keras_rin.recordings.OwnScale()(x)
    >>> print(keras.ops.convert_to_numpy(outputs).round(3).tolist())
    [[[-1.0, 0.0], [1.0, 0.0]]]

    Args:
        epsilon: Float, added to the deviation. Defaults to `1e-6`.
        **kwargs: Those of `keras.layers.Layer`, such as `dtype`.
    """

    def __init__(self, epsilon: float = 1e-6, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.epsilon = epsilon

    def call(self, inputs):
        mean = ops.mean(inputs, axis=1, keepdims=True)
        deviation = ops.std(inputs, axis=1, keepdims=True) + self.epsilon
        logarithm = ops.log(deviation) + ops.zeros_like(inputs)
        scaled = (inputs - mean) / deviation
        return ops.concatenate([scaled, logarithm], axis=-1)

    def get_config(self):
        return {**super().get_config(), "epsilon": self.epsilon}
