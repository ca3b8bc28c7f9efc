"""Initializers of recurrent kernels and of residual blocks."""

from keras_rin.initializers._chains import Chain
from keras_rin.initializers._chains import ChainIdentity
from keras_rin.initializers._chains import FeedbackChain
from keras_rin.initializers._chains import Ramp
from keras_rin.initializers._offset import Offset
from keras_rin.initializers._partial_identity import PartialIdentity
from keras_rin.initializers._per_gate import PerGate
from keras_rin.initializers._small_variance_normal import SmallVarianceNormal

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
