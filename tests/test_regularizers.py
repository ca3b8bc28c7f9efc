import keras
import numpy as np
import pytest
from references import assert_same

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


@pytest.mark.parametrize("weight", [np.ones(3), np.eye(3, dtype="int32")])
def test_what_is_no_square_matrix_of_floats_is_refused(weight):
    with pytest.raises(ValueError, match="Received: .*(shape|dtype)="):
        IdentityOffsetL2()(weight)
