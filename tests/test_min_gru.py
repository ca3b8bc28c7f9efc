import numpy as np
import pytest
from references import built
from references import to_numpy

from keras_rin.layers import MinGRU
from keras_rin.layers import MinGRUCell


@pytest.mark.one_backend
def test_the_gate_begins_at_its_bias():
    layer = built(MinGRU(3, bias_initializer="ones"))
    np.testing.assert_array_equal(layer.get_weights()[1], [-3] * 3 + [1] * 3)
    x = np.zeros((1, 1, 2))
    expected = 1 / (1 + np.exp(3))
    np.testing.assert_allclose(to_numpy(layer(x)), expected, rtol=1e-5)


def test_dropout_has_one_mask_for_all_steps():
    layer = MinGRU(
        64, kernel_initializer="ones", gate_bias=50, dropout=0.5, seed=1
    )
    layer.return_sequences = True
    outputs = to_numpy(layer(np.ones((4, 5, 1)), training=True))
    assert {*np.unique(outputs.round(4))} == {0.0, 2.0}
    np.testing.assert_array_equal(outputs, np.repeat(outputs[:, :1], 5, axis=1))


@pytest.mark.one_backend
@pytest.mark.parametrize("make", [MinGRU, MinGRUCell])
@pytest.mark.parametrize(
    "options",
    [{"recurrent_dropout": 0.1}, {"reset_after": True}, {"implementation": 1}],
)
def test_what_has_no_meaning_is_refused(make, options):
    with pytest.raises(TypeError, match=f"Received: {next(iter(options))}"):
        make(3, **options)
