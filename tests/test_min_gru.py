import numpy as np
import pytest
from references import built
from references import to_numpy
from references import weights64

from keras_rin import diagnostics
from keras_rin.layers import MinGRU
from keras_rin.layers import MinGRUCell


def closed_form(layer, x, initial_state):
    """h_t = sum over s of z_s c_s times the product of 1 - z after s."""
    kernel, bias = weights64(layer)
    gate, candidate = np.split(x @ kernel + bias, 2, axis=-1)
    z = 1 / (1 + np.exp(-gate))
    carried = np.cumprod(1 - z, axis=1)
    return carried * (
        initial_state[:, None] + np.cumsum(z * candidate / carried, axis=1)
    )


def random_layer(rng, **options):
    layer = built(MinGRU(4, return_sequences=True, **options))
    layer.set_weights([rng.normal(size=w.shape) for w in layer.get_weights()])
    return layer


@pytest.mark.parametrize("go_backwards", [False, True])
def test_its_outputs_are_those_of_the_closed_form(rng, go_backwards):
    layer = random_layer(rng, go_backwards=go_backwards)
    x = rng.normal(size=(3, 9, 2)).astype("float32")
    h = rng.normal(size=(3, 4)).astype("float32")
    outputs = to_numpy(layer(x, initial_state=h))
    inputs = x[:, ::-1] if go_backwards else x
    expected = closed_form(layer, inputs.astype("float64"), h)
    np.testing.assert_allclose(outputs, expected, rtol=1e-4, atol=1e-5)


def test_a_masked_step_leaves_the_state_as_it_is(rng):
    layer, x = random_layer(rng), rng.normal(size=(2, 9, 2))
    mask = np.ones((2, 9), bool)
    mask[:, [3, 6]] = False
    expected = closed_form(layer, x[:, mask[0]], np.zeros((2, 4)))
    actual = to_numpy(layer(x, mask=mask))[:, mask[0]]
    np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-5)


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


@pytest.mark.one_backend
def test_it_has_one_stable_fixed_point_and_no_matrix(rng):
    layer = random_layer(rng)
    kernel, bias = weights64(layer)
    x = rng.normal(size=2)
    points = diagnostics.fixed_points(layer, rng.normal(size=(3, 4)), x=x)
    np.testing.assert_allclose(points.states, [(x @ kernel + bias)[4:]])
    assert points.contracting == [4]
    with pytest.raises(ValueError, match="`recurrent_kernel`"):
        diagnostics.recurrent_matrices(layer)
    exponents = diagnostics.lyapunov_spectrum(layer, np.tile(x, (1, 50, 1)))
    gate = 1 / (1 + np.exp(-(x @ kernel + bias)[:4]))
    # The sum, since close exponents take more steps to tell apart.
    actual = exponents.exponents.sum()
    np.testing.assert_allclose(actual, np.log(1 - gate).sum(), rtol=1e-4)
