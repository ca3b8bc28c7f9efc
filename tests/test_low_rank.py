"""Low-rank rate networks, against all active sets and Newton's method."""

import numpy as np
import pytest
from cases import first_of
from references import built
from relu_networks import in_order

from keras_rin.diagnostics import fixed_points
from keras_rin.diagnostics._fixed_points import active_sets
from keras_rin.layers import RateRNN

pytestmark = pytest.mark.one_backend


def rate_network(left, right, drive):
    """relu(h) N M' / units + c, in float64."""
    units, rank = left.shape
    layer = built(
        RateRNN(units, 4.0, activation="relu", rank=rank, dtype="float64"), 1
    )
    layer.set_weights([np.zeros((1, units)), left, right, drive])
    return layer


def drawn(seed):
    """Random, homogeneous, integer, inhibited and nearly silent ones."""
    rng = np.random.default_rng(seed)
    units, rank = int(rng.integers(2, 11)), int(rng.integers(1, 4))
    right = rng.normal(size=(units, rank))
    left = 3 * right + rng.normal(size=(units, rank))
    left *= rng.uniform(0.2, 3)
    drive = 0.5 * rng.normal(size=units)
    kind = seed % 6
    if kind == 1:
        drive = np.zeros(units)
    if kind == 2:
        left, right = rng.integers(-2, 3, size=(2, units, rank)).astype(float)
        drive = rng.integers(-1, 2, size=units).astype(float)
    if kind == 3:  # one of the eigenvalues, of all units, is 1
        left = units * np.linalg.pinv(right).T
    if kind == 4:
        left = -left
    if kind == 5:
        drive -= 3
    return left, right, drive


@pytest.mark.parametrize("seed", first_of(zip(range(150)), 12))
def test_boxes_find_what_all_sets_have(seed, monkeypatch):
    layer = rate_network(*drawn(seed))
    expected = fixed_points(layer, complete=True)
    monkeypatch.setattr(active_sets, "ENUMERATED", -1)
    points = fixed_points(layer, complete=True)
    assert points.evidence.solver == "boxes"
    assert points.dimension.tolist() == expected.dimension.tolist()
    is_isolated = points.dimension == 0
    np.testing.assert_allclose(
        in_order(points.states[is_isolated]),
        in_order(expected.states[expected.dimension == 0]),
        atol=1e-6,
    )
    assert points.neutral.tolist() == expected.neutral.tolist()


def newton(left, right, drive, starts):
    """The fixed points of relu(c + k M') N / units that Newton reaches."""
    units, ends = len(left), []
    for k in starts:
        for _ in range(40):
            is_on = drive + right @ k > 0
            slope = left[is_on].T @ right[is_on] / units
            offset = drive[is_on] @ left[is_on] / units
            new = np.linalg.solve(np.eye(len(k)) - slope, offset)
            if np.abs(new - k).max() < 1e-12:
                ends.append(new)
                break
            k = new
    return np.unique(np.round(ends, 8), axis=0)


@pytest.mark.parametrize(
    "units, rank", first_of([(512, 2), (128, 1), (1_024, 3)])
)
def test_hundreds_of_units_have_the_points_of_many_searches(units, rank):
    """Each point that Newton reaches is one of them."""
    rng = np.random.default_rng(units)
    right = rng.normal(size=(units, rank))
    left = 2.6 * right + 0.3 * rng.normal(size=(units, rank))
    # The mean of the currents inhibits, so that memories are bounded.
    right[:, 0] -= 0.5
    drive = 0.3 * np.ones(units) + 0.1 * rng.normal(size=units)
    starts = rng.normal(size=(400, rank)) * 10 ** rng.uniform(
        -2, 2, size=(400, 1)
    )
    expected = newton(left, right, drive, starts)
    points = fixed_points(rate_network(left, right, drive), complete=True)
    overlaps = np.maximum(points.states, 0) @ left / units
    assert len(expected) > 1
    for k in expected:
        assert np.abs(overlaps - k).max(axis=1).min() < 1e-6
    arguments = overlaps @ right.T + drive
    np.testing.assert_allclose(arguments, points.states, atol=1e-9)
    assert "all of them, from" in str(points) and "boxes" in str(points)


def test_boxes_that_are_left_are_said():
    """Five units with one threshold at the fixed point: either sign each."""
    right = np.repeat([[1.0], [-1.0]], 10, axis=0)
    left = np.repeat([[0.5], [0.0]], 10, axis=0)
    layer = rate_network(20 * left, right, np.repeat([1.0, 0.0], 10))
    points = fixed_points(layer, complete=True, seconds=20)
    text = str(points)
    assert ("not all" in text) == bool(points.evidence.open_branches)
    stopped = fixed_points(layer, complete=True, seconds=0)
    assert stopped.evidence.open_branches and "not all" in str(stopped)


def test_a_parallel_set_has_no_point_far_away():
    """V = I within rounding, and a drive that leaves 0 alone."""
    rng = np.random.default_rng(117)
    right = rng.normal(size=(3, 3))
    left = np.linalg.inv(right).T
    layer = rate_network(3 * left, right, np.array([-0.2, -0.03, -0.2]))
    points = fixed_points(layer, complete=True)
    assert len(points.states) == 1 and points.stable.all()
