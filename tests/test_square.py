import keras
import numpy as np
import pytest
from witnesses import to_numpy

from keras_rin.initializers import Chain
from keras_rin.initializers import ChainIdentity
from keras_rin.initializers import FeedbackChain
from keras_rin.initializers import Offset
from keras_rin.initializers import PartialIdentity
from keras_rin.initializers import PerGate
from keras_rin.initializers import Ramp

SQUARE = [
    Chain(),
    ChainIdentity(),
    FeedbackChain(),
    Offset("zeros"),
    PartialIdentity(),
    Ramp(),
]


def as_numpy(initializer, units, dtype=None):
    return to_numpy(initializer((units, units), dtype))


@pytest.mark.parametrize("initializer", SQUARE)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64", None])
def test_the_dtype_is_the_one_asked_for(initializer, dtype):
    made = initializer((3, 3), dtype=dtype)
    wanted = dtype or keras.config.floatx()
    assert keras.backend.standardize_dtype(made.dtype) == wanted


@pytest.mark.parametrize(
    "initializer",
    [
        Chain(0.3),
        ChainIdentity(0.3, -0.7),
        FeedbackChain(0.9, 0.1),
        PartialIdentity(0.3),
        Ramp(0.2),
        Offset(Chain(0.3)),
        PerGate(Chain(0.3), gates=1),
        PerGate([Chain(0.5)], gates=1),
    ],
)
def test_the_config_makes_the_same_matrix(initializer):
    config = keras.initializers.serialize(initializer)
    again = keras.initializers.deserialize(config)
    np.testing.assert_array_equal(as_numpy(initializer, 4), as_numpy(again, 4))


@pytest.mark.parametrize("initializer", SQUARE)
@pytest.mark.parametrize("shape", [(3, 4), (3,), (3, 3, 3), ()])
def test_other_shapes_are_refused(initializer, shape):
    with pytest.raises(ValueError, match="square matrices"):
        initializer(shape)
