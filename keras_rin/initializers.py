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
        ValueError: If a weight is negative or not finite, or if the shape
            asked for is not square.

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
        forward = self.gain * _shift(self, shape, 1, dtype)
        return forward + self.feedback * _shift(self, shape, -1, dtype)

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
        ValueError: If `limit` is negative or not finite, or if the shape
            asked for is not square.

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
        units = _side(self, shape)
        dtype = dtype or keras.config.floatx()
        place = ops.arange(units, dtype="float32") / max(units - 1, 1)
        return ops.cast(self.limit * (place - place[:, None]), dtype)

    def get_config(self):
        return {"limit": self.limit}


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
        self.initializer = _get(initializer)

    def __call__(self, shape, dtype=None):
        identity = _shift(self, shape, 0, dtype)
        return self.initializer(shape, dtype=dtype) - identity

    def get_config(self):
        return {"initializer": keras.initializers.serialize(self.initializer)}


@keras.saving.register_keras_serializable(package="keras_rin")
class PerGate(keras.initializers.Initializer):
    """One start for each gate of an LSTM or a GRU.

    W = [W_1, ..., W_gates], side by side

    Keras stores the matrices of all gates in one kernel, of shape
    `(units, gates * units)`, in the order input, forget, cell, output for an
    LSTM and update, reset, candidate for a GRU (`gates=3`). An initializer
    of square matrices, such as `Chain`, refuses that shape; here it starts
    each gate. The mixed start of the paper for an LSTM, with the chain in
    the tanh gate alone, is `PerGate([Ramp(), Ramp(), Chain(1.02), Ramp()])`.

    Args:
        initializer: Initializer of every gate, or a list of one for each
            gate: Keras initializers, their names or configs. Gates draw
            different numbers from one random initializer, also if it has a
            seed. Defaults to `"orthogonal"`.
        gates: Positive integer, how many gates share the kernel. Defaults
            to 4.

    Raises:
        ValueError: If `gates` is not a positive integer, if a list has
            another length, or if the last axis of the shape asked for is
            not divisible by `gates`.

    Example:

    >>> chain = keras_rin.initializers.Chain(1.02)
    >>> layer = keras.layers.LSTM(
    ...     8, recurrent_initializer=keras_rin.initializers.PerGate(chain)
    ... )
    >>> tuple(layer(np.ones((32, 10, 4))).shape)
    (32, 8)

    Reference:
        Orhan and Pitkow, 2020 (arXiv 1905.13715), table 3.
    """

    def __init__(self, initializer="orthogonal", gates=4):
        self.gates = arguments.integer("gates", gates)
        if isinstance(initializer, (list, tuple)):
            self.initializer = [_get(gate) for gate in initializer]
            if len(self.initializer) != self.gates:
                raise ValueError(
                    "`initializer` must hold one initializer for each of "
                    f"gates={self.gates}. "
                    f"Received: {len(self.initializer)} of them"
                )
        else:
            self.initializer = _get(initializer)

    def __call__(self, shape, dtype=None):
        if not shape or shape[-1] % self.gates:
            raise ValueError(
                f"PerGate(gates={self.gates}) needs a kernel whose last axis "
                "it divides: an LSTM has 4 gates, a GRU 3. "
                f"Received: shape={tuple(shape)}"
            )
        shape = (*shape[:-1], shape[-1] // self.gates)
        parts = [gate(shape, dtype=dtype) for gate in self._one_a_gate()]
        return ops.concatenate(parts, axis=-1)

    def _one_a_gate(self):
        if isinstance(self.initializer, list):
            return self.initializer
        return [_reseeded(self.initializer, k) for k in range(self.gates)]

    def get_config(self):
        kept = keras.tree.map_structure(
            keras.initializers.serialize, self.initializer
        )
        return {"initializer": kept, "gates": self.gates}


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


def _get(initializer):
    made = keras.initializers.get(initializer)
    if made is None:
        raise ValueError(
            "`initializer` must be a Keras initializer, its name or its "
            "config. Received: initializer=None"
        )
    return made


def _reseeded(initializer, k):
    # A random initializer of Keras repeats its numbers at every call.
    if isinstance(initializer, Offset):
        return Offset(_reseeded(initializer.initializer, k))
    config = getattr(initializer, "get_config", dict)()
    if "seed" not in config or isinstance(config["seed"], dict):
        return initializer  # it draws nothing, or goes on from call to call
    if isinstance(config["seed"], int):
        config["seed"] += k
    return type(initializer).from_config(config)


def _side(initializer, shape):
    if len(shape) != 2 or shape[0] != shape[1]:
        raise ValueError(
            f"{type(initializer).__name__} starts square matrices alone, such "
            f"as recurrent kernels. Received: shape={tuple(shape)}"
        )
    return shape[0]


def _shift(initializer, shape, k, dtype):
    units = _side(initializer, shape)
    return ops.eye(units, k=k, dtype=dtype or keras.config.floatx())
