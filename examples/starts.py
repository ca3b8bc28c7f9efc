"""The starts of a RIN that examples compare, by the effective matrix."""

from keras_rin.initializers import Chain
from keras_rin.initializers import ChainIdentity
from keras_rin.initializers import FeedbackChain
from keras_rin.initializers import Offset

STARTS = {
    "identity + noise": lambda: None,
    "orthogonal": lambda: Offset("orthogonal"),
    "chain": lambda: Offset(Chain(1.0)),
    "feedback chain": lambda: Offset(FeedbackChain()),
    "chain + identity": lambda: Offset(ChainIdentity()),
}
