"""Initializers of recurrent kernels and of residual blocks."""

from keras_rin.initializers.chains import Chain
from keras_rin.initializers.chains import ChainIdentity
from keras_rin.initializers.chains import FeedbackChain
from keras_rin.initializers.chains import Ramp
from keras_rin.initializers.offset import Offset
from keras_rin.initializers.partial_identity import PartialIdentity
from keras_rin.initializers.per_gate import PerGate
from keras_rin.initializers.small_variance_normal import SmallVarianceNormal

__all__ = [
    "Chain",
    "ChainIdentity",
    "FeedbackChain",
    "Offset",
    "PartialIdentity",
    "PerGate",
    "Ramp",
    "SmallVarianceNormal",
]
