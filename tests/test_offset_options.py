"""Options of an effective matrix are warned of on a layer that stores U."""

import re

import keras
import pytest

from keras_rin import layers
from keras_rin.constraints import Orthogonal
from keras_rin.initializers import Chain
from keras_rin.initializers import ChainIdentity
from keras_rin.initializers import FeedbackChain
from keras_rin.initializers import Offset
from keras_rin.initializers import PartialIdentity
from keras_rin.initializers import PerGate
from keras_rin.initializers import Ramp
from keras_rin.regularizers import IdentityOffsetL2

pytestmark = pytest.mark.one_backend

of_keras = keras.initializers
RECURRENT = [layers.RIN, layers.RINCell, layers.DeepTransitionRINCell]
# Options of V by name, and what to pass instead.
OPTIONS = [
    ("initializer", "identity", "Offset(Identity"),
    ("initializer", of_keras.Identity(0.11), "Offset(Identity"),
    ("initializer", "orthogonal", "Offset(Orthogonal"),
    ("initializer", of_keras.Orthogonal(-0.11, seed=1), "Offset(Orthogonal"),
    ("initializer", Chain(0.001), "Offset(Chain("),
    ("initializer", ChainIdentity(0.9, 0.1), "Offset(ChainIdentity("),
    ("initializer", FeedbackChain(0.5, 0.1), "Offset(FeedbackChain("),
    ("initializer", PartialIdentity(), "Offset(PartialIdentity("),
    ("initializer", Ramp(), "Offset(Ramp("),
    ("initializer", PerGate(Chain(0.5), gates=1), "Offset(PerGate("),
    ("regularizer", IdentityOffsetL2(0.3), "keras.regularizers.L2(0.3)"),
    ("constraint", Orthogonal(), "Orthogonal(offset=True)"),
]
SCALED = [
    ("initializer", "glorot_uniform", "Offset(GlorotUniform("),
    ("initializer", of_keras.VarianceScaling(0.02), "Offset(VarianceScaling("),
]
MEANT = [
    {"recurrent_initializer": "zeros"},
    {"recurrent_initializer": "random_normal"},
    {"recurrent_initializer": of_keras.Identity(-0.5)},
    {"recurrent_initializer": of_keras.Orthogonal(0.1, seed=1)},
    {"recurrent_initializer": of_keras.VarianceScaling(0.01)},
    {"recurrent_initializer": ChainIdentity(0.9, -0.5)},
    {"recurrent_initializer": Offset(Chain())},
    {"recurrent_initializer": PerGate(Offset(Chain()), gates=1)},
    {"recurrent_regularizer": keras.regularizers.L2(0.3)},
    {"recurrent_constraint": Orthogonal(offset=True)},
    {"kernel_initializer": "identity", "kernel_constraint": Orthogonal()},
]


@pytest.mark.parametrize(
    "make, weight, name, option, replacement",
    [
        *[(make, "recurrent", *case) for make in RECURRENT for case in OPTIONS],
        *[(layers.RIN, "recurrent", *case) for case in SCALED],
        *[(layers.LinearResidual, "kernel", *case) for case in OPTIONS],
    ],
)
def test_one_warning_says_what_to_pass(make, weight, name, option, replacement):
    kind = "RIN" if make is layers.RINCell else make.__name__
    advice = re.escape(f"`{weight}_{name}={replacement}")
    arguments = [] if make is layers.LinearResidual else [4]
    with pytest.warns(UserWarning, match=f"{kind} stores .*{advice}") as caught:
        make(*arguments, **{f"{weight}_{name}": option})
    assert len(caught) == 1 and caught[0].filename == __file__


@pytest.mark.parametrize("make", RECURRENT)
@pytest.mark.parametrize("options", MEANT)
def test_options_of_an_offset_are_not_warned_of(make, options):
    make(4, **options)
    layers.LinearResidual("he_normal")  # where it is a small matrix
