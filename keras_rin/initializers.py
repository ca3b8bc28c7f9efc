"""Non-normal starts for recurrent kernels."""

import math

import keras
from keras import ops

from keras_rin import arguments


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
        ValueError: If `gain` is negative or not finite, or if the shape
            asked for is not square.

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
        return self.gain * _shift(self, shape, 1, dtype)

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
        chain = self.chain_gain * _shift(self, shape, 1, dtype)
        return chain + self.identity_gain * _shift(self, shape, 0, dtype)

    def get_config(self):
        return {
            "chain_gain": self.chain_gain,
            "identity_gain": self.identity_gain,
        }


@keras.saving.register_keras_serializable(package="keras_rin")
class SmallVarianceNormal(keras.initializers.Initializer):
    """A normal start for residual branches, in need of no normalisation.

    sigma = 1 / (k^2 c)

    k is the size of the kernel and c its number of output channels. Of a
    kernel that is not square k^2 is height times width, of a dense one it is
    1: sigma = 1 / c. This is the square of the usual 1 / (k sqrt(c)), with
    which each residual block adds half the variance it is given.

    Args:
        seed: Integer, 0 or more, that makes every kernel of one shape alike.
            Defaults to `None`: each kernel is drawn anew.

    Raises:
        ValueError: If `seed` is neither `None` nor such an integer, or if
            the shape asked for has fewer than two axes.

    Example:

    >>> initializer = keras_rin.initializers.SmallVarianceNormal(seed=0)
    >>> kernel = initializer((3, 3, 64, 64))
    >>> f"{keras.ops.convert_to_numpy(kernel).std() * 9 * 64:.1f}"
    '1.0'

    Reference:
        Hardt and Ma, 2017, Identity matters in deep learning (arXiv
        1611.04231), section 4.
    """

    def __init__(self, seed=None):
        if seed is not None:
            seed = arguments.integer("seed", seed, at_least=0)
        self.seed = seed

    def __call__(self, shape, dtype=None):
        if len(shape) < 2:
            raise ValueError(
                "SmallVarianceNormal starts kernels, whose last two axes are "
                f"their inputs and outputs. Received: shape={tuple(shape)}"
            )
        *window, _, channels = shape
        sigma = 1 / (math.prod(window) * channels)
        # A new one each time: one initializer repeats its numbers.
        normal = keras.initializers.RandomNormal(stddev=sigma, seed=self.seed)
        return normal(shape, dtype)

    def get_config(self):
        return {"seed": self.seed}


def _shift(initializer, shape, k, dtype):
    if len(shape) != 2 or shape[0] != shape[1]:
        raise ValueError(
            f"{type(initializer).__name__} starts square matrices alone, such "
            f"as recurrent kernels. Received: shape={tuple(shape)}"
        )
    return ops.eye(shape[0], k=k, dtype=dtype or keras.config.floatx())
