import keras
import numpy as np
import pytest
import references
from references import assert_same

from keras_rin.layers import RIN
from keras_rin.regularizers import IdentityOffsetL2

pytestmark = pytest.mark.one_backend


@pytest.mark.parametrize("units", [1, 4])
def test_it_is_l2_of_the_difference_from_the_identity(rng, units):
    w = rng.normal(size=(units, units)).astype("float32")
    expected = 0.3 * np.sum((w - np.eye(units)) ** 2)
    config = keras.regularizers.serialize(IdentityOffsetL2(0.3))
    for penalty in (
        IdentityOffsetL2(0.3),
        keras.regularizers.deserialize(config),
    ):
        assert_same(penalty(w), expected)


def test_an_optimizer_tells_a_rin_from_a_simple_rnn_by_the_penalty_alone(rng):
    """The gradient with respect to U is that with respect to V = U + I."""
    x, y = rng.normal(size=(4, 6, 2)), rng.normal(size=(4, 5))
    rin = references.built(RIN(5, recurrent_regularizer="l2"))

    def gradient(layer):
        model = keras.Sequential([layer])
        model.compile(keras.optimizers.SGD(1.0), "mse")
        before = layer.get_weights()[1]
        model.train_on_batch(x, y)
        return before - layer.get_weights()[1]

    same, other = (
        gradient(references.simple_rnn_of(rin, recurrent_regularizer=penalty))
        for penalty in (IdentityOffsetL2(0.01), "l2")
    )
    assert_same(gradient(rin), same)
    # L2 pulls V to 0, by 2 * 0.01 on its diagonal.
    assert_same(other - same, 0.02 * np.eye(5))


@pytest.mark.parametrize("weight", [np.ones(3), np.eye(3, dtype="int32")])
def test_what_is_no_square_matrix_of_floats_is_refused(weight):
    with pytest.raises(ValueError, match="Received: .*(shape|dtype)="):
        IdentityOffsetL2()(weight)
