"""All fixed points of residual units, against a program for each set."""

import itertools

import numpy as np
import pytest
from cases import first_of
from references import built
from relu_networks import in_order
from scipy import optimize
from scipy.sparse import csgraph

from keras_rin.diagnostics import fixed_points
from keras_rin.diagnostics._fixed_points import active_sets
from keras_rin.layers import ResidualRNN

pytestmark = pytest.mark.one_backend


def residual_layer(kernel, recurrent, output, bias):
    """A layer that computes h + relu(x W + h U + b) V in float64."""
    units, inner_units = recurrent.shape
    layer = ResidualRNN(units, inner_units, dtype="float64")
    built(layer, len(kernel))
    layer.set_weights([kernel, recurrent, output, bias])
    return layer


class Reference:
    """The sets of active inner units that have a state, by linear programs.

    In each all arguments are above 0; `margin` is the last variable.
    """

    def __init__(self, recurrent, output, drive):
        self.recurrent, self.output, self.drive = recurrent, output, drive
        bits = itertools.product([False, True], repeat=len(drive))
        sets = [np.array(is_active) for is_active in bits]
        solved = [(on, self.point([on], 1.0)) for on in sets]
        self.sets = [
            (on, point[:-1])
            for on, point in solved
            if point is not None and (not on.any() or point[-1] > 1e-7)
        ]

    def point(self, sets, margin=0.0, direction=None):
        """A state in all of these sets, as far along a direction as it is."""
        units = len(self.recurrent)
        equations, right, rows, limits = [], [], [], []
        for on in sets:
            product = self.recurrent[:, on] @ self.output[on]
            equations.append(product.T)
            right.append(-self.drive[on] @ self.output[on])
            signs = np.where(on, 1, -1)
            slopes = -(signs * self.recurrent).T
            rows.append(np.column_stack([slopes, 1.0 * on]))
            limits.append(signs * self.drive)
        equations = np.concatenate(equations)
        zeros = np.zeros((len(equations), 1))
        cost = np.zeros(units + 1)
        cost[-1] = -1
        if direction is not None:
            cost[:-1] = -direction
        result = optimize.linprog(
            cost,
            np.concatenate(rows),
            np.concatenate(limits),
            np.hstack([equations, zeros]),
            np.concatenate(right),
            bounds=[(-100, 100)] * units + [(0, margin)],
        )
        return result.x if result.status == 0 else None

    def dimension(self, on):
        """Of the affine hull of the states of a set."""
        rng = np.random.default_rng(0)
        points = []
        for direction in rng.normal(size=(6, len(self.recurrent))):
            for sign in 1, -1:
                points.append(self.point([on], 0.0, sign * direction)[:-1])
        return np.linalg.matrix_rank(np.array(points) - points[0], tol=1e-5)

    def groups(self):
        """The dimension and the state of each connected group of sets."""
        count = len(self.sets)
        links = np.zeros((count, count), bool)
        for i, j in itertools.combinations(range(count), 2):
            pair = self.sets[i][0], self.sets[j][0]
            links[i, j] = self.point(pair) is not None
        number, labels = csgraph.connected_components(links, directed=False)
        dimensions = [self.dimension(on) for on, _ in self.sets]
        for group in range(number):
            members = np.flatnonzero(labels == group)
            k = max(members, key=lambda member: dimensions[member])
            yield int(dimensions[k]), self.sets[k][1]


def drawn(seed):
    """U, V and c: regular, of halves, without a drive, and of few units."""
    rng = np.random.default_rng(seed)
    units, inner_units = int(rng.integers(1, 4)), int(rng.integers(2, 9))
    recurrent = rng.normal(size=(units, inner_units))
    output = rng.normal(size=(inner_units, units))
    drive = rng.normal(size=inner_units) - 0.5
    kind = seed % 5
    if kind == 1:
        recurrent = rng.integers(-2, 3, size=recurrent.shape) / 2
        output = rng.integers(-2, 3, size=output.shape) / 2
        drive = rng.integers(-2, 2, size=inner_units) / 2
    if kind == 2:
        drive[:] = 0
    if kind == 3:  # pairs cancel each other
        half = inner_units // 2
        output[half : 2 * half] = -output[:half]
        recurrent[:, half : 2 * half] = recurrent[:, :half]
        drive[half : 2 * half] = drive[:half]
    if kind == 4:  # a unit that nothing reads or writes
        recurrent[0], output[:, 0] = 0, 0
    return recurrent, output, drive


