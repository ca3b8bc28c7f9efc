"""Gates near 0 and 1 in a header in integers, against closed forms."""

import keras
import numpy as np
import pytest
from headers import SANITIZED
from headers import integer_header
from headers import scale_of
from keras import layers
from step_files import run_c

from keras_rin.layers import MinGRU

pytestmark = pytest.mark.one_backend
LAYERS = {"MinGRU": MinGRU, "GRU": layers.GRU, "LSTM": layers.LSTM}


def logit(p):
    return np.log(p / (1 - p))


def one_unit(name, kernel, bias):
    """A layer of one unit that reads one feature and not its state."""
    layer = LAYERS[name](1, return_sequences=True)
    model = keras.Sequential([keras.Input((None, 1)), layer])
    biases = [bias, np.zeros_like(bias)] if name == "GRU" else bias
    weights = [np.array([kernel]), np.array(biases)]
    if name != "MinGRU":
        weights.insert(1, np.zeros((1, len(kernel))))
    layer.set_weights(weights)
    return model


@pytest.mark.parametrize("bias", [-6.8, -8.5, -10, -12.5])
@pytest.mark.parametrize("name", LAYERS)
def test_a_gate_almost_closed_arrives_at_its_candidate(name, bias, tmp_path):
    """h_t = (1 - (1 - z)^t) / 2 of 2 / z steps, where z is from 1e-3 to 4e-6.

    A gate has 15 bits in a product; 8 more, where it is below 2^-10.
    """
    z, tanh = 1 / (1 + np.exp(-bias)), np.arctanh(0.5)
    biases = {
        "MinGRU": [bias, 0.5],
        "GRU": [-bias, 0.0, tanh],
        "LSTM": [logit(z / 2 / 0.99), -bias, np.arctanh(0.99), 20.0],
    }[name]
    model = one_unit(name, np.zeros(len(biases)), biases)
    path = tmp_path / "rin.h"
    integer_header(model, path, np.array([[[-1], [1]]]))
    steps = int(2 / z)
    y = run_c(path, np.zeros((1, steps, 1)))[0][0, :, 0] * scale_of(path)
    expected = (1 - (1 - z) ** np.arange(1, steps + 1)) / 2
    expected = np.tanh(expected) if name == "LSTM" else expected
    assert np.abs(y - expected).max() < 0.01


# Gates that are closed but for x of 1,000, and a candidate of 0.9 x.
OPEN, ATANH = 0.04, np.arctanh(0.9) / 1_000
CLOSED = {
    "MinGRU": ([OPEN, 0.9 / 1_000], [-20.0, 0.0]),
    "GRU": ([-OPEN, 0.0, ATANH], [20.0, 0.0, 0.0]),
    "LSTM": ([OPEN, 0.0, ATANH, 0.0], [-20.0, 20.0, 0.0, 20.0]),
}


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("name", CLOSED)
def test_a_closed_gate_keeps_its_state_for_ever(name, sign, tmp_path):
    """At the end of its range as well, without an overflow."""
    kernel, bias = CLOSED[name]
    candidate = {"MinGRU": 1, "GRU": 2, "LSTM": 2}[name]
    kernel = np.where(np.arange(len(kernel)) == candidate, sign, 1) * kernel
    model = one_unit(name, kernel, bias)
    path, x = tmp_path / "rin.h", np.zeros((2, 100_000, 1))
    x[0, 0], x[1, :1_000] = 1_000, 32_767
    integer_header(model, path, x[:1, :10])
    y = sign * run_c(path, x, SANITIZED)[0][..., 0] * scale_of(path)
    assert not np.ptp(y[:, 1_000:], axis=1).any()
    value = np.tanh(0.9) if name == "LSTM" else 0.9
    np.testing.assert_allclose(y[0, -1], value, atol=2e-3)
    assert y[1, -1] > value


@pytest.mark.parametrize("forget", [0.99, 0.999, 0.9999])
def test_the_cell_of_an_lstm_returns_to_0(forget, tmp_path):
    """After 20 inputs, along 12 time constants of zeros."""
    kernel, bias = [0.4, 0, 0.04, 0], [-20.0, logit(forget), 0, 20]
    model, path = one_unit("LSTM", kernel, bias), tmp_path / "rin.h"
    steps = np.arange(int(12 / (1 - forget)))
    x = np.where(steps < 20, 100, 0)[None, :, None]
    integer_header(model, path, x)
    y = run_c(path, x)[0][0, :, 0] * scale_of(path)
    c = np.minimum(steps + 1, 20)
    c = (1 - forget**c) / (1 - forget) * forget ** np.maximum(steps - 19, 0)
    assert np.abs(y - np.tanh(np.tanh(4) * c)).max() < 0.02
    assert abs(y[-1]) < 0.001
