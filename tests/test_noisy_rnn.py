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


def copied(cell):
    """The cell alone in Keras's RNN, with weights of its own."""
    again = type(cell).from_config(cell.get_config())
    layer = keras.layers.RNN(again, return_sequences=True)
    layer.build((None, None, cell.kernel.shape[0]))
    again.set_weights(cell.get_weights())
    return layer


@pytest.mark.one_backend
@pytest.mark.parametrize("cell", CELLS)
def test_without_noise_it_is_the_rnn_of_keras(rng, cell):
    layer = NoisyRNN(cell(4), stddev=0, return_sequences=True)
    x = rng.normal(size=(2, 5, 3)).astype("float32")
    noisy = layer(x)
    assert_same(noisy, copied(layer.cell.cell)(x))


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
    def answers():
        cell = RINCell(3, None, recurrent_initializer="zeros")
        layer = NoisyRNN(cell, stddev=0.1, seed=5)
        return [to_numpy(layer(np.zeros((1, 2, 1)))) for _ in range(2)]

    one, other = answers()
    assert not np.array_equal(one, other)
    np.testing.assert_array_equal(one, answers()[0])


def test_an_lstm_keeps_its_memory_cell_clean():
    layer = NoisyRNN(keras.layers.LSTMCell(3), stddev=1.0, return_state=True)
    clean = copied_state(layer, np.ones((2, 1, 1), "float32"))
    _, _, c = layer(np.ones((2, 1, 1), "float32"))
    assert_same(c, clean)


def copied_state(layer, x):
    layer.build((None, None, 1))
    plain = copied(layer.cell.cell)
    states = plain.cell.get_initial_state(batch_size=len(x))
    return plain.cell(x[:, 0], states)[1][1]


@pytest.mark.exhaustive
@pytest.mark.parametrize("cell", [RINCell, keras.layers.LSTMCell])
def test_it_trains_under_xla(rng, cell):
    layer = NoisyRNN(cell(4), stddev=0.1)
    model = keras.Sequential([layer, keras.layers.Dense(1)])
    jit_compile = keras.backend.backend() != "torch"
    model.compile("adam", "mse", jit_compile=jit_compile)
    x = rng.normal(size=(8, 5, 2)).astype("float32")
    history = model.fit(x, x[:, -1, :1], epochs=2, verbose=0)
    assert np.isfinite(history.history["loss"]).all()


def test_the_diagnostics_see_the_cell_itself():
    layer = NoisyRNN(RINCell(3, recurrent_initializer="zeros"))
    layer.build((None, None, 1))
    matrix = recurrent_matrices(layer)["recurrent"]
    np.testing.assert_array_equal(matrix, np.eye(3))


@pytest.mark.parametrize("stddev", [-0.1, np.nan, "1", None])
def test_stddev_must_be_finite_and_not_negative(stddev):
    with pytest.raises(ValueError, match="`stddev` must be a finite number"):
        NoisyRNN(RINCell(3), stddev)


def test_stacks_are_refused():
    with pytest.raises(ValueError, match="must be a single cell"):
        NoisyRNN([RINCell(3), RINCell(3)])


@pytest.mark.parametrize("cell", first_of([(cell,) for cell in CELLS[::-1]]))
def test_dropout_of_the_cell_is_drawn_anew_at_each_call(cell, rng):
    layer = NoisyRNN(cell(40, dropout=0.5, recurrent_dropout=0.5), stddev=0)
    for batch in (3, 4):
        x = rng.normal(size=(batch, 5, 8)).astype("float32")
        one, other, plain = (
            to_numpy(layer(x, training=training))
            for training in (True, True, False)
        )
        assert np.abs(one - other).max() > 1e-3
        assert_same(plain, layer(x))


def test_a_model_with_dropout_in_its_cell_trains_and_predicts(rng):
    cell = RINCell(4, dropout=0.5, recurrent_dropout=0.5)
    model = keras.Sequential([NoisyRNN(cell), keras.layers.Dense(1)])
    jit_compile = keras.backend.backend() == "jax"
    model.compile("sgd", "mse", jit_compile=jit_compile)
    x = rng.normal(size=(6, 5, 3)).astype("float32")
    for _ in range(2):
        model.fit(x, x[:, 0, :1], batch_size=3, verbose=0)
        assert np.isfinite(model.predict(x, verbose=0)).all()


class Counter(keras.layers.Layer):
    """As little as Keras asks of a cell."""

    state_size = 1

    def call(self, inputs, states):
        return states[0] + 1, [states[0] + 1]


def test_a_cell_needs_no_initial_state_of_its_own():
    assert to_numpy(NoisyRNN(Counter(), stddev=0)(np.zeros((2, 7, 1))))[0] == 7


@pytest.mark.parametrize(
    "shape, message",
    [
        ((2, 3), "expected ndim=3, found ndim=2"),
        ((2, 5, 4), "expected axis -1 of input shape to have value 3"),
    ],
)
def test_inputs_must_fit(shape, message):
    layer = NoisyRNN(RINCell(4))
    layer(np.ones((2, 5, 3)))
    with pytest.raises(ValueError, match=message):
        layer(np.ones(shape))


class StartsAtTen(keras.layers.Layer):
    """A cell with an initial state of its own, which counts from there."""

    state_size = 1

    def get_initial_state(self, batch_size=None):
        return [keras.ops.full((batch_size, 1), 10.0)]

    def call(self, inputs, states):
        return states[0] + 1, [states[0] + 1]


def test_the_initial_state_is_that_of_the_cell():
    x = np.zeros((2, 7, 1), "float32")
    expected = keras.layers.RNN(StartsAtTen())(x)
    assert_same(NoisyRNN(StartsAtTen(), stddev=0)(x), expected)
