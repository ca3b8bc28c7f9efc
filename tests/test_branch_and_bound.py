"""Branch and bound over active sets, against references without its code."""

import fractions
import itertools

import keras
import numpy as np
import pytest
from cases import first_of
from references import built
from relu_networks import in_order
from relu_networks import network
from relu_networks import points_by_linear_programs

from keras_rin.diagnostics import fixed_points
from keras_rin.diagnostics._fixed_points import active_sets
from keras_rin.diagnostics._fixed_points import branch_and_bound
from keras_rin.diagnostics._fixed_points import linear_programs
from keras_rin.layers import RIN

pytestmark = pytest.mark.one_backend


@pytest.fixture(params=["simplex", "SciPy"])
def solver(request, monkeypatch):
    if request.param == "SciPy":  # which solves what takes too many pivots
        monkeypatch.setattr(linear_programs, "PIVOTS", 0)


@pytest.fixture
def searches_all(monkeypatch):
    """Networks of any size are searched."""
    monkeypatch.setattr(active_sets, "ENUMERATED", -1)


def exact_solution(matrix, right):
    """x with x matrix = right in rationals, `None` where it is singular."""
    size = len(right)
    rows = [
        [fractions.Fraction(matrix[i][j]) for i in range(size)]
        + [fractions.Fraction(right[j])]
        for j in range(size)
    ]
    for k in range(size):
        pivot = next((i for i in range(k, size) if rows[i][k]), None)
        if pivot is None:
            return None
        rows[k], rows[pivot] = rows[pivot], rows[k]
        rows[k] = [entry / rows[k][k] for entry in rows[k]]
        for i in range(size):
            if i != k:
                factor = rows[i][k]
                pairs = zip(rows[i], rows[k], strict=True)
                rows[i] = [a - factor * b for a, b in pairs]
    return [row[-1] for row in rows]


def exact_points(matrix, drive):
    """The fixed points of regular sets, and whether all sets are regular."""
    units, points, is_regular = len(drive), set(), True
    minus = np.eye(units) - matrix
    for bits in itertools.product([False, True], repeat=units):
        index = np.flatnonzero(bits)
        active = exact_solution(minus[np.ix_(index, index)], drive[index])
        if active is None:
            is_regular = False
            continue
        h = [fractions.Fraction(0)] * units
        for unit, rate in zip(index, active, strict=True):
            h[unit] = rate
        arguments = [
            sum(fractions.Fraction(matrix[i, j]) * h[i] for i in range(units))
            + fractions.Fraction(drive[j])
            for j in range(units)
        ]
        if min(h, default=0) >= 0 and all(
            z <= 0 for z, on in zip(arguments, bits, strict=True) if not on
        ):
            points.add(tuple(round(float(rate), 9) for rate in h))
    return points, is_regular


@pytest.mark.parametrize("seed", range(12))
def test_the_points_are_those_in_exact_rationals(seed, solver, searches_all):
    """With halves as weights, on borders and with singular sets."""
    rng = np.random.default_rng(seed)
    units = 1 + seed % 4
    matrix = rng.integers(-4, 5, size=(units, units)) / 2
    drive = rng.integers(-1, 2, size=units).astype(float)
    found = fixed_points(network(matrix, drive), complete=True)
    expected, is_regular = exact_points(matrix, drive)
    isolated = found.states[found.dimension == 0]
    if is_regular:
        assert not found.dimension.any()
        np.testing.assert_allclose(
            in_order(isolated),
            in_order(np.reshape(list(expected), (-1, units))),
        )
    for state in isolated:
        assert tuple(np.round(state, 9) + 0.0) in expected
    every = points_by_linear_programs(matrix, drive)
    assert (len(every) > 0) == (len(found.states) > 0)
    assert str(found).count("all of them, from")


