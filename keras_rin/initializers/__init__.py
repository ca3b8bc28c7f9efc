"""Initializers of recurrent and input kernels and of residual blocks."""

from keras_rin.initializers._chains import Chain
from keras_rin.initializers._chains import ChainIdentity
from keras_rin.initializers._chains import FeedbackChain
from keras_rin.initializers._chains import Ramp
from keras_rin.initializers._inputs import AlignedInput
from keras_rin.initializers._inputs import OneUnitInput
from keras_rin.initializers._offset import Offset
from keras_rin.initializers._partial_identity import PartialIdentity
from keras_rin.initializers._per_gate import PerGate
from keras_rin.initializers._small_variance_normal import SmallVarianceNormal

__all__ = [
    "AlignedInput",
    "Chain",
    "ChainIdentity",
    "FeedbackChain",
    "Offset",
    "OneUnitInput",
    "PartialIdentity",
    "PerGate",
    "Ramp",
    "SmallVarianceNormal",
]
