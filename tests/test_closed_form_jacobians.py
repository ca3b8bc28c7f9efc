import keras
import numpy as np
import pytest

import keras_rin
from keras_rin.diagnostics import _closed_form_jacobians
from keras_rin.diagnostics._state_map import StateMap
from keras_rin.diagnostics._state_map import state_map
from keras_rin.layers import DeepTransitionRINCell

KNOWN = [
    ("SimpleRNN", {}),
    ("RIN", {}),
    ("LSTM", {}),
    ("LSTM", {"use_bias": False, "recurrent_activation": "hard_sigmoid"}),
    ("LSTM", {"activation": "relu"}),
    ("GRU", {}),
    ("GRU", {"use_bias": False, "activation": None}),
]


class HalfGRUCell(keras.layers.GRUCell):
    def call(self, inputs, states, training=False):
        y, new = super().call(inputs, states, training)
        return 0.5 * y, [0.5 * keras.tree.flatten(new)[0]]


OTHERS = [
    keras.layers.LSTMCell(3, activation="softmax"),
    keras.layers.GRUCell(3, reset_after=False),
    HalfGRUCell(3),
    keras.layers.SimpleRNNCell(3, activation="softmax"),
    DeepTransitionRINCell(3),
]


def drawn(cell, rng):
    cell.build((None, 2))
    for weight in cell.weights:
        weight.assign(rng.normal(size=weight.shape))
    return cell


@pytest.mark.parametrize(
    "dtype, close", [("float32", 1e-5), ("float64", 1e-14)]
)
@pytest.mark.parametrize("kind, options", KNOWN)
def test_the_closed_form_is_the_automatic_derivative(
    rng, kind, options, dtype, close
):
    kinds = keras_rin.layers if kind == "RIN" else keras.layers
    cell = drawn(getattr(kinds, f"{kind}Cell")(5, **options), rng)
    assert _closed_form_jacobians.unit_step(cell)
    with state_map(cell, dtype) as step:
        states = rng.normal(size=(21, step.size)).astype(dtype)
        inputs = rng.normal(size=(21, 2)).astype(dtype)
        found = step.jacobians(states, inputs)
        expected = StateMap(step.cell, dtype).jacobians(states, inputs)
    assert found.dtype == dtype
    np.testing.assert_allclose(found, expected, atol=close)


@pytest.mark.parametrize("cell", OTHERS, ids=lambda cell: type(cell).__name__)
def test_other_cells_are_not_taken_for_these(cell):
    assert _closed_form_jacobians.unit_step(cell) is None