@pytest.mark.parametrize("seed", first_of(zip(range(100)), 20))
def test_they_are_those_of_a_program_for_each_set(seed):
    recurrent, output, drive = drawn(seed)
    x = np.array([0.5, -1.0])
    kernel = np.random.default_rng(seed).normal(size=(2, len(drive)))
    layer = residual_layer(kernel, recurrent, output, drive - x @ kernel)
    points = fixed_points(layer, x=x, complete=True)
    expected = list(Reference(recurrent, output, drive).groups())
    assert sorted(points.dimension) == sorted(size for size, _ in expected)
    isolated = [state for size, state in expected if not size]
    np.testing.assert_allclose(
        in_order(points.states[points.dimension == 0]),
        in_order(np.reshape(isolated, (-1, len(recurrent)))),
        atol=1e-6,
    )
    for members in points.members:
        inner = np.maximum(members @ recurrent + drive, 0)
        size = 1 + np.abs(members).max()
        np.testing.assert_allclose(inner @ output / size, 0, atol=1e-5)
    assert "all of them, from" in str(points)
    check_jacobians(points, recurrent, output, drive)


def check_jacobians(points, recurrent, output, drive, small=1e-6):
    """J[i, j] = d F_i / d h_j, by differences, where no unit is at a border."""
    pairs = zip(points.states, points.jacobians, strict=True)
    for state, jacobian in pairs:
        steps = state + small * np.vstack([np.eye(len(state)), 0 * state])
        arguments = steps @ recurrent + drive
        if np.abs(arguments).min() > 1e-4:
            steps = steps + np.maximum(arguments, 0) @ output
            slopes = (steps[:-1] - steps[-1]) / small
            np.testing.assert_allclose(jacobian.T, slopes, atol=1e-4)


# One bit in one number: a pulse of 1 or -1 takes it to 1 or -1, in one step.
FLIP_FLOP = {
    "kernel": np.array([[2.0, 2.0, -2.0, -2.0]]),
    "recurrent": np.array([[-1.0, -1.0, 1.0, 1.0]]),
    "output": np.array([[1.0], [1.0], [-1.0], [-1.0]]) / 2,
    "bias": np.full(4, -1.0),
}


@pytest.mark.parametrize("x, low", [(0.0, -1.0), (1.0, 1.0), (-1.0, -3.0)])
def test_a_flip_flop_rests_between_its_bits(x, low):
    """From -1 to 1; under a pulse from the bit of the pulse outwards."""
    layer = residual_layer(**FLIP_FLOP)
    points = fixed_points(layer, x=[x], complete=True)
    assert str(points).startswith("1 continuum of dimension 1; all of them")
    members = set(points.members[0][:, 0].round(9))
    assert members == {low, low + 1, low + 2}
    np.testing.assert_allclose(points.states, [[low + 1]])
    assert points.jacobians.tolist() == [[[1]]]
    assert points.neutral.tolist() == [1] and not points.stable.any()


def test_active_units_that_cancel_hold_a_saddle():
    """relu(h) - relu(2 h - 1) is 0 at h = 1, and silent below 0."""
    layer = residual_layer(
        np.zeros((1, 2)),
        np.array([[1.0, 2.0]]),
        np.array([[1.0], [-1.0]]),
        np.array([0.0, -1.0]),
    )
    points = fixed_points(layer, complete=True)
    assert points.dimension.tolist() == [0, 1]
    np.testing.assert_allclose(points.states[0], [1.0])
    # h + (1 - 2) (h - 1): it goes to 1 in one step.
    np.testing.assert_allclose(points.eigenvalues[0], [0.0], atol=1e-12)
    assert points.stable.tolist() == [True, False]
    members = points.members[1][:, 0]
    np.testing.assert_allclose([members.min(), members.max()], [-10, 0])


def test_searches_find_no_other_and_faces_do_not_count():
    """Each face of the silent states has a set of active units, of rate 0."""
    rng = np.random.default_rng(1)
    recurrent = rng.normal(size=(4, 16)) / 2
    output = rng.normal(size=(16, 4)) / 4
    layer = residual_layer(
        np.zeros((1, 16)), recurrent, output, np.full(16, -0.5)
    )
    network = active_sets.ResidualNetwork(
        recurrent, np.full(16, -0.5), 1e-6, output
    )
    pieces, _ = active_sets.searched(network)
    assert [silent.dimension for silent in pieces.polyhedra] == [4]
    points = np.concatenate([point.states for point in pieces.isolated])
    assert len(points) == 4
    starts = np.concatenate([10 * rng.normal(size=(100, 4)), points])
    searched = fixed_points(layer, starts + 0.01).states
    is_silent = (searched @ recurrent - 0.5 <= 1e-6).all(axis=1)
    np.testing.assert_allclose(
        in_order(searched[~is_silent]),
        in_order(points),
        atol=1e-6,
    )
