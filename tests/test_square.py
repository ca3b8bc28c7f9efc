import keras
import numpy as np
import pytest
from references import to_numpy

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


@pytest.mark.parametrize(
    "initializer, name",
    [
        (Chain(1e39), "gain"),
        (ChainIdentity(1e39, 0), "chain_gain"),
        (ChainIdentity(0, -1e39), "identity_gain"),
        (FeedbackChain(1e39, 0), "gain"),
        (FeedbackChain(0, 1e39), "feedback"),
        (Ramp(1e39), "limit"),
    ],
)
def test_a_weight_beyond_the_dtype_is_named(initializer, name):
    """Infinity times the zeros beside it would be NaN."""
    with pytest.raises(ValueError, match=f"`{name}` of .*dtype=float32"):
        initializer((3, 3))
    with pytest.raises(ValueError, match=f"`{name}` of .*dtype=float16"):
        initializer((3, 3), "float16")
    with pytest.raises(ValueError, match="floating dtype.*dtype=int32"):
        initializer((3, 3), "int32")
    assert np.isfinite(as_numpy(initializer, 3, "float64")).all()


@pytest.mark.parametrize("shape", [(0, 0), (None, None)])
@pytest.mark.parametrize("initializer", SQUARE)
def test_a_matrix_has_units(initializer, shape):
    with pytest.raises(ValueError, match="square matrices only"):
        initializer(shape)


def test_a_ramp_in_float64_has_its_digits(float64):
    ramp = as_numpy(Ramp(1.0), 8, "float64")
    expected = (np.arange(8) - np.arange(8)[:, None]) / 7
    np.testing.assert_allclose(ramp, expected, rtol=1e-14)
