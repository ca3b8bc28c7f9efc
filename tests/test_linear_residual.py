import keras
import numpy as np
import pytest
from references import assert_same

from keras_rin.layers import LinearResidual


@pytest.mark.parametrize("shape", [(4, 3), (2, 5, 3), (2, 4, 5, 1)])
def test_it_is_a_dense_layer_with_the_kernel_identity_plus_offset(rng, shape):
    x = rng.normal(size=shape).astype("float32")
    layer = LinearResidual(kernel_initializer="he_normal")
    y = layer(x)
    dense = keras.layers.Dense(shape[-1], use_bias=False)
    dense.build(shape)
    dense.set_weights([np.eye(shape[-1]) + layer.get_weights()[0]])
    assert_same(y, dense(x))


def test_at_the_start_it_changes_nothing(rng):
    x = rng.normal(size=(4, 3)).astype("float32")
    assert_same(LinearResidual()(x), x, rtol=0, atol=0)


def test_a_small_offset_survives_bfloat16():
    layer = LinearResidual("zeros", dtype="bfloat16")
    layer.build((None, 2))
    layer.set_weights([np.full((2, 2), 0.003)])
    y = keras.ops.cast(layer(np.ones((1, 2))), "float32")
    # 1.006 is nearer to 1 + 1/128 than to 1, and 1.003 is not.
    assert_same(y, [[1 + 1 / 128] * 2], rtol=0, atol=0)


def test_the_penalty_pulls_towards_the_identity():
    layer = LinearResidual("ones", kernel_regularizer="l2")
    layer.build((None, 3))
    assert_same(layer.losses[0], 0.01 * 9)


def test_the_constraint_acts_on_the_offset():
    layer = LinearResidual(kernel_constraint="non_neg")
    layer.build((None, 3))
    assert_same(layer.kernel.constraint(-np.ones((3, 3))), np.zeros((3, 3)))


def test_the_number_of_features_must_be_known_and_stay():
    with pytest.raises(ValueError, match="number of features"):
        LinearResidual()(keras.Input((None,)))
    layer = LinearResidual()
    layer.build((None, 3))
    with pytest.raises(ValueError, match="expected axis -1"):
        layer(np.ones((2, 4)))
