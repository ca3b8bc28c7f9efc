import keras
import numpy as np
import pytest
from references import built
from references import orthogonal
from references import plane_map
from references import simple_rnn
from references import to_numpy
from scipy import optimize

from keras_rin.diagnostics import fixed_points
from keras_rin.diagnostics import state_trajectories
from keras_rin.layers import RIN

pytestmark = pytest.mark.one_backend


def linear_rin(matrix):
    """h V, in float64."""
    units = len(matrix)
    layer = built(RIN(units, activation=None, dtype="float64"), features=1)
    offset = matrix - np.eye(units)
    layer.set_weights([np.ones((1, units)), offset, np.zeros(units)])
    return layer


def normal_states(rng, units, count=60):
    return rng.normal(size=(count, units))


def counts(points):
    return [
        count.tolist()
        for count in (points.contracting, points.neutral, points.expanding)
    ]


def test_two_units_that_hold_a_bit_each_have_nine_points(rng):
    """h = tanh(2 h) in each: 0 and -0.9575 and 0.9575, by bisection."""
    root = optimize.brentq(lambda h: np.tanh(2 * h) - h, 0.1, 1)
    points = fixed_points(simple_rnn(2 * np.eye(2)), normal_states(rng, 2))
    roots = [-root, 0, root]
    expected = {(round(a, 6), round(b, 6)) for a in roots for b in roots}
    assert {tuple(np.round(s, 6) + 0.0) for s in points.states} == expected
    assert len(points.states) == 9
    at_zero = np.abs(points.states) < 1e-3
    np.testing.assert_array_equal(points.expanding, at_zero.sum(axis=1))
    np.testing.assert_array_equal(points.stable, ~at_zero.any(axis=1))
    assert points.expanding.tolist() == sorted(points.expanding)
    slopes = np.where(at_zero, 2, 2 * (1 - root**2))
    np.testing.assert_allclose(
        points.eigenvalues, -np.sort(-slopes, axis=1), rtol=1e-6
    )
    np.testing.assert_allclose(
        np.einsum("pii->pi", points.jacobians), slopes, rtol=1e-6
    )
    assert (
        str(points)
        == repr(points)
        == (
            "4 stable, 4 saddles (1 expanding direction), 1 source; "
            "60 of 60 searches converged"
        )
    )
    assert (points.dimension == 0).all() and (points.speeds <= 1e-16).all()


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param("LSTM", marks=pytest.mark.each_backend),
        *("GRU", "SimpleRNN"),
    ],
)
def test_the_point_under_an_input_is_where_the_states_converge(rng, kind):
    layer = built(getattr(keras.layers, kind)(4))
    recurrent = layer.cell.recurrent_kernel
    recurrent.assign(0.5 * to_numpy(recurrent))  # it converges in 300 steps
    inputs = rng.normal(size=2)
    trajectory = state_trajectories(
        layer, np.tile(inputs, (1, 300, 1)), dtype="float64"
    )[0]
    points = fixed_points(layer, trajectory[::10], x=inputs)
    assert points.stable.tolist() == [True]
    np.testing.assert_allclose(points.states[0], trajectory[-1], atol=1e-6)


def ring(x, y):
    """Moves to the circle of radius 1, at every angle."""
    growth = 1 + 0.2 * (1 - x**2 - y**2)
    return x * growth, y * growth


def lines(x, y):
    """Attracting lines at x = -1 and x = 1, a repelling one at x = 0."""
    return x + 0.2 * (x - x**3), y


def bistable(x, y):
    """Three isolated points within 0.16, with slopes within 0.01 of 1."""
    return keras.ops.tanh(1.002 * x), 0.5 * y


@pytest.mark.parametrize(
    "function, dimension, expanding, size, kinds",
    [
        (
            ring,
            [1, 0],
            [0, 2],
            lambda states: np.linalg.norm(states, axis=1),
            "1 continuum of dimension 1, 1 source;",
        ),
        (
            lines,
            [1, 1, 1],
            [0, 0, 1],
            lambda states: np.abs(states[:, 0]),
            "2 continua of dimension 1, "
            "1 continuum of dimension 1 (1 expanding direction);",
        ),
        (bistable, [0, 0, 0], [0, 0, 1], None, "2 stable, 1 saddle (1 exp"),
    ],
)
def test_continua_and_points_lie_beside_each_other(
    rng, function, dimension, expanding, size, kinds
):
    states = [[0, 0], *normal_states(rng, 2, 90)]
    points = fixed_points(plane_map(function), states)
    assert points.dimension.tolist() == dimension
    assert points.expanding.tolist() == expanding
    assert str(points).startswith(kinds)
    for members in points.members[:-1] if size else []:
        np.testing.assert_allclose(size(members), 1, atol=1e-6)