def drawn_network(rng, units):
    """Regular, singular, low-rank, homogeneous and far ones, and V = I."""
    kind = rng.integers(8)
    matrix = rng.normal(size=(units, units)) * rng.uniform(0.5, 2) / units**0.5
    drive = rng.normal(size=units)
    if kind == 1:  # singular sets and borders
        matrix = rng.integers(-2, 3, size=(units, units)) / 2
        drive = rng.integers(-1, 2, size=units).astype(float)
    if kind == 2:
        left, right = rng.normal(size=(2, units, 1 + units % 2))
        matrix = 3 * left @ right.T / units
    if kind == 3:
        matrix, drive = np.eye(units), -rng.integers(0, 2, units).astype(float)
    if kind == 4:
        drive = np.zeros(units)
    if kind == 5:  # continua that begin at up to 1,000 times the scale
        matrix = np.eye(units) - np.outer(*rng.normal(size=(2, units)))
        far = 10 ** rng.uniform(1, 3) * rng.uniform(size=units)
        drive = far - far @ matrix
        drive -= rng.uniform(size=units) * (rng.random(units) < 0.3)
    if kind == 6:  # a third in float32
        matrix = np.full((units, units), 1 / units).astype("float32")
        drive = rng.integers(-1, 2, size=units).astype(float)
    if kind == 7:  # each subset of units wins
        matrix, drive = 1.3 * np.eye(units) - 1, np.ones(units)
    return matrix.astype("float64"), drive


def described(pieces):
    """The isolated points with their borders, and dimensions of continua."""
    solutions = pieces.solutions()
    return sorted(
        (*np.round(s.states[0], 5) + 0.0, float(s.is_border.sum()))
        for s in solutions
        if not s.dimension
    ), sorted(s.dimension for s in solutions)


@pytest.mark.parametrize(
    "seed, largest",
    first_of([(seed, 7 if seed < 12 else 12) for seed in range(200)], 12),
)
def test_it_finds_what_all_sets_have(seed, largest):
    rng = np.random.default_rng(seed)
    drawn = drawn_network(rng, int(rng.integers(1, largest + 1)))
    layer = active_sets.Network(*drawn, 1e-6)
    reference = active_sets.enumerated(layer)
    pieces, evidence = active_sets.searched(layer)
    assert not evidence.open_branches and evidence.closed == 1
    if len(reference.polyhedra) > active_sets.FEW_POLYHEDRA:
        assert pieces.polyhedra  # which is one, where all units are held
    else:
        assert described(pieces) == described(reference)


def test_two_bits_in_fifteen_units_have_nine_points(solver):
    """Two pairs that inhibit each other, and units that follow them."""
    rng = np.random.default_rng(0)
    matrix = 0.2 * rng.normal(size=(15, 15)) / 15**0.5
    matrix[:, :4] = 0
    matrix[[0, 1, 2, 3], [1, 0, 3, 2]] = -2.0
    drive = np.r_[np.ones(4), rng.normal(size=11)]
    order = rng.permutation(15)
    matrix, drive = matrix[np.ix_(order, order)], drive[order]
    points = fixed_points(network(matrix, drive), complete=True)
    pair = [(1.0, 0.0), (0.0, 1.0), (1 / 3, 1 / 3)]
    place = np.argsort(order)[:4]
    expected = in_order([a + b for a in pair for b in pair])
    np.testing.assert_allclose(in_order(points.states[:, place]), expected)
    arguments = points.states @ matrix + drive
    np.testing.assert_allclose(np.maximum(arguments, 0), points.states)
    assert str(points).startswith(
        "4 stable, 4 saddles (2 expanding directions), "
        "1 saddle (4 expanding directions); all of them, from "
    )
    evidence = points.evidence
    assert evidence.solver == "simplex" and points.sets == 0
    assert 9 < evidence.nodes <= evidence.programs < 2**10


@pytest.mark.parametrize("distance", [10, 100, 1_000])
def test_a_continuum_that_begins_far_away_is_found(
    distance, searches_all, monkeypatch
):
    """h_2 = slope h_1 - 1 from h_1 = 1 / slope on, and none before."""
    slope = 1 / distance
    matrix = np.eye(2) - np.outer([-slope, 1.0], [0.5, 0.5])
    layer = network(matrix, np.full(2, -0.5))
    searched = fixed_points(layer, complete=True)
    monkeypatch.undo()
    for points in searched, fixed_points(layer, complete=True):
        assert points.dimension.tolist() == [0, 1]
        along = np.sort(points.members[-1][:, 0])
        np.testing.assert_allclose(along[0], distance, rtol=1e-6)
        assert along[-1] > 5 * distance


