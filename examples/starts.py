"""The starts that examples compare: of a RIN, and of LSTM and GRU."""

from keras_rin.initializers import Chain
from keras_rin.initializers import ChainIdentity
from keras_rin.initializers import FeedbackChain
from keras_rin.initializers import Offset
from keras_rin.initializers import PerGate
from keras_rin.initializers import Ramp

# By the effective matrix.
STARTS = {
    "identity + noise": lambda: None,
    "orthogonal": lambda: Offset("orthogonal"),
    "chain": lambda: Offset(Chain(1.0)),
    "feedback chain": lambda: Offset(FeedbackChain()),
    "chain + identity": lambda: Offset(ChainIdentity()),
}

CHAIN, RAMP = Chain(1.02), Ramp()
GATED = {
    "LSTM": {},
    "LSTM chain": {"recurrent_initializer": PerGate(CHAIN)},
    "LSTM mixed": {"recurrent_initializer": PerGate([RAMP, RAMP, CHAIN, RAMP])},
    "GRU": {},
    "GRU chain": {"recurrent_initializer": PerGate(CHAIN, gates=3)},
    "GRU mixed": {"recurrent_initializer": PerGate([RAMP, RAMP, CHAIN], 3)},
}
