"""Branches of fixed points, against all fixed points at many inputs."""

import keras
import numpy as np
import pytest
from cases import first_of
from references import built
from relu_networks import RATE
from relu_networks import in_order
from relu_networks import network

from keras_rin import diagnostics
from keras_rin.diagnostics._fixed_points import active_sets
from keras_rin.layers import RIN

pytestmark = pytest.mark.one_backend
KINDS = [keras.layers.SimpleRNN, RIN, RATE]
SCALAR = [
    # V, what is beside u = 0.375, and the states at u = 0.5 and at u = 0.25.
    (2.0, ["fold", "fold"], [], [0.0, 0.5]),
    (0.5, ["persistence", "persistence"], [1.0], [0.0]),
    (1.0, ["singular", "degenerate", "degenerate"], [], [0.0]),
]


def along(matrix, begin, end, **options):
    """The branches of relu(h V + x) with x from one drive to the other."""
    layer = network(matrix, 0.0, options.pop("kind", keras.layers.SimpleRNN))
    return diagnostics.fixed_point_branches(layer, begin, end, **options)


@pytest.mark.parametrize("gain, ends, above, below", SCALAR)
def test_one_unit_has_a_fold_a_switch_or_a_vertical_line(
    gain, ends, above, below
):
    """h = relu(V h + 4 u - 1.5), where the argument passes 0 at 0.375."""
    branches = along(np.array([[gain]]), [-1.5], [2.5])
    at_switch = np.isclose(branches.intervals, 0.375)
    names = np.array(branches.ends)[at_switch]
    assert sorted(names.tolist()) == sorted(ends)
    assert set(branches.switching[at_switch].tolist()) <= {0, -1}
    for u, expected in (0.5, above), (0.25, below):
        states = np.sort(branches.states_at(u).ravel())
        np.testing.assert_allclose(states, expected, atol=1e-12)
    is_vertical = np.ptp(branches.intervals, axis=1) == 0
    assert is_vertical.sum() == branches.dimension.sum() == (gain == 1)
    assert branches.stable.sum() == 1 + (gain < 1)


CASES = [(seed, 2 + seed % 5) for seed in range(9)]
CASES += [(seed, 3 + seed % 6) for seed in range(9, 40)] + [(40, 16)]


@pytest.mark.parametrize("seed, units", first_of(CASES, 9))
def test_they_are_the_fixed_points_at_twenty_inputs(seed, units):
    rng = np.random.default_rng(seed)
    matrix = 1.6 * rng.normal(size=(units, units)) / units**0.5
    begin, end = rng.normal(size=(2, units))
    kind = KINDS[seed % 3]
    branches = along(matrix, begin, end, kind=kind)
    layer = network(matrix, 0.0, kind)
    assert "all of them, from" in str(branches)
    for u in rng.uniform(size=20):
        x = (1 - u) * begin + u * end
        points = diagnostics.fixed_points(layer, x=x, complete=True)
        states = branches.states_at(u)
        assert len(states) == len(points.states)
        np.testing.assert_allclose(
            in_order(states), in_order(points.states), atol=1e-7
        )
        low, high = branches.intervals.T
        crossing = (low <= u) & (u <= high)
        assert branches.stable[crossing].sum() == points.stable.sum()


@pytest.mark.parametrize("seed", range(4))
def test_a_fold_joins_two_pieces_on_one_side_and_a_switch_on_two(seed):
    rng = np.random.default_rng(seed)
    matrix = 1.3 * np.eye(4) - 1 + 0.3 * rng.normal(size=(4, 4))
    begin, end = 1 + 5 * np.eye(4)[:2]  # one unit wins, then another
    branches = along(matrix, begin, end)
    names = np.array(branches.ends)
    assert (names == "fold").any()
    ends = branches.states.reshape(-1, 4)
    # Whether an end is the lower or the upper one of its piece.
    sides = np.tile([0, 1], len(branches.ends))
    us = branches.intervals.ravel()
    for k, name in enumerate(names.ravel()):
        same = np.isclose(us, us[k]) & np.isclose(ends, ends[k]).all(axis=1)
        same[k] = False
        if name in ("fold", "persistence"):
            (other,) = np.flatnonzero(same)
            assert (sides[other] == sides[k]) == (name == "fold")


def test_a_continuum_over_an_interval_is_a_piece_of_a_dimension():
    """A unit that holds any value, and one that follows the input."""
    branches = along(np.diag([1.0, 0.5]), [0.0, 1.0], [0.0, 2.0])
    assert branches.dimension.tolist() == [1]
    np.testing.assert_allclose(branches.intervals, [[0, 1]], atol=1e-6)
    np.testing.assert_allclose(branches.states[0, :, 1], [2, 4], atol=1e-5)
    assert not branches.stable.any()


def test_a_continuum_at_one_input_is_vertical():
    """A unit that holds any value where another one allows u = 1 alone."""
    branches = along(np.diag([1.0, 2.0]), [0.0, 1.0], [0.0, 0.0])
    assert branches.intervals.tolist() == [[1, 1]]
    assert branches.dimension.tolist() == [1]
    assert np.ptp(branches.states[0, :, 0]) > 1


def test_the_ends_of_a_line_are_checked():
    layer = built(RIN(3))
    for ends, name in (
        (([0.0], [1.0, 0.0]), "x_from"),
        (
            ([0.0, 1.0], [1.0]),
            "x_to",
        ),
    ):
        with pytest.raises(ValueError, match=f"`{name}` must .*Received"):
            diagnostics.fixed_point_branches(layer, *ends)
    with pytest.raises(ValueError, match="`fixed_point_branches` takes"):
        diagnostics.fixed_point_branches(built(RIN(3, "tanh")), [0, 0], [1, 1])
    assert active_sets.ENUMERATED < 16  # so that 16 units are searched