def test_where_all_units_are_held_there_is_one_continuum():
    layer = built(RIN(7, recurrent_initializer="zeros"))
    points = fixed_points(layer, complete=True)
    assert points.dimension.tolist() == [7]


def winners(units=15):
    """Any set of units may be active: 2^15 - 1 fixed points."""
    return network(1.3 * np.eye(units) - 1, 1.0)


def test_a_search_that_is_ended_does_not_say_all(monkeypatch):
    points = fixed_points(winners(), complete=True, seconds=0.3)
    assert points.evidence.open_branches and points.evidence.closed < 1
    text = str(points)
    assert "all of them" not in text and "branches are open after" in text
    solved, point = [], linear_programs.Tableau.point

    def interrupted(*arguments):
        solved.append(arguments)
        if len(solved) == 100:
            raise KeyboardInterrupt
        return point(*arguments)

    monkeypatch.setattr(linear_programs.Tableau, "point", interrupted)
    evidence = fixed_points(winners(), complete=True).evidence
    assert evidence.open_branches and evidence.nodes == 99


def test_a_program_that_is_not_decided_closes_nothing(monkeypatch):
    """It is branched on until all units are decided."""
    point = linear_programs.Tableau.point

    def doubtful(tableau, lower, upper):
        values = point(tableau, lower, upper)
        return np.full(len(lower), np.nan) if values is None else values

    def undecided(cost, rows, lower, upper):
        return np.full(len(lower), np.nan)

    monkeypatch.setattr(linear_programs.Tableau, "point", doubtful)
    monkeypatch.setattr(branch_and_bound, "minimum", undecided)
    layer = active_sets.Network(1.3 * np.eye(3) - 1, np.ones(3), 1e-6)
    pieces, evidence = active_sets.searched(layer)
    assert len(pieces.solutions()) == 7 and evidence.nodes == 15


@pytest.mark.parametrize("seed", range(6))
def test_a_tableau_has_a_point_where_scipy_has_one(seed):
    """With entries of two bounds, of one and of none, and an equation."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(6, 8))
    lower, upper = np.zeros(14), np.full(14, np.inf)
    lower[5:8], upper[3:7] = [0, -np.inf, -np.inf], [2, 2, 2, np.inf]
    lower[8:], upper[8] = rng.normal(size=6), np.inf
    upper[9] = lower[9]
    cost = (np.arange(8) < 5).astype(float)
    tableau = linear_programs.Tableau(rows, cost, np.isinf(lower[:8]))
    zeros = np.zeros(14)
    for index in rng.permutation([0, 1, 2, 3, 4, 10, 11, 12]):
        values = tableau.copy().point(lower, upper)
        exists = linear_programs.minimum(zeros, rows, lower, upper) is not None
        assert (values is not None) == exists
        if not exists:
            break
        np.testing.assert_allclose(rows @ values[:8], values[8:], atol=1e-9)
        assert (values >= lower - 1e-8).all()
        assert (values <= upper + 1e-8).all()
        upper[index] = lower[index] + 0.5 * rng.random()
    assert not exists


def test_a_bar_shows_the_share_that_is_closed(monkeypatch, capsys):
    monkeypatch.setattr(branch_and_bound, "QUIET", -1.0)
    fixed_points(winners(), complete=True, seconds=0.2)
    assert "/100" in capsys.readouterr().out
    layer = network(1.3 * np.eye(3) - 1, 1.0)
    monkeypatch.setattr(active_sets, "ENUMERATED", -1)
    fixed_points(layer, complete=True)
    assert "100/100" in capsys.readouterr().out


def test_a_layer_of_keras_is_searched_in_float32():
    keras.utils.set_random_seed(0)
    layer = keras.layers.SimpleRNN(
        16, "relu", bias_initializer=keras.initializers.RandomNormal(stddev=1)
    )
    built(layer)
    points = fixed_points(layer, complete=True)
    assert not points.evidence.open_branches
    assert points.speeds.max(initial=0) < 1e-20
