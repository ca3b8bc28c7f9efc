import keras
import numpy as np
import pytest
from references import built
from references import to_numpy
from scipy import special

from keras_rin.diagnostics import hidden_chain
from keras_rin.initializers import Chain
from keras_rin.layers import RIN

pytestmark = pytest.mark.one_backend


def with_recurrence(matrix, layer=keras.layers.SimpleRNN, **kwargs):
    """A linear layer with this effective matrix and ones at its input."""
    layer = layer(len(matrix), None, kernel_initializer="ones", **kwargs)
    built(layer, features=1)
    kernel, _, bias = layer.cell.get_weights()
    stored = matrix - np.eye(len(matrix)) * isinstance(layer, RIN)
    layer.cell.set_weights([kernel, stored, bias])
    return layer


def entering_at(layer, unit):
    kernel, recurrent, bias = layer.cell.get_weights()
    layer.cell.set_weights([np.eye(1, len(bias), unit), recurrent, bias])
    return layer


def test_the_profile_is_the_mean_over_pairs(rng):
    layer = built(keras.layers.LSTM(6))
    chain = hidden_chain(layer, steps=20, pulse=[1.0, -2.0])
    kernel = to_numpy(layer.cell.recurrent_kernel)
    place = {unit: p for p, unit in enumerate(chain.order)}
    for g, gate in enumerate(["input", "forget", "cell", "output"]):
        matrix = kernel[:, 6 * g : 6 * g + 6]
        pairs = {}
        for i in range(6):
            for j in range(6):
                pairs.setdefault(place[j] - place[i], []).append(matrix[i, j])
        for k, difference in enumerate(chain.difference):
            weights = np.array(pairs[difference])
            assert np.isclose(chain.mean_weight[gate][k], weights.mean())
            error = chain.standard_error[gate][k]
            if len(weights) == 1:
                assert np.isnan(error)
            else:
                expected = np.sqrt(weights.var(ddof=1) / len(weights))
                assert np.isclose(error, expected)


def test_units_are_ordered_by_the_peak_of_their_absolute_response(rng):
    matrix = rng.normal(size=(7, 7))[::-1, ::-1]
    matrix = matrix * 0.98 / np.abs(np.linalg.eigvals(matrix)).max()
    layer = with_recurrence(matrix)
    chain = hidden_chain(layer, steps=30)
    h, states = np.ones(7), []
    for _ in range(31):
        states.append(h)
        h = h @ matrix
    np.testing.assert_allclose(chain.activity, states, atol=1e-4)
    peaks = np.abs(states).argmax(axis=0)
    assert (np.diff(peaks[chain.order]) >= 0).all()
    assert (np.diff(peaks) < 0).any()


def test_silent_units_are_left_out():
    layer = keras.layers.SimpleRNN(6, "relu", recurrent_initializer=Chain())
    built(layer, features=1)
    kernel = np.array([[1, 1, -1, -1, -1, -1]], "float32")
    _, recurrent, bias = layer.cell.get_weights()
    layer.cell.set_weights([kernel, recurrent, bias])
    assert set(hidden_chain(layer, steps=1).order) == {0, 1, 2}


def test_ties_are_drawn_by_lot():
    layer = with_recurrence(np.zeros((30, 30)))
    orders = {
        tuple(hidden_chain(layer, steps=1, rng=rng).order)
        for rng in (*map(np.random.default_rng, range(3)), None, None)
    }
    assert len(orders) == 3  # of seed 0 without `rng`


def test_a_cell_without_an_input_kernel_is_refused():
    cell = keras.layers.SimpleRNNCell(3)
    cell.build((None, 1))
    vars(cell).pop("kernel")
    with pytest.raises(ValueError, match="has no input kernel"):
        hidden_chain(cell)


def test_the_policy_is_that_of_the_layer():
    layer = with_recurrence(0.5 * np.eye(3, k=1) + 0.1 * np.eye(3))
    expected = hidden_chain(layer, steps=5, pulse=[1e5]).activity
    keras.config.set_dtype_policy("mixed_float16")
    try:
        activity = hidden_chain(layer, steps=5, pulse=[1e5]).activity
    finally:
        keras.config.set_dtype_policy("float32")
    np.testing.assert_array_equal(activity, expected)


@pytest.mark.parametrize(
    "gain, arguments, error, message",
    [
        (1, {"pulse": [1, 2]}, ValueError, r"`pulse` must have.*\(1,\)"),
        (1, {"pulse": [[1.0]]}, ValueError, r"`pulse` must have.*\(1,\)"),
        (1, {"pulse": [np.nan]}, ValueError, "`pulse` must contain"),
        (1, {"pulse": [1e39]}, ValueError, "is not finite"),
        (1, {"pulse": [0.0]}, ValueError, "at least two.*Excited: 0"),
        (1e30, {}, ValueError, "is not finite.*steps=100"),
        (1, {"steps": 0}, ValueError, "`steps` must be an integer"),
        (1, {"rng": 3}, TypeError, "`rng` must be"),
    ],
)
def test_what_has_no_chain_is_refused(gain, arguments, error, message):
    layer = with_recurrence(gain * np.eye(3))
    with pytest.raises(error, match=message):
        hidden_chain(layer, **arguments)


@pytest.mark.parametrize("layer", [keras.layers.SimpleRNN, RIN])
@pytest.mark.parametrize("leak", [0, 0.3, 0.5, 0.75])
def test_a_leaky_chain_is_found_in_its_order(rng, leak, layer):
    """Unit k responds by C(t, k) leak^(t - k), largest near k / (1 - leak)."""
    order = rng.permutation(9)
    chain = leak * np.eye(9) + np.eye(9, k=1)
    matrix = np.zeros((9, 9))
    matrix[np.ix_(order, order)] = chain
    layer = entering_at(with_recurrence(matrix, layer), order[0])
    found = hidden_chain(layer)
    t, k = np.arange(101)[:, None], np.arange(9)
    expected = special.binom(t, k) * leak ** np.maximum(t - k, 0.0)
    np.testing.assert_allclose(found.activity[:, order], expected, 1e-3, 1e-9)
    peaks = found.activity.argmax(axis=0)[found.order]
    assert (np.diff(peaks) >= 0).all() and peaks[0] == 0
    if len(set(peaks)) == 9:  # no ties
        np.testing.assert_array_equal(found.order, order)
        weights = found.mean_weight["recurrent"]
        expected = leak * (found.difference == 0) + (found.difference == 1)
        np.testing.assert_allclose(weights, expected, atol=1e-7)
