import keras
import numpy as np
import pytest
from cases import first_of
from references import assert_same
from references import to_numpy

from keras_rin.diagnostics import recurrent_matrices
from keras_rin.layers import NoisyRNN
from keras_rin.layers import RINCell

CELLS = [
    keras.layers.SimpleRNNCell,
    keras.layers.GRUCell,
    keras.layers.LSTMCell,
    RINCell,
]


def without_noise(layer, **kwargs):
    """The cell of a built NoisyRNN alone in Keras's RNN."""
    cell = layer.cell.cell
    plain = keras.layers.RNN(
        type(cell).from_config(cell.get_config()), **kwargs
    )
    plain.build((None, None, cell.kernel.shape[0]))
    plain.set_weights(layer.get_weights())
    return plain


@pytest.mark.one_backend
@pytest.mark.parametrize("cell", CELLS)
def test_without_noise_it_is_the_rnn_of_keras(rng, cell):
    layer = NoisyRNN(cell(4), stddev=0, return_sequences=True)
    x = rng.normal(size=(2, 5, 3)).astype("float32")
    states = layer(x)
    assert_same(states, without_noise(layer, return_sequences=True)(x))


def test_the_noise_is_carried_by_the_recurrence(rng):
    cell = RINCell(200, None, recurrent_initializer="zeros")
    layer = NoisyRNN(cell, stddev=0.5, seed=1, return_sequences=True)
    h = to_numpy(layer(np.zeros((50, 9, 1))))
    steps = np.diff(h, axis=1, prepend=0)
    np.testing.assert_allclose(steps.std(axis=(0, 2)), 0.5, rtol=0.05)
    np.testing.assert_allclose(steps.mean(), 0, atol=0.01)
    flat = steps.reshape(-1, 9 * 200)
    assert abs(np.corrcoef(flat[0], flat[1])[0, 1]) < 0.1
    np.testing.assert_allclose(h[:, -1].var(), 9 * 0.25, rtol=0.05)


@pytest.mark.one_backend
def test_a_leaky_unit_has_the_variance_of_its_geometric_series():
    gain, steps = 0.8, 30
    cell = keras.layers.SimpleRNNCell(
        1, None, recurrent_initializer=keras.initializers.Constant(gain)
    )
    h = to_numpy(NoisyRNN(cell, 1.0, seed=2)(np.zeros((20000, steps, 1))))
    expected = (1 - gain ** (2 * steps)) / (1 - gain**2)
    np.testing.assert_allclose(h.var(), expected, rtol=0.05)


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
    *_, expected = without_noise(layer, return_state=True)(x)
    assert_same(memory, expected)


def test_the_diagnostics_see_the_cell_itself():
    layer = NoisyRNN(RINCell(3, recurrent_initializer="zeros"))
    layer.build((None, None, 1))
    matrix = recurrent_matrices(layer)["recurrent"]
    np.testing.assert_array_equal(matrix, np.eye(3))


@pytest.mark.parametrize("cell", first_of([(cell,) for cell in CELLS[::-1]]))
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


JAX = keras.backend.backend() == "jax"
XLA = keras.backend.backend() != "torch"


def with_dropout(units):
    return RINCell(units, dropout=0.5, recurrent_dropout=0.5)


@pytest.mark.parametrize(
    "cell, jit_compile",
    first_of([(with_dropout, JAX), (keras.layers.LSTMCell, XLA)]),
)
def test_a_model_trains_and_predicts(cell, jit_compile, rng):
    model = keras.Sequential([NoisyRNN(cell(4)), keras.layers.Dense(1)])
    model.compile("sgd", "mse", jit_compile=jit_compile)
    x = rng.normal(size=(6, 5, 3)).astype("float32")
    for _ in range(2):
        model.fit(x, x[:, 0, :1], batch_size=3, verbose=0)
        assert np.isfinite(model.predict(x, verbose=0)).all()


@pytest.mark.parametrize(
    "cell, stddev, shape, message",
    [
        *[
            (RINCell(3), stddev, None, "`stddev` must be a finite number")
            for stddev in (-0.1, np.nan, "1", None)
        ],
        ([RINCell(3), RINCell(3)], 0.1, None, "must be a single cell"),
        (RINCell(4), 0.1, (2, 3), "expected ndim=3, found ndim=2"),
        (RINCell(4), 0.1, (2, 5, 4), "expected axis -1 .* to have value 3"),
    ],
)
def test_other_arguments_and_inputs_are_refused(cell, stddev, shape, message):
    with pytest.raises(ValueError, match=message):
        layer = NoisyRNN(cell, stddev)
        layer(np.ones((2, 5, 3)))
        layer(np.ones(shape))


class Counter(keras.layers.Layer):
    """As little as Keras asks of a cell."""

    state_size = 1

    def call(self, inputs, states):
        return states[0] + 1, [states[0] + 1]


class CounterFromTen(Counter):
    def get_initial_state(self, batch_size=None):
        return [keras.ops.full((batch_size, 1), 10.0)]


@pytest.mark.parametrize(("cell", "last"), [(Counter, 7), (CounterFromTen, 17)])
def test_the_initial_state_is_that_of_the_cell_or_zero(cell, last):
    assert_same(
        NoisyRNN(cell(), stddev=0)(np.zeros((2, 7, 1))), np.full((2, 1), last)
    )
