"""Initializers of chain-structured recurrent matrices."""

import keras
from keras import ops

from keras_rin import _arguments
from keras_rin.initializers import _effective


@keras.saving.register_keras_serializable(package="keras_rin")
class Chain(_effective.EffectiveInitializer):
    """Initializes a recurrent matrix as a feed-forward chain of units.

    V[i, i + 1] = gain, all else 0

    The hidden state is a row vector in Keras, h_t = h_{t-1} V, so the
    superdiagonal connects unit i to unit i + 1. The matrix is nilpotent: after
    `units` time steps, a signal has left the chain. In a circular chain the
    last unit feeds the first: a shift, which is orthogonal if the gain is 1,
    and in which a signal travels around as a wave. `OneUnitInput` is the input
    kernel of its paper.

    In `keras.layers.SimpleRNN` the chain is the recurrent matrix. To make it
    the effective recurrent matrix of a `keras_rin.layers.RIN`, pass
    `Offset(Chain(gain))`; without `Offset` V would be I plus the chain.

    Args:
        gain: Finite number, at least 0: weight from each unit to the next.
            Defaults to 1.
        circular: Boolean, whether V[units - 1, 0] = gain too. Defaults to
            `False`.

    Example:

    >>> initializer = keras_rin.initializers.Chain(gain=0.5)
    >>> keras.ops.convert_to_numpy(initializer((3, 3)))
    array([[0. , 0.5, 0. ],
           [0. , 0. , 0.5],
           [0. , 0. , 0. ]], dtype=float32)

    Reference:
        Ganguli, Huh and Sompolinsky, 2008, Memory traces in dynamical
        systems; Orhan and Pitkow, 2020, Improved memory in recurrent neural
        networks with sequential non-normal dynamics (arXiv 1905.13715);
        Keller, Muller, Sejnowski and Welling, 2024, Traveling waves encode the
        recent past and enhance sequence learning (arXiv 2309.08045), for the
        circular one.
    """

    def __init__(self, gain: float = 1.0, circular: bool = False):
        self.gain = _arguments.finite_number("gain", gain, at_least=0)
        self.circular = bool(circular)

    def __call__(self, shape, dtype=None):
        return self.gain * _shift(self, shape, dtype, self.circular)


@keras.saving.register_keras_serializable(package="keras_rin")
class ChainIdentity(_effective.EffectiveInitializer):
    """Initializes a recurrent matrix as a chain plus a scaled identity.

    V[i, i + 1] = chain_gain, V[i, i] = identity_gain, all else 0

    For a `keras_rin.layers.RIN` pass `Offset(ChainIdentity(...))`; see `Chain`.

    Args:
        chain_gain: Finite number, at least 0: weight from each unit to the
            next. Defaults to 0.9.
        identity_gain: Finite number: weight from each unit to itself.
            Defaults to 0.1. If the two gains sum to more than 1, the hidden
            state of a ReLU network can grow by a factor of up to that sum per
            time step.
        circular: Boolean, whether V[units - 1, 0] = chain_gain too, which
            makes the matrix normal. Defaults to `False`.

    Example:

    >>> initializer = keras_rin.initializers.ChainIdentity(0.5, 0.9)
    >>> keras.ops.convert_to_numpy(initializer((3, 3)))
    array([[0.9, 0.5, 0. ],
           [0. , 0.9, 0.5],
           [0. , 0. , 0.9]], dtype=float32)

    Reference:
        Orhan, 2019, Common initialization schemes for recurrent neural
        networks are likely suboptimal (a note, without figures).
    """

    def __init__(
        self,
        chain_gain: float = 0.9,
        identity_gain: float = 0.1,
        circular: bool = False,
    ):
        number = _arguments.finite_number
        self.chain_gain = number("chain_gain", chain_gain, at_least=0)
        self.identity_gain = number("identity_gain", identity_gain)
        self.circular = bool(circular)

    def __call__(self, shape, dtype=None):
        chain = self.chain_gain * _shift(self, shape, dtype, self.circular)
        return chain + self.identity_gain * _effective.diagonal(
            self, shape, dtype
        )


@keras.saving.register_keras_serializable(package="keras_rin")
class FeedbackChain(_effective.EffectiveInitializer):
    """Initializes a recurrent matrix as a chain with feedback connections.

    V[i, i + 1] = gain, V[i + 1, i] = feedback, all else 0

    Each unit is connected to the next one with weight `gain` and to the
    previous one with weight `feedback`. Unlike `Chain`, the matrix is not
    nilpotent: a signal that reaches the end of the chain decays gradually.
    The spectral radius is 2 sqrt(gain * feedback) cos(pi / (units + 1)).

    Args:
        gain: Finite number, at least 0: weight from each unit to the next.
            Defaults to 0.99.
        feedback: Finite number, at least 0: weight from each unit to the
            previous one. Defaults to 0.04.

    Example:

    >>> initializer = keras_rin.initializers.FeedbackChain(0.5, 0.25)
    >>> keras.ops.convert_to_numpy(initializer((3, 3)))
    array([[0.  , 0.5 , 0.  ],
           [0.25, 0.  , 0.5 ],
           [0.  , 0.25, 0.  ]], dtype=float32)

    Reference:
        Orhan and Pitkow, 2020 (arXiv 1905.13715); see `Chain`.
    """

    def __init__(self, gain: float = 0.99, feedback: float = 0.04):
        number = _arguments.finite_number
        self.gain = number("gain", gain, at_least=0)
        self.feedback = number("feedback", feedback, at_least=0)

    def __call__(self, shape, dtype=None):
        chain = self.gain * _effective.diagonal(self, shape, dtype, 1)
        return chain + self.feedback * _effective.diagonal(
            self, shape, dtype, -1
        )


@keras.saving.register_keras_serializable(package="keras_rin")
class Ramp(_effective.EffectiveInitializer):
    """Initializes weights that increase linearly with the distance of units.

    V[i, j] = limit (j - i) / (units - 1)

    Weights from unit i to a later unit j are positive, weights to an earlier
    unit are negative, and the largest magnitude is `limit`. The gates of
    trained LSTMs show such a profile; see `PerGate`.

    Args:
        limit: Finite number, at least 0: largest weight. Defaults to 0.01.

    Example:

    >>> initializer = keras_rin.initializers.Ramp(limit=1.0)
    >>> keras.ops.convert_to_numpy(initializer((3, 3)))
    array([[ 0. ,  0.5,  1. ],
           [-0.5,  0. ,  0.5],
           [-1. , -0.5,  0. ]], dtype=float32)

    Reference:
        Orhan and Pitkow, 2020 (arXiv 1905.13715), the mixed initialization of
        the LSTM.
    """

    def __init__(self, limit: float = 0.01):
        self.limit = _arguments.finite_number("limit", limit, at_least=0)

    def __call__(self, shape, dtype=None):
        units = _effective.checked_units(self, shape)
        dtype = keras.backend.standardize_dtype(dtype)
        wide = dtype if dtype == "float64" else "float32"
        position = ops.arange(units, dtype=wide) / max(units - 1, 1)
        return ops.cast(self.limit * (position - position[:, None]), dtype)


def _shift(initializer, shape, dtype, circular):
    """Ones from each unit to the next, and from the last to the first."""
    shift = _effective.diagonal(initializer, shape, dtype, 1)
    if circular:
        shift += _effective.diagonal(initializer, shape, dtype, 1 - shape[0])
    return shift
