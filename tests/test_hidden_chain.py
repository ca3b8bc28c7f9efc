import keras
import numpy as np
import pytest
from references import built
from references import to_numpy
from scipy import special
from scipy import stats

from keras_rin.diagnostics import hidden_chain
from keras_rin.initializers import Chain
from keras_rin.layers import RIN

pytestmark = pytest.mark.one_backend


def with_recurrence(matrix, kind=keras.layers.SimpleRNN, entry=None):
    """A linear layer with this effective matrix, whose input is 1 or enters."""
    units = len(matrix)
    layer = built(kind(units, None), features=1)
    kernel = np.ones((1, units)) if entry is None else np.eye(1, units, entry)
    stored = matrix - np.eye(units) * (kind is RIN)
    layer.cell.set_weights([kernel, stored, np.zeros(units)])
    return layer


def test_the_profile_is_the_mean_over_pairs(rng):
    layer = built(keras.layers.LSTM(6))
    chain = hidden_chain(layer, steps=20, pulse=[1.0, -2.0])
    kernel = to_numpy(layer.cell.recurrent_kernel)
    place = np.argsort(chain.order)
    differences = place[None, :] - place[:, None]
    for g, gate in enumerate(["input", "forget", "cell", "output"]):
        matrix = kernel[:, 6 * g : 6 * g + 6]
        for k, difference in enumerate(chain.difference):
            weights = matrix[differences == difference].astype("float64")
            assert np.isclose(chain.mean_weight[gate][k], weights.mean())
            error = stats.sem(weights) if len(weights) > 1 else np.nan
            np.testing.assert_allclose(chain.standard_error[gate][k], error)


def test_silent_units_are_left_out():
    """A pulse comes first also where a layer reads from the end."""
    options = {"recurrent_initializer": Chain(), "go_backwards": True}
    layer = built(keras.layers.SimpleRNN(6, "relu", **options), features=1)
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
    with pytest.raises(ValueError, match="input matrix.*`kernel`"):
        hidden_chain(cell)


@pytest.mark.parametrize(
    "gain, arguments, error, message",
    [
        (1, {"pulse": [1, 2]}, ValueError, r"`pulse` must have.*\(1,\)"),
        (1, {"pulse": [[1.0]]}, ValueError, r"`pulse` must have.*\(1,\)"),
        (1, {"pulse": [np.nan]}, ValueError, "`pulse` must contain"),
        (1, {"pulse": [1e39]}, ValueError, "be finite in float32"),
        (1, {"pulse": [0.0]}, ValueError, "at least two.*Excited: 0"),
        (1e30, {}, ValueError, "stay finite.*from step"),
        (1, {"rng": 3}, TypeError, "`rng` must be"),
    ],
)
def test_what_has_no_chain_is_refused(gain, arguments, error, message):
    layer = with_recurrence(gain * np.eye(3))
    with pytest.raises(error, match=message):
        hidden_chain(layer, **arguments)


@pytest.mark.parametrize("kind", [keras.layers.SimpleRNN, RIN])
@pytest.mark.parametrize("leak", [0, 0.3, 0.5, 0.75])
def test_a_leaky_chain_is_found_in_its_order(rng, leak, kind):
    """Unit k responds by C(t, k) leak^(t - k), with the sign of (-1)^k."""
    order = rng.permutation(9)
    matrix = np.zeros((9, 9))
    matrix[np.ix_(order, order)] = leak * np.eye(9) - np.eye(9, k=1)
    chain = hidden_chain(with_recurrence(matrix, kind, entry=order[0]))
    t, k = np.arange(101)[:, None], np.arange(9)
    expected = special.binom(t, k) * leak ** np.maximum(t - k, 0.0) * (-1) ** k
    np.testing.assert_allclose(chain.activity[:, order], expected, 1e-3, 1e-9)
    peaks = np.abs(chain.activity).argmax(axis=0)[chain.order]
    assert (np.diff(peaks) >= 0).all() and peaks[0] == 0
    if len(set(peaks)) == 9:  # no ties
        np.testing.assert_array_equal(chain.order, order)
        weights = chain.mean_weight["recurrent"]
        expected = 1.0 * leak * (chain.difference == 0)
        expected -= chain.difference == 1
        np.testing.assert_allclose(weights, expected, atol=1e-7)
