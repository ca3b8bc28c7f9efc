import keras
import numpy as np
import pytest
from references import assert_same

from keras_rin.layers import RIN
from keras_rin.regularizers import IdentityOffsetL2

pytestmark = pytest.mark.one_backend


@pytest.mark.parametrize("units", [1, 3, 20])
def test_on_the_effective_matrix_it_is_l2_on_the_offset(rng, units):
    offset = rng.normal(size=(units, units)).astype("float32")
    ours = IdentityOffsetL2(0.3)(offset + np.eye(units, dtype="float32"))
    theirs = keras.regularizers.L2(0.3)(offset)
    assert_same(ours, theirs)


def test_it_is_the_formula(rng):
    w = rng.normal(size=(4, 4))
    expected = 0.3 * np.sum((w - np.eye(4)) ** 2)
    assert_same(IdentityOffsetL2(0.3)(w.astype("f4")), expected)


def test_simple_rnn_at_the_identity_costs_nothing():
    layer = keras.layers.SimpleRNN(
        5,
        recurrent_initializer="identity",
        recurrent_regularizer=IdentityOffsetL2(0.1),
    )
    layer.build((None, None, 2))
    assert_same(layer.losses[0], 0, atol=0)


def test_on_an_offset_it_would_pull_to_twice_the_identity():
    with pytest.warns(UserWarning, match="2 I"):
        layer = RIN(
            5,
            recurrent_initializer="identity",
            recurrent_regularizer=IdentityOffsetL2(0.1),
        )
    layer.build((None, None, 2))
    assert_same(layer.losses[0], 0, atol=0)
    assert_same(layer.effective_recurrent_kernel, 2 * np.eye(5))


def test_the_config_makes_the_same_penalty():
    config = keras.regularizers.serialize(IdentityOffsetL2(0.3))
    again = keras.regularizers.deserialize(config)
    w = np.ones((3, 3), "float32")
    assert float(again(w)) == float(IdentityOffsetL2(0.3)(w)) > 0


@pytest.mark.parametrize("shape", [(3, 4), (3,), (2, 3, 3)])
def test_other_shapes_are_refused(shape):
    with pytest.raises(ValueError, match="square matrix.*Received: shape="):
        IdentityOffsetL2()(np.ones(shape))


def test_a_layer_with_another_kernel_says_so_when_built():
    layer = keras.layers.LSTM(3, recurrent_regularizer=IdentityOffsetL2())
    layer.build((None, None, 2))
    with pytest.raises(ValueError, match=r"Received: shape=\(3, 12\)"):
        layer.losses  # noqa: B018


@pytest.mark.parametrize("l2", [-1, float("nan"), float("inf"), "1", None])
def test_l2_must_be_finite_and_not_negative(l2):
    with pytest.raises(ValueError, match="`l2` must.*Received: l2="):
        IdentityOffsetL2(l2)


@pytest.mark.parametrize("dtype", ["int32", "complex64"])
def test_a_matrix_of_no_floating_dtype_is_refused(dtype):
    with pytest.raises(ValueError, match=f"floating dtype.*dtype={dtype}"):
        IdentityOffsetL2(0.1)(np.eye(3).astype(dtype))
