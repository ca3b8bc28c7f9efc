"""Half of the units integrate, half forget, and nothing grows with length."""

import numpy as np
import pytest
from references import assert_same
from references import to_numpy

from keras_rin.initializers import Offset
from keras_rin.initializers import PartialIdentity
from keras_rin.layers import RIN

pytestmark = pytest.mark.one_backend


@pytest.mark.parametrize(
    "fraction, units, ones", [(0.5, 4, 2), (0.5, 5, 3), (0, 3, 0), (1, 3, 3)]
)
def test_so_many_units_integrate(fraction, units, ones):
    matrix = to_numpy(PartialIdentity(fraction)((units, units)))
    expected = np.diag([0.0] * (units - ones) + [1.0] * ones)
    np.testing.assert_array_equal(matrix, expected)
    np.testing.assert_array_equal(matrix @ matrix, matrix)


def test_the_others_are_a_hidden_layer_of_the_input(rng):
    layer = RIN(
        4,
        recurrent_initializer=Offset(PartialIdentity()),
        return_sequences=True,
    )
    x = rng.normal(size=(3, 7, 2)).astype("float32")
    states = to_numpy(layer(x))
    z = x @ to_numpy(layer.cell.kernel)
    assert_same(states[..., :2], np.maximum(z[..., :2], 0))
    h = np.zeros((3, 2))
    for t in range(7):
        h = np.maximum(h + z[:, t, 2:], 0)
    assert_same(states[:, -1, 2:], h)


@pytest.mark.parametrize("fraction", [-0.1, 1.1, np.nan, "half", None])
def test_a_fraction_is_a_share(fraction):
    with pytest.raises(ValueError, match=r"`fraction`.*\[0, 1\]"):
        PartialIdentity(fraction)


@pytest.mark.parametrize("percent", range(1, 100))
def test_hundredths_of_a_hundred_units_are_whole(percent):
    matrix = PartialIdentity(percent / 100)((100, 100))
    assert np.trace(to_numpy(matrix)) == percent
