import keras
import numpy as np
import pytest

from keras_rin.diagnostics._fixed_point_search import Search
from keras_rin.diagnostics._state_map import state_map

pytestmark = pytest.mark.one_backend


def searched(rng, slopes, tolerance):
    """Points where the searches end, before and after they are refined."""
    layer = keras.layers.SimpleRNN(len(slopes), "tanh")
    layer.build((None, None, 1))
    kernel, _, bias = layer.get_weights()
    layer.set_weights([kernel, np.diag(slopes), bias])
    initial_states = 0.5 * rng.normal(size=(20, len(slopes)))
    with state_map(layer.cell, "float64") as step:
        search = Search(step, np.zeros(1), tolerance, 100)
        states, speeds = search.minimize(search.check(initial_states))
        assert search.has_converged(states, speeds).all()
        return states, search.refine(states, speeds)


def test_refining_brings_an_eigenvalue_of_1_within_3e_7(rng):
    """tanh(h) - h has a triple root at 0, tanh(h / 2) - h a single one."""
    states, (refined, speeds) = searched(rng, [1, 0.5], 1e-16)
    assert np.tanh(states[:, 0]).max() ** 2 > 1e-6
    assert np.tanh(refined[:, 0]).max() ** 2 < 3e-7
    assert np.abs(refined[:, 1]).max() < 1e-10
    assert speeds.max() < 1e-20


def test_slow_points_that_are_asked_for_stay(rng):
    states, (refined, _) = searched(rng, [1, 0.5], 1e-8)
    np.testing.assert_array_equal(states, refined)


def test_refining_does_not_move_along_a_continuum(rng):
    """Where weights in float32 are off the identity by 1e-7."""
    layer = keras.layers.SimpleRNN(2, None)
    layer.build((None, None, 1))
    kernel, _, bias = layer.get_weights()
    layer.set_weights([kernel, np.diag([1 + 1.2e-7, 0.5]), bias])
    states = 0.03 * rng.normal(size=(20, 2)) * [1, 0]
    with state_map(layer.cell, "float64") as step:
        search = Search(step, np.zeros(1), 1e-16, 100)
        refined, _ = search.refine(states, search.minimize(states)[1])
    np.testing.assert_allclose(refined, states, rtol=1e-6)
