import keras
import numpy as np
import pytest
from references import built

import keras_rin
from keras_rin.diagnostics import gradient_norms
from keras_rin.diagnostics import state_jacobians
from keras_rin.layers import RIN


@pytest.mark.parametrize(
    "kind, backwards", [(keras.layers.LSTM, False), (RIN, True)]
)
def test_it_is_the_product_of_the_state_jacobians(rng, kind, backwards):
    layer = built(kind(3, go_backwards=backwards))
    x = rng.normal(size=(4, 6, 2))
    norms = gradient_norms(layer, x, directions=3)
    jacobians = state_jacobians(layer, x, dtype="float64")
    product = np.tile(np.eye(3, jacobians.shape[-1]), (4, 1, 1))
    for t in reversed(range(7)):
        expected = np.sqrt((product**2).sum(axis=(1, 2)).mean() / 3)
        np.testing.assert_allclose(norms[t], expected, rtol=1e-4)
        product = product @ jacobians[:, t - 1]


def halving(**options):
    half = keras.initializers.Identity(0.5)
    rnn = keras.layers.SimpleRNN
    return built(rnn(3, None, recurrent_initializer=half, **options))


@pytest.mark.parametrize("backwards", [False, True])
def test_masked_time_steps_are_left_out(rng, backwards):
    mask = np.array([[0, 1, 1, 0, 1, 0], [1, 0, 0, 0, 0, 0], [0] * 6])
    layer = halving(go_backwards=backwards)
    norms = gradient_norms(layer, rng.normal(size=(3, 6, 2)), mask=mask)
    lag = np.arange(6, -1, -1)  # the sequences have 3, 1 and no steps
    squares = 0.25 ** np.minimum(lag, 3) + 0.25 ** np.minimum(lag, 1)
    np.testing.assert_allclose(norms, np.sqrt(squares / 2), rtol=1e-5)


@pytest.mark.parametrize(
    "dtype, time, tolerance",
    [
        ("float64", 200, 1e-12),
        ("float16", 60, 1e-6),
        *[(f"mixed_{half}", 100, 1e-5) for half in ("float16", "bfloat16")],
    ],
)
def test_no_dtype_ends_a_gradient_early(dtype, time, tolerance):
    norms = gradient_norms(halving(dtype=dtype), np.ones((1, time, 2)))
    expected = 0.5 ** np.arange(time, -1, -1)
    np.testing.assert_allclose(norms, expected, tolerance)


SETUP = """
import keras, numpy
from keras_rin.diagnostics import gradient_norms
from keras_rin.layers import RIN

layer = RIN({units})
layer.build((None, None, 1))
x = numpy.zeros(({batch}, {time}, 1))
"""


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "batch, time, units, most", [(16, 2000, 100, 200), (4, 30_000, 50, 600)]
)
def test_memory_is_that_of_the_states(megabytes, batch, time, units, most):
    setup = SETUP.format(batch=batch, time=time, units=units)
    calls = "gradient_norms(layer, x[:, :10])", "gradient_norms(layer, x)"
    assert megabytes(setup, *calls) < most


@pytest.mark.one_backend
def test_few_directions_estimate_what_all_give(rng):
    layer = built(keras.layers.GRU(30))
    x = rng.normal(size=(8, 10, 2))
    exact = gradient_norms(layer, x, directions=30)
    estimates = [
        gradient_norms(layer, x, directions=5, rng=np.random.default_rng(seed))
        for seed in range(3)
    ]
    mean = np.sqrt(np.mean(np.square(estimates), axis=0))
    np.testing.assert_allclose(mean, exact, rtol=0.25)
    assert (np.std(estimates, axis=0) / exact)[0] > 0.01


def test_gradients_beyond_float32_are_infinite_or_refused():
    layer = built(keras.layers.SimpleRNN(2, None))
    layer.cell.recurrent_kernel.assign(1e30 * np.ones((2, 2)))
    norms = gradient_norms(layer, np.ones((1, 2, 2)), directions=2)
    np.testing.assert_allclose(norms, [np.inf, 1e30 * 2**0.5, 1], rtol=1e-5)
    layer.cell.recurrent_kernel.assign([[1e30, 1e30], [1e30, -1e30]])
    with pytest.raises(ValueError, match="beyond the range of float"):
        gradient_norms(layer, np.ones((1, 5, 2)))


@pytest.mark.parametrize(
    "dtype, x, arguments, error, message",
    [
        ("float32", 1e39, {}, ValueError, "`x` must be finite.*float32"),
        ("float16", 7e4, {}, ValueError, "`x` must be finite.*float16"),
        ("float32", 0, {"rng": 3}, TypeError, "`rng` must be"),
    ],
)
def test_bad_arguments_are_named(dtype, x, arguments, error, message):
    layer = built(RIN(3, dtype=dtype))
    with pytest.raises(error, match=message):
        gradient_norms(layer, np.full((1, 3, 2), x), **arguments)


class Unused(keras.layers.Dense):
    """Has weights that its output does not depend on."""

    def call(self, inputs, training=False):
        return inputs


def test_a_weight_without_a_gradient_has_the_gradient_0(rng):
    model = keras.Sequential([RIN(2), Unused(2)])
    x = rng.normal(size=(4, 3, 2))
    model.build(x.shape)
    model.compile("sgd", "mse")
    report = keras_rin.diagnostics.preflight(model, x, np.ones((4, 2)))
    assert report.gradient_norm > 0
