"""Cycles of networks with ReLU, against all patterns of activity."""

import itertools

import keras
import numpy as np
import pytest
from cases import first_of
from references import built
from relu_networks import RATE
from relu_networks import network

from keras_rin import diagnostics
from keras_rin.layers import RIN

pytestmark = pytest.mark.one_backend
KINDS = [keras.layers.SimpleRNN, RIN, RATE]


def all_cycles(matrix, drive, period, leak=None):
    """A state of each phase of each cycle, from all patterns of activity."""
    units, states = len(drive), []
    patterns = itertools.product([0.0, 1.0], repeat=units * period)
    patterns = np.reshape(list(patterns), (-1, period, units))
    # s_t = s_0 A_t + b_t in each pattern.
    slopes = np.tile(np.eye(units), (len(patterns), 1, 1))
    offsets = np.zeros((len(patterns), units))
    for t in range(period):
        is_on = patterns[:, t]
        if leak is None:
            slopes = (slopes @ matrix) * is_on[:, None]
            offsets = (offsets @ matrix + drive) * is_on
        else:
            step = is_on[:, :, None] * matrix
            step = (1 - leak) * np.eye(units) + leak * step
            slopes = slopes @ step
            offsets = np.einsum("pi,pij->pj", offsets, step) + leak * drive
    for slope, offset, pattern in zip(slopes, offsets, patterns, strict=True):
        s = np.linalg.solve((np.eye(units) - slope).T, offset)
        path, fits = [s], True
        for t in range(period):
            arguments = s @ matrix + drive if leak is None else s
            fits = fits and ((arguments > 0) == (pattern[t] == 1)).all()
            if leak is None:
                s = np.maximum(arguments, 0)
            else:
                rates = np.maximum(s, 0)
                s = (1 - leak) * s + leak * (rates @ matrix + drive)
            path.append(s)
        if fits and not any(
            np.allclose(path[0], path[k]) for k in range(1, period)
        ):
            states.append(path[0])
    return np.reshape(states, (-1, units))


def rounded(states):
    return sorted(map(tuple, np.round(states, 7) + 0.0))


CASES = [(seed, 2 + seed % 3, 2 + seed % 2) for seed in range(9)]
CASES += [(seed, 3 + seed % 3, 2 + seed % 2) for seed in range(9, 100)]


@pytest.mark.parametrize("seed, units, period", first_of(CASES, 9))
def test_they_are_those_of_all_patterns(seed, units, period):
    rng = np.random.default_rng(seed)
    matrix = 2 * rng.normal(size=(units, units)) / units**0.5
    drive = rng.normal(size=units)
    kind = KINDS[seed % 3]
    leak = None
    if kind is RATE:
        matrix, leak = 4 * matrix, 0.25
    found = diagnostics.cycles(network(matrix, drive, kind), period)
    expected = all_cycles(matrix, drive, period, leak)
    assert len(expected) == period * len(found.states)
    states = found.states.reshape(-1, units)
    np.testing.assert_allclose(rounded(states), rounded(expected), atol=1e-6)
    assert "all of them, from" in str(found)


def planted(units, period=3):
    """A ring of three units that pass on activity, and units that follow."""
    rng = np.random.default_rng(1)
    matrix = 0.3 * rng.normal(size=(units, units)) / units**0.5
    matrix[:, :period] = 0
    for k in range(period):
        matrix[k, [(k + 1) % period, k, (k - 1) % period]] = 2.0, -3.0, -3.0
    drive = np.r_[np.full(period, -0.5), rng.normal(size=units - period)]
    return matrix, drive


@pytest.mark.parametrize(
    "kind, units",
    first_of([(RIN, 6), (RIN, 12), (keras.layers.SimpleRNN, 12)]),
)
def test_a_planted_cycle_is_found_once(kind, units):
    """h = 2 h - 0.5 around the ring: at 0.5 it is held, and not stable."""
    matrix, drive = planted(units)
    found = diagnostics.cycles(network(matrix, drive, kind), 3)
    assert len(found.states) == 1 and not found.stable.any()
    (states,) = found.states
    for before, after in zip(states, np.roll(states, -1, axis=0), strict=True):
        expected = np.maximum(before @ matrix + drive, 0)
        np.testing.assert_allclose(after, expected, atol=1e-12)
    np.testing.assert_allclose(states[:, :3].max(axis=1), 0.5)
    np.testing.assert_allclose(np.abs(found.multipliers[0, 0]), 8)


def test_the_multipliers_are_those_of_automatic_derivatives():
    rng = np.random.default_rng(2)
    matrix = 2 * rng.normal(size=(4, 4)) - 9 * np.eye(4)
    drive = rng.normal(size=4)
    layer = network(matrix, drive, RATE)
    found = diagnostics.cycles(layer, 2)
    assert len(found.states)
    for states, multipliers in zip(
        found.states, found.multipliers, strict=True
    ):
        x = np.zeros((2, 1, 4))
        jacobians = diagnostics.state_jacobians(
            layer, x, initial_states=states, dtype="float64"
        )
        expected = np.linalg.eigvals(jacobians[1, 0] @ jacobians[0, 0])
        np.testing.assert_allclose(
            np.sort(np.abs(multipliers)), np.sort(np.abs(expected)), atol=1e-6
        )


def test_a_continuum_of_cycles_is_one():
    """h to 2 - h in one unit, and 0.5 h in the other."""
    matrix = np.diag([-1.0, 0.5])
    found = diagnostics.cycles(network(matrix, np.array([2.0, 1.0])), 2)
    assert found.dimension.tolist() == [1]
    first, second = found.states[0]
    np.testing.assert_allclose(first + second, [2, 4])
    assert abs(first[0] - 1) > 0.1 and not found.stable.any()


@pytest.mark.parametrize("matrix", [np.eye(3), 0.5 * np.eye(3)])
def test_fixed_points_are_no_cycles(matrix):
    found = diagnostics.cycles(network(matrix, 0.0), 2)
    assert found.states.shape == (0, 2, 3) and found.stable.shape == (0,)
    assert str(found).startswith("no cycle, of period 2; all of them")


def test_a_cycle_of_two_is_none_of_four():
    layer = network(np.array([[-2.0]]), 1.0)
    assert len(diagnostics.cycles(layer, 2).states) == 1
    assert len(diagnostics.cycles(layer, 4).states) == 0


@pytest.mark.parametrize(
    "layer, options, message",
    [
        (RIN(3, "tanh"), {"period": 2}, "`cycles` takes a SimpleRNN"),
        (RIN(3), {"period": 1}, "`period` must be an integer of at least 2"),
        (RIN(3), {"period": 2, "x": [1.0]}, "`x` must have"),
        (RIN(3), {"period": 2, "seconds": -1}, "`seconds` must"),
    ],
)
def test_what_has_no_cycles_is_refused(layer, options, message):
    with pytest.raises(ValueError, match=f"{message}.*Received"):
        diagnostics.cycles(built(layer), **options)
