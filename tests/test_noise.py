"""NoisyRNN and RateRNN: their noise, and what their cells take."""

import keras
import numpy as np
import pytest
from cases import first_of
from references import Map
from references import MapFromFive
from references import assert_same
from references import to_numpy

from keras_rin.layers import NoisyRNN
from keras_rin.layers import RateRNN
from keras_rin.layers import RateRNNCell
from keras_rin.layers import RINCell


@pytest.mark.parametrize("gain, steps", [(1.0, 9), (0.8, 30)])
def test_the_noise_is_carried_by_the_recurrence(gain, steps):
    initializer = keras.initializers.Identity(gain - 1)
    cell = RINCell(200, None, recurrent_initializer=initializer)
    options = {"inference_noise": False, "seed": 1, "return_sequences": True}
    layer = NoisyRNN(cell, stddev=0.5, **options)
    h = to_numpy(layer(np.zeros((100, steps, 1)), training=True))
    series = np.cumsum(gain ** (2 * np.arange(steps)))
    np.testing.assert_allclose(h.var(axis=(0, 2)), 0.25 * series, rtol=0.06)
    before = np.pad(h[:, :-1], [(0, 0), (1, 0), (0, 0)])
    noise = (h - gain * before).reshape(100, -1)
    np.testing.assert_allclose(noise.mean(), 0, atol=0.01)
    assert abs(np.corrcoef(noise[0], noise[1])[0, 1]) < 0.1
    assert NoisyRNN.from_config(layer.get_config()).inference_noise is False


def test_noise_is_fresh_at_each_call_and_the_same_from_a_seed():
    def states():
        cell = RINCell(3, None, recurrent_initializer="zeros")
        layer = NoisyRNN(cell, stddev=0.1, seed=5)
        return [to_numpy(layer(np.zeros((1, 2, 1)))) for _ in range(2)]

    first, second = states()
    assert not np.array_equal(first, second)
    np.testing.assert_array_equal(first, states()[0])


def test_an_lstm_keeps_its_memory_cell_clean():
    layer = NoisyRNN(keras.layers.LSTMCell(3), stddev=1.0, return_state=True)
    x = np.ones((2, 1, 1), "float32")
    *_, memory = layer(x)
    clean = keras.layers.RNN(layer.cell.cell, return_state=True)
    *_, expected = clean(x)
    assert_same(memory, expected)


@pytest.mark.parametrize(
    "cell",
    first_of(
        [
            (RINCell,),
            (keras.layers.LSTMCell,),
            (keras.layers.GRUCell,),
            (keras.layers.SimpleRNNCell,),
        ]
    ),
)
def test_dropout_of_the_cell_is_drawn_anew_at_each_call(cell, rng):
    layer = NoisyRNN(cell(40, dropout=0.5, recurrent_dropout=0.5), stddev=0)
    for batch in (3, 4):
        x = rng.normal(size=(batch, 5, 8)).astype("float32")
        first, second, inference = (
            to_numpy(layer(x, training=training))
            for training in (True, True, False)
        )
        assert np.abs(first - second).max() > 1e-3
        assert_same(inference, layer(x))


@pytest.mark.parametrize(
    "cell, shape, message",
    [
        ([RINCell(3), RINCell(3)], None, "must be a single cell"),
        (RINCell(4), (2, 3), "expected ndim=3, found ndim=2"),
        (RINCell(4), (2, 5, 4), "expected axis -1 .* to have value 3"),
    ],
)
def test_other_cells_and_inputs_are_refused(cell, shape, message):
    with pytest.raises(ValueError, match=message):
        layer = NoisyRNN(cell, 0.1)
        layer(np.ones((2, 5, 3)))
        layer(np.ones(shape))


@pytest.mark.parametrize("cell, last", [(Map, 7), (MapFromFive, 12)])
def test_the_initial_state_is_that_of_the_cell_or_zero(cell, last):
    layer = NoisyRNN(cell(lambda state, x: state + 1, 1), stddev=0)
    assert_same(layer(np.zeros((2, 7, 1))), np.full((2, 1), last))


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


@pytest.mark.parametrize("features", [2, 4, 3 + 5])
def test_a_cell_takes_the_features_for_which_it_was_built(features):
    """It took more: the columns of the noise of a RateRNN."""
    layer = keras.layers.RNN(RateRNNCell(5, tau=5.0, name="cell"))
    layer(np.ones((2, 6, 3)))
    with pytest.raises(ValueError, match="cell was built for .* 3 features"):
        layer(np.ones((2, 6, features)))


def test_a_cell_has_the_initial_state_of_a_keras_cell():
    (state,), (expected,) = (
        cell.get_initial_state(2)
        for cell in (
            RateRNNCell(5, tau=5.0, dtype="float16"),
            keras.layers.SimpleRNNCell(5, dtype="float16"),
        )
    )
    assert state.dtype == expected.dtype
    assert_same(state, expected)
