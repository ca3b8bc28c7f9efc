"""PartialIdentity: some units hold their state, the others forget it."""

import math

import keras
from keras import ops

from keras_rin import arguments
from keras_rin.initializers import square


@keras.saving.register_keras_serializable(package="keras_rin")
class PartialIdentity(keras.initializers.Initializer):
    """An identity for the last units, zero for the first.

    V[i, i] = 1 for i >= units - n, n = ceil(fraction units), all else 0

    Units with V[i, i] = 1 integrate what they are given. The others start
    each time step anew, phi(x_t W + b): a hidden layer of the input, whose
    weights to the integrating units are learned. Every power of V is V, so
    no sequence is too long for it.

    As the recurrent matrix of `keras_rin.layers.RIN` pass
    `Offset(PartialIdentity())`, of `keras.layers.SimpleRNN` the initializer
    itself. At `fraction=1` it is the identity.

    Args:
        fraction: Number in [0, 1], the share of the units that integrate.
            Defaults to 0.5.

    Raises:
        ValueError: If `fraction` is not such a number, or if the shape asked
            for is not square.

    Example:

    >>> initializer = keras_rin.initializers.PartialIdentity(0.5)
    >>> keras.ops.convert_to_numpy(initializer((4, 4)))
    array([[0., 0., 0., 0.],
           [0., 0., 0., 0.],
           [0., 0., 1., 0.],
           [0., 0., 0., 1.]], dtype=float32)

    Reference:
        Our own; [long sequences](../long_sequences.md) has the measurements.
    """

    def __init__(self, fraction=0.5):
        self.fraction = arguments.finite_number("fraction", fraction, 0, 1)

    def __call__(self, shape, dtype=None):
        units = square.side(self, shape)
        identity = square.shift(self, shape, 0, dtype)
        # 0.07 * 100 is 7.000000000000001 in double precision.
        first = units - math.ceil(round(self.fraction * units, 9))
        return identity * ops.cast(ops.arange(units) >= first, identity.dtype)

    def get_config(self):
        return {"fraction": self.fraction}
