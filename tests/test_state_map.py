import keras
import numpy as np
import pytest
from cases import one_backend_after
from references import ACTIVATIONS
from references import assert_same
from references import built
from references import to_numpy
from scipy import special

from keras_rin.diagnostics import _state_map


def test_a_step_is_that_of_the_cell(rng):
    cell = built(keras.layers.LSTM(3)).cell
    states, x = rng.normal(size=(5, 6)), rng.normal(size=(5, 2))
    parts = [keras.ops.cast(s, "float32") for s in np.split(states, 2, axis=1)]
    _, new = cell(x.astype("float32"), parts)
    expected = np.concatenate([to_numpy(s) for s in new], axis=1)
    with _state_map.state_map(cell, "float64") as step:
        actual = step.next(states, x)
    np.testing.assert_allclose(actual, expected, atol=1e-6)
    assert step.size == 6 and actual.dtype == np.float64


def test_chunks_change_nothing(rng, monkeypatch):
    cell = built(keras.layers.GRU(4)).cell
    states, x = rng.normal(size=(11, 4)), rng.normal(size=(11, 2))
    directions = rng.normal(size=(11, 1, 4))
    with _state_map.state_map(cell, "float64") as step:
        whole = step.directional(states, x, directions)
        for values in (4, 12):
            monkeypatch.setattr(_state_map, "VALUES", values)
            parts = step.directional(states, x, directions)
            assert_same(parts, whole, atol=1e-14)
        columns = np.einsum(
            "sij,skj->ski", step.jacobians(states, x), directions
        )
        many = np.repeat(directions, 3, axis=1)
        _, all_three = step.directional(states, x, many)
    np.testing.assert_allclose(whole[1], columns, atol=1e-14)
    np.testing.assert_allclose(all_three, np.repeat(columns, 3, 1), atol=1e-14)


class CountingCell(keras.layers.Layer):
    """Begins at 5, and counts what it reads."""

    state_size = output_size = 1

    def get_initial_state(self, batch_size=None):
        return [keras.ops.full((batch_size, 1), 5.0)]

    def call(self, inputs, states, training=False):
        return states[0], [states[0] + inputs]


def test_a_trajectory_begins_where_the_cell_says():
    cell = CountingCell()
    cell.build((None, 1))
    with _state_map.state_map(cell, "float32") as step:
        states = step.trajectory(
            np.ones((2, 3, 1), "float32"), np.ones((2, 3), bool)
        )
    np.testing.assert_array_equal(states[..., 0], [[5, 6, 7, 8]] * 2)


def test_layers_within_the_cell_compute_in_float64_too():
    cell = CountingCell()
    cell.inner = keras.layers.Dense(1)
    cell.inner_list = [keras.layers.Dense(1), keras.layers.Dense(1)]
    layers = [cell, cell.inner, *cell.inner_list]
    with pytest.raises(KeyError):
        with _state_map.state_map(cell, "float64"):
            assert {layer.compute_dtype for layer in layers} == {"float64"}
            assert {layer.variable_dtype for layer in layers} == {"float32"}
            raise KeyError
    assert {layer.compute_dtype for layer in layers} == {"float32"}


SELU = 1.0507009873554805, 1.6732632423543772
# In float64, of the activations of Keras that work on each number by itself.
EXACT = {
    **ACTIVATIONS,
    "celu": ACTIVATIONS["elu"],
    "exponential": np.exp,
    "gelu": lambda z: z * special.ndtr(z),
    "hard_shrink": lambda z: np.where(np.abs(z) > 0.5, z, 0),
    "hard_sigmoid": lambda z: np.clip(z / 6 + 0.5, 0, 1),
    "hard_silu": lambda z: z * np.clip(z / 6 + 0.5, 0, 1),
    "hard_tanh": lambda z: np.clip(z, -1, 1),
    "log_sigmoid": special.log_expit,
    "mish": lambda z: z * np.tanh(np.logaddexp(0, z)),
    "relu6": lambda z: np.clip(z, 0, 6),
    "selu": lambda z: (
        SELU[0] * np.where(z > 0, z, SELU[1] * np.expm1(np.minimum(z, 0)))
    ),
    "silu": lambda z: z * special.expit(z),
    "soft_shrink": lambda z: np.sign(z) * np.maximum(np.abs(z) - 0.5, 0),
    "softplus": lambda z: np.logaddexp(0, z),
    "softsign": lambda z: z / (1 + np.abs(z)),
    "sparse_plus": lambda z: np.where(z < 1, np.maximum(z + 1, 0) ** 2 / 4, z),
    "sparse_sigmoid": lambda z: np.clip((z + 1) / 2, 0, 1),
    "squareplus": lambda z: (z + np.sqrt(z**2 + 4)) / 2,
    "tanh_shrink": lambda z: z - np.tanh(z),
}


@pytest.mark.parametrize("activation", one_backend_after(EXACT, 5))
def test_activations_of_keras_are_computed_in_float64(activation):
    if not hasattr(keras.activations, activation):
        pytest.skip("not in this version of Keras")
    layer = built(keras.layers.SimpleRNN(1, activation), features=1)
    layer.set_weights([np.ones((1, 1)), np.zeros((1, 1)), np.zeros(1)])
    z = np.linspace(-8, 8, 401)[:, None]
    with _state_map.state_map(layer.cell, "float64") as step:
        states = step.next(np.zeros_like(z), z)
    np.testing.assert_allclose(states, EXACT[activation](z), 1e-14, 1e-14)


@pytest.mark.parametrize("activation", ["gelu", "leaky_relu", "tanh"])
def test_slopes_of_activations_are_computed_in_float64(activation):
    """J = phi'(z) where V = 1 and there is no input."""
    layer = built(keras.layers.SimpleRNN(1, activation), features=1)
    layer.set_weights([np.ones((1, 1)), np.ones((1, 1)), np.zeros(1)])
    z = np.linspace(-4, 4, 32)[:, None]  # without 0, where there is none
    with _state_map.state_map(layer.cell, "float64") as step:
        slopes = step.jacobians(z, np.zeros_like(z))[:, 0]
    expected = {
        "gelu": special.ndtr(z) + z * np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi),
        "leaky_relu": np.where(z > 0, 1, 0.2),
        "tanh": 1 - np.tanh(z) ** 2,
    }
    np.testing.assert_allclose(slopes, expected[activation], 1e-13, 1e-13)
