import keras
import numpy as np
import pytest
from witnesses import to_numpy

from keras_rin.diagnostics import state_map

LSTM = keras.layers.LSTM


def built(layer, features=2):
    layer.build((None, None, features))
    return layer.cell


def test_a_step_is_that_of_the_cell(rng):
    cell = built(LSTM(3))
    states, x = rng.normal(size=(5, 6)), rng.normal(size=(5, 2))
    parts = [keras.ops.cast(s, "float32") for s in np.split(states, 2, axis=1)]
    _, new = cell(x.astype("float32"), parts)
    expected = np.concatenate([to_numpy(s) for s in new], axis=1)
    with state_map.state_map(cell, "float64") as step:
        found = step.next(states, x)
    np.testing.assert_allclose(found, expected, atol=1e-6)
    assert step.size == 6 and found.dtype == np.float64


def test_chunks_change_nothing(rng, monkeypatch):
    cell = built(keras.layers.GRU(4))
    states, x = rng.normal(size=(11, 4)), rng.normal(size=(11, 2))
    directions = rng.normal(size=(11, 1, 4))
    with state_map.state_map(cell, "float64") as step:
        whole = step.along(states, x, directions)
        for values in (4, 12):
            monkeypatch.setattr(state_map, "VALUES", values)
            parts = step.along(states, x, directions)
            for one, other in zip(whole, parts, strict=True):
                np.testing.assert_allclose(one, other, atol=1e-14)
        columns = np.einsum(
            "sij,skj->ski", step.jacobians(states, x), directions
        )
        many = np.repeat(directions, 3, axis=1)
        _, all_three = step.along(states, x, many)
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
    with state_map.state_map(cell, "float32") as step:
        found = step.trajectory(np.ones((2, 3, 1), "float32"))
    np.testing.assert_array_equal(found[..., 0], [[5, 6, 7, 8]] * 2)


def test_layers_within_the_cell_compute_in_float64_too():
    cell = CountingCell()
    cell.inner = keras.layers.Dense(1)
    cell.several = [keras.layers.Dense(1), keras.layers.Dense(1)]
    every = [cell, cell.inner, *cell.several]
    with pytest.raises(KeyError):
        with state_map.state_map(cell, "float64"):
            assert {one.compute_dtype for one in every} == {"float64"}
            assert {one.variable_dtype for one in every} == {"float32"}
            raise KeyError
    assert {one.compute_dtype for one in every} == {"float32"}
