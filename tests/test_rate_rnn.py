import keras
import numpy as np
import pytest
from references import assert_same
from references import built
from references import to_numpy
from references import weights64
from scipy import integrate

from keras_rin.layers import NoisyRNN
from keras_rin.layers import RateRNN
from keras_rin.layers import RateRNNCell
from keras_rin.layers import RINCell


@pytest.mark.one_backend
def test_small_steps_are_the_differential_equation(rng):
    layer = built(RateRNN(3, 2.0, dt=0.01))
    layer.set_weights([rng.normal(size=w.shape) for w in layer.get_weights()])
    kernel, matrix, bias = weights64(layer)
    x = np.tile([0.5, -1.0], (1, 500, 1))  # for a time of 5

    def flow(t, h):
        return (np.tanh(h) @ matrix + x[0, 0] @ kernel + bias - h) / 2.0

    solution = integrate.solve_ivp(flow, (0, 5), np.zeros(3), rtol=1e-9)
    assert_same(layer(x)[0], solution.y[:, -1], rtol=0.01, atol=0.01)


@pytest.mark.parametrize("training, inference_noise", [(1, 0), (0, 1), (0, 0)])
def test_noise_is_that_of_an_ornstein_uhlenbeck_process(
    training, inference_noise
):
    """Var = noise^2 2 / (2 - dt / tau), correlated over tau."""
    layer = RateRNN(
        200,
        tau=4.0,
        recurrent_initializer="zeros",
        noise=0.5,
        inference_noise=bool(inference_noise),
        seed=1,
        return_sequences=True,
    )
    h = to_numpy(layer(np.zeros((60, 90, 1)), training=bool(training)))[:, 40:]
    if not training and not inference_noise:
        assert not h.any()
        return
    np.testing.assert_allclose(h.var(), 0.25 * 2 / (2 - 0.25), rtol=0.02)
    np.testing.assert_allclose(h.mean(), 0, atol=0.01)
    for lag in (1, 4):
        product = (h[:, lag:] * h[:, :-lag]).mean() / h.var()
        np.testing.assert_allclose(product, 0.75**lag, atol=0.02)
    assert abs(np.corrcoef(h[0, :, 0], h[1, :, 0])[0, 1]) < 0.6


@pytest.mark.one_backend
def test_a_noisy_rnn_has_the_same_switch():
    cell = RINCell(3, None, recurrent_initializer="zeros")
    layer = NoisyRNN(cell, 0.5, inference_noise=False)
    x = np.zeros((2, 4, 1))
    assert not to_numpy(layer(x)).any()
    assert to_numpy(layer(x, training=True)).all()
    assert NoisyRNN.from_config(layer.get_config()).inference_noise is False


@pytest.mark.parametrize("features", [2, 4, 3 + 5])
def test_a_cell_takes_the_features_for_which_it_was_built(features):
    """It took more: the columns of the noise of a RateRNN."""
    layer = keras.layers.RNN(RateRNNCell(5, tau=5.0, name="cell"))
    layer(np.ones((2, 6, 3)))
    with pytest.raises(ValueError, match="cell was built for .* 3 features"):
        layer(np.ones((2, 6, features)))


def test_a_cell_has_the_initial_state_of_a_keras_cell():
    (state,) = RateRNNCell(5, tau=5.0, dtype="float16").get_initial_state(2)
    (expected,) = keras.layers.SimpleRNNCell(
        5, dtype="float16"
    ).get_initial_state(2)
    assert state.dtype == expected.dtype
    assert_same(state, expected)
