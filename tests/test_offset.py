import keras
import pytest
from references import assert_same
from references import to_numpy

from keras_rin.initializers import Chain
from keras_rin.initializers import FeedbackChain
from keras_rin.initializers import Offset
from keras_rin.initializers import PerGate
from keras_rin.layers import RIN

pytestmark = pytest.mark.one_backend


def as_numpy(initializer, units, dtype=None):
    return to_numpy(initializer((units, units), dtype))


@pytest.mark.parametrize(
    "initializer",
    [Chain(0.9), FeedbackChain(), keras.initializers.Orthogonal(seed=0)],
)
def test_an_offset_starts_rin_where_the_effective_start_does(initializer):
    layer = RIN(5, recurrent_initializer=Offset(initializer))
    layer.build((None, None, 2))
    expected = as_numpy(initializer, 5)
    assert_same(layer.effective_recurrent_kernel, expected)


@pytest.mark.parametrize("start", [Offset, PerGate])
def test_no_initializer_at_all_is_refused(start):
    with pytest.raises(ValueError, match="Received: initializer=None"):
        start(None)
