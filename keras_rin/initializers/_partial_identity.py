"""PartialIdentity: an identity recurrence for a part of the units."""

import math

import keras
from keras import ops

from keras_rin import _arguments
from keras_rin.initializers import _effective


@keras.saving.register_keras_serializable(package="keras_rin")
class PartialIdentity(_effective.EffectiveInitializer):
    """Initializes a recurrent matrix as the identity on a part of the units.

    V[i, i] = 1 for i >= units - n, n = ceil(fraction units), all else 0

    Units with V[i, i] = 1 integrate their input over time. The other units
    have no recurrence, h_t = phi(x_t W + b): they are a hidden layer of the
    input, whose weights to the integrating units are learned. Every power of
    V equals V, so the initialization does not depend on the sequence length.

    For a `keras_rin.layers.RIN` pass `Offset(PartialIdentity())`; see `Chain`.
    With `fraction=1` the matrix is the identity.

    Args:
        fraction: Number in [0, 1], fraction of the units that integrate.
            Defaults to 0.5.

    Example:

    >>> initializer = keras_rin.initializers.PartialIdentity(0.5)
    >>> keras.ops.convert_to_numpy(initializer((4, 4)))
    array([[0., 0., 0., 0.],
           [0., 0., 0., 0.],
           [0., 0., 1., 0.],
           [0., 0., 0., 1.]], dtype=float32)

    Reference:
        Introduced by this package; [long sequences](../long_sequences.md) has
        the measurements.
    """

    def __init__(self, fraction: float = 0.5):
        self.fraction = _arguments.finite_number("fraction", fraction, 0, 1)

    def __call__(self, shape, dtype=None):
        units = _effective.checked_units(self, shape)
        identity = _effective.diagonal(self, shape, dtype)
        # 0.07 * 100 is 7.000000000000001 in double precision.
        first = units - math.ceil(round(self.fraction * units, 9))
        return identity * ops.cast(ops.arange(units) >= first, identity.dtype)
