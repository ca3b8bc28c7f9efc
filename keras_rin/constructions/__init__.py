"""Networks that are written down instead of trained."""

from keras_rin.constructions._near_identity import linear_residual_network
from keras_rin.constructions._near_identity import near_identity_factors
from keras_rin.constructions._perfect_fit import PerfectFit
from keras_rin.constructions._perfect_fit import perfect_fit

__all__ = [
    "PerfectFit",
    "linear_residual_network",
    "near_identity_factors",
    "perfect_fit",
]
