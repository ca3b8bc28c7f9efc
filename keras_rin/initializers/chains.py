"""Initializers in which each unit feeds the next."""

import keras
from keras import ops

from keras_rin import arguments
from keras_rin.initializers import square


@keras.saving.register_keras_serializable(package="keras_rin")
class Chain(keras.initializers.Initializer):
    """A feed-forward chain: unit i hands its state to unit i + 1.

    W[i, i + 1] = gain, all else 0

    In Keras the state is a row, h_t = h_{t-1} W, so the ones of a chain from
    the first unit to the last stand on the first superdiagonal. The chain is
    nilpotent: after `units` steps everything has left at its end.

    What the layer makes of it depends on what the layer stores. In
    `keras.layers.SimpleRNN` the chain is the recurrence. In
    `keras_rin.layers.RIN` it is the offset, and the recurrence is
    I + gain C: pass `ChainIdentity(gain, -1)` for the chain alone.

    Args:
        gain: Finite number, at least 0: the weight from each unit to the
            next. Defaults to 1.

    Raises:
        ValueError: If `gain` is negative or not finite, if a weight is
            beyond the dtype asked for, or the shape is not square.

    Example:

    >>> initializer = keras_rin.initializers.Chain(gain=0.5)
    >>> keras.ops.convert_to_numpy(initializer((3, 3)))
    array([[0. , 0.5, 0. ],
           [0. , 0. , 0.5],
           [0. , 0. , 0. ]], dtype=float32)

    Reference:
        Ganguli, Huh and Sompolinsky, 2008, Memory traces in dynamical
        systems; Orhan and Pitkow, 2020, Improved memory in recurrent neural
        networks with sequential non-normal dynamics (arXiv 1905.13715).
    """

    def __init__(self, gain=1.0):
        self.gain = arguments.finite_number("gain", gain, at_least=0)

    def __call__(self, shape, dtype=None):
        return square.shift(self, shape, 1, dtype, "gain")

    def get_config(self):
        return {"gain": self.gain}


@keras.saving.register_keras_serializable(package="keras_rin")
class ChainIdentity(keras.initializers.Initializer):
    """A feed-forward chain on top of a scaled identity.

    W[i, i + 1] = chain_gain, W[i, i] = identity_gain, all else 0

    In `keras.layers.SimpleRNN` this is the recurrence. In
    `keras_rin.layers.RIN` it is the offset: there
    `ChainIdentity(g, d - 1)` gives the recurrence g C + d I.

    Args:
        chain_gain: Finite number, at least 0: the weight from each unit to
            the next. Defaults to 0.9.
        identity_gain: Finite number: the weight from each unit to itself.
            Negative values serve layers that store the offset. Defaults to
            0.1. Where the two gains of the recurrence add up to more than 1,
            activity grows along the chain, at most by that factor a step:
            I + C doubles it.

    Raises:
        ValueError: If `chain_gain` is negative, if either gain is not
            finite, or if the shape asked for is not square.

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

    def __init__(self, chain_gain=0.9, identity_gain=0.1):
        self.chain_gain = arguments.finite_number(
            "chain_gain", chain_gain, at_least=0
        )
        self.identity_gain = arguments.finite_number(
            "identity_gain", identity_gain
        )

    def __call__(self, shape, dtype=None):
        chain = square.shift(self, shape, 1, dtype, "chain_gain")
        return chain + square.shift(self, shape, 0, dtype, "identity_gain")

    def get_config(self):
        return {
            "chain_gain": self.chain_gain,
            "identity_gain": self.identity_gain,
        }


@keras.saving.register_keras_serializable(package="keras_rin")
class FeedbackChain(keras.initializers.Initializer):
    """A feed-forward chain whose units also speak to the one before.

    W[i, i + 1] = gain, W[i + 1, i] = feedback, all else 0

    Unlike `Chain` it is not nilpotent: what it carries fades at the end
    instead of falling off. The spectral radius is
    2 sqrt(gain * feedback) cos(pi / (units + 1)).

    Args:
        gain: Finite number, at least 0: the weight from each unit to the
            next. Defaults to 0.99.
        feedback: Finite number, at least 0: the weight from each unit to the
            one before. Defaults to 0.04.

    Raises:
        ValueError: If a weight is negative or not finite, if a weight is
            beyond the dtype asked for, or the shape is not square.

    Example:

    >>> initializer = keras_rin.initializers.FeedbackChain(0.5, 0.25)
    >>> keras.ops.convert_to_numpy(initializer((3, 3)))
    array([[0.  , 0.5 , 0.  ],
           [0.25, 0.  , 0.5 ],
           [0.  , 0.25, 0.  ]], dtype=float32)

    Reference:
        Orhan and Pitkow, 2020, Improved memory in recurrent neural networks
        with sequential non-normal dynamics (arXiv 1905.13715).
    """

    def __init__(self, gain=0.99, feedback=0.04):
        self.gain = arguments.finite_number("gain", gain, at_least=0)
        self.feedback = arguments.finite_number(
            "feedback", feedback, at_least=0
        )

    def __call__(self, shape, dtype=None):
        forward = square.shift(self, shape, 1, dtype, "gain")
        return forward + square.shift(self, shape, -1, dtype, "feedback")

    def get_config(self):
        return {"gain": self.gain, "feedback": self.feedback}


@keras.saving.register_keras_serializable(package="keras_rin")
class Ramp(keras.initializers.Initializer):
    """Weights that rise with the distance from the sending unit.

    W[i, j] = limit (j - i) / (units - 1)

    Forward weights are positive, backward ones negative, the largest of
    size `limit`. Trained LSTM gates show such a profile; see `PerGate`.

    Args:
        limit: Finite number, at least 0: the largest weight. Defaults to
            0.01.

    Raises:
        ValueError: If `limit` is negative or not finite, if a weight is
            beyond the dtype asked for, or the shape is not square.

    Example:

    >>> initializer = keras_rin.initializers.Ramp(limit=1.0)
    >>> keras.ops.convert_to_numpy(initializer((3, 3)))
    array([[ 0. ,  0.5,  1. ],
           [-0.5,  0. ,  0.5],
           [-1. , -0.5,  0. ]], dtype=float32)

    Reference:
        Orhan and Pitkow, 2020 (arXiv 1905.13715), the mixed start of their
        LSTM.
    """

    def __init__(self, limit=0.01):
        self.limit = arguments.finite_number("limit", limit, at_least=0)

    def __call__(self, shape, dtype=None):
        units = square.side(self, shape)
        dtype = keras.backend.standardize_dtype(dtype)
        limit = square.weight(self, "limit", dtype)
        wide = dtype if dtype == "float64" else "float32"
        place = ops.arange(units, dtype=wide) / max(units - 1, 1)
        return ops.cast(limit * (place - place[:, None]), dtype)

    def get_config(self):
        return {"limit": self.limit}