def test_slow_points_are_no_fixed_points(rng):
    """h = relu(h) + 1 has none: the speed is 1 wherever h is positive."""
    layer = simple_rnn(np.eye(2), "relu", bias=1.0)
    points = fixed_points(layer, np.abs(normal_states(rng, 2)))
    assert len(points.states) == 0 and points.eigenvalues.shape == (0, 2)
    assert points.members == [] and points.stable.shape == (0,)
    assert str(points) == "no fixed point; 0 of 60 searches converged"
    assert points.unconverged_states.shape == (60, 2)
    np.testing.assert_allclose(points.unconverged_speeds, np.full(60, 2.0))
    points = fixed_points(layer, np.abs(normal_states(rng, 2)), tolerance=3.0)
    assert points.searches.sum() == 60


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"x": [0.0, 1.0]}, r"`x` must have the shape \(1,\)"),
        ({"x": [np.nan]}, "`x` must contain finite"),
        ({"initial_states": np.zeros((4, 3))}, "`initial_states` must have"),
        ({"initial_states": [np.zeros((4, 2))] * 2}, r"\(4, 2\).*\(4, 4\)"),
        ({"initial_states": np.zeros((0, 2))}, r"must have the shape \(1, 2\)"),
        ({"initial_states": [[np.inf, 0]]}, "_states` must contain finite"),
        ({"initial_states": [[1e308, 1e308]]}, "to finite states"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    layer = simple_rnn(np.array([[2.0, 2.0], [2.0, 2.0]]), None)
    usual = {"x": [0.0], "initial_states": np.zeros((1, 2))}
    with pytest.raises(ValueError, match=message):
        fixed_points(layer, **{**usual, **arguments})


def test_the_speed_is_relative_to_the_size_of_the_state():
    cell = plane_map(lambda x, y: (x + 1e-3, y + 1e-3))
    points = fixed_points(cell, [[1e6, 0.0]])
    assert len(points.unconverged_states) == 0


JORDAN = -np.eye(20) + np.eye(20, k=1)
TURN = orthogonal(np.random.default_rng(0), 20)
TURN_6 = orthogonal(np.random.default_rng(1), 6)
CHAIN = -0.9 * np.eye(20) + 3 * np.eye(20, k=1)
ORDER = np.random.default_rng(2).permutation(20)


@pytest.mark.parametrize(
    "matrix, contracting, neutral, dimension",
    [
        (-np.eye(2), 0, 2, 0),
        (np.array([[0.0, 1.0], [-1.0, 0.0]]), 0, 2, 0),
        (TURN, 0, 20, 1),
        # Rounding moves the eigenvalues of a block by eps^(1 / units).
        (JORDAN[:2, :2], 0, 2, 0),
        (JORDAN, 0, 20, 0),
        (TURN.T @ JORDAN @ TURN, 0, 20, 0),
        (CHAIN[np.ix_(ORDER, ORDER)], 20, 0, 0),
        (TURN_6.T @ (0.8 * np.eye(6) + np.eye(6, k=1)) @ TURN_6, 6, 0, 0),
        (np.diag([1, 0.995, 0.5]), 2, 1, 1),
        (np.diag([1, 1, 0.5]), 1, 2, 2),
        (np.eye(3), 0, 3, 3),
        (np.diag([1, -1, 1.5]), 0, 2, 1),
        (np.eye(3) + np.eye(3, k=1), 0, 3, 1),
    ],
)
def test_a_linear_map_has_the_null_space_of_its_matrix(
    rng, float64, matrix, contracting, neutral, dimension
):
    units = len(matrix)
    states = [np.zeros(units), *normal_states(rng, units, 10)]
    points = fixed_points(linear_rin(matrix), states)
    expanding = units - contracting - neutral
    assert counts(points) == [[contracting], [neutral], [expanding]]
    assert points.stable.tolist() == [contracting == units]
    nullity = units - np.linalg.matrix_rank(matrix - np.eye(units))
    assert points.dimension.tolist() == [dimension] == [nullity]
    rest = points.members[0] @ matrix - points.members[0]
    np.testing.assert_allclose(rest, np.zeros_like(rest), atol=1e-8)


@pytest.mark.parametrize(
    "modulus, tolerance, kind, turn",
    [
        (1 - 3e-6, 1e-6, 0, False),
        (1 - 1e-7, 1e-6, 1, True),
        (1 + 1e-7, 1e-6, 1, False),
        (1 + 3e-6, 1e-6, 2, True),
        (1 - 1e-7, 1e-9, 0, True),
        (1 + 1e-7, 1e-9, 2, False),
        (0.9, 0.2, 1, True),
    ],
)
def test_moduli_within_the_tolerance_are_neutral(
    rng, float64, modulus, tolerance, kind, turn
):
    """A scaling by -1 in place of 1, where the fixed point is determined."""
    angle = np.pi - turn
    rotation = [[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]]
    points = fixed_points(
        linear_rin(modulus * np.array(rotation)),
        normal_states(rng, 2, 10),
        modulus_tolerance=tolerance,
    )
    assert counts(points) == [[2 * (k == kind)] for k in range(3)]
    assert points.stable.tolist() == [kind == 0]


DEGENERATE = {
    "double roots": (lambda h: h + h**2 * (h - 1) ** 2, [0, 1]),
    "attracting": (lambda h: h - 0.1 * h**3, [0]),
    "repelling": (lambda h: h + 0.1 * h**3, [0]),
    "attracting from one side": (lambda h: h + h**2, [0]),
    "triple, not at 0": (lambda h: h - (h - 0.7) ** 3, [0.7]),
    "quadruple": (lambda h: h + (h - 0.7) ** 4, [0.7]),
    "quintuple": (lambda h: h - h**5, [0]),
    "period doubling": (lambda h: -h + 0.1 * h**3, [0]),
}


@pytest.mark.parametrize("case", DEGENERATE)
def test_a_degenerate_root_is_one_point_of_a_neutral_direction(case):
    """Beside a direction that contracts."""
    function, roots = DEGENERATE[case]
    cell = plane_map(lambda h, other: (function(h), 0.5 * other))
    sets = [np.random.default_rng(s).normal(size=(60, 2)) for s in range(3)]
    initial_states = np.concatenate(sets)
    initial_states[0] = 0  # a search that begins at a root
    points = fixed_points(cell, initial_states)
    near = np.abs(points.states[:, 0]) < 2  # -h + 0.1 h^3 has others
    order = np.argsort(points.states[near, 0])
    np.testing.assert_allclose(points.states[near][order, 0], roots, atol=0.03)
    assert (points.contracting[near] == 1).all()
    assert (points.neutral[near] == 1).all()
    assert (points.dimension == 0).all() and not points.stable.any()
    assert {len(members) for members in points.members} == {1}
    assert points.searches.sum() + len(points.unconverged_states) == 180


def test_refining_brings_an_eigenvalue_of_1_within_3e_7(rng):
    """tanh(h) - h has a triple root at 0, tanh(h / 2) - h a single one."""
    layer = simple_rnn(np.diag([1, 0.5]))
    points = fixed_points(layer, 0.5 * normal_states(rng, 2, 20))
    assert np.abs(points.eigenvalues[:, 0] - 1).max() < 3e-7
    assert np.abs(points.states[:, 1]).max() < 1e-10
    slow = fixed_points(layer, 0.5 * normal_states(rng, 2, 20), tolerance=1e-8)
    assert np.abs(slow.eigenvalues[:, 0] - 1).max() > 1e-6
    assert (slow.neutral == 1).all()


def test_refining_does_not_move_along_a_continuum(rng):
    """Where weights in float32 are off the identity by 1e-7."""
    layer = simple_rnn(np.diag([1 + 1.2e-7, 0.5]), None)
    states = 0.03 * rng.normal(size=(20, 2)) * [1, 0]
    (members,) = fixed_points(layer, states).members
    expected = np.sort(states[:, 0])
    np.testing.assert_allclose(np.sort(members[:, 0]), expected, rtol=1e-6)
