"""Fixed points of a recurrent layer under a constant input."""

import operator
import typing

import keras
import numpy as np
from numpy.typing import ArrayLike

from keras_rin import _arguments
from keras_rin._layer_walk.layers import feature_count
from keras_rin.diagnostics._built_cell import built_cell
from keras_rin.diagnostics._built_cell import check_weights
from keras_rin.diagnostics._dynamics.state_map import state_map
from keras_rin.diagnostics._fixed_points import active_sets
from keras_rin.diagnostics._fixed_points import kinds
from keras_rin.diagnostics._fixed_points.branch_and_bound import SearchEvidence
from keras_rin.diagnostics._fixed_points.low_rank import LARGEST_RANK
from keras_rin.diagnostics._fixed_points.low_rank import low_rank_fixed_points
from keras_rin.diagnostics._fixed_points.minimization import Search
from keras_rin.diagnostics._fixed_points.minimization import minus_identity
from keras_rin.diagnostics._fixed_points.minimization import speed_scale
from keras_rin.diagnostics._fixed_points.threshold_linear import (
    threshold_linear,
)

# Searches end at various distances from a degenerate root. Points within this
# multiple of `distance` are therefore a single root and no continuum.
SAME_ROOT = 300


class FixedPoints(typing.NamedTuple):
    """What `fixed_points` returns, an entry for each fixed point.

    Stable points come first, the others by the number of expanding
    directions. Its line is how many there are of each kind.

    Attributes:
        states: Array `(points, state)`.
        speeds: Array `(points,)`.
        jacobians: Array `(points, state, state)`, J[i, j] = d F_i / d s_j.
        eigenvalues: Complex array `(points, state)`, those of the Jacobian,
            the largest modulus first.
        contracting: Integer array `(points,)`, the number of directions.
        neutral: Integer array `(points,)`, the number of directions.
        expanding: Integer array `(points,)`, the number of directions.
        dimension: Integer array `(points,)`, 0 for an isolated point, for a
            continuum the number of directions along it, all of them neutral.
        members: List of arrays `(members, state)`, the states of one
            continuum, the only state of an isolated point.
        searches: Integer array `(points,)`, how many searches ended there; 0
            with `complete=True`.
        unconverged_states: Array `(searches, state)`, where the searches end
            that did not converge.
        unconverged_speeds: Array `(searches,)`, the speeds there.
        sets: Integer, how many sets of active units were solved, with
            `complete=True` and up to 14 units of another layer than a
            ResidualRNN: these are all fixed points. Else 0.
        evidence: A `SearchEvidence`, with `complete=True` and more units or a
            ResidualRNN: what the search did, and whether these are all fixed
            points. Else `None`.
    """

    states: np.ndarray
    speeds: np.ndarray
    jacobians: np.ndarray
    eigenvalues: np.ndarray
    contracting: np.ndarray
    neutral: np.ndarray
    expanding: np.ndarray
    dimension: np.ndarray
    members: list[np.ndarray]
    searches: np.ndarray
    unconverged_states: np.ndarray
    unconverged_speeds: np.ndarray
    sets: int = 0
    evidence: SearchEvidence | None = None

    @property
    def stable(self) -> np.ndarray:
        """Whether all directions of a point contract, Boolean `(points,)`."""
        return (self.neutral == 0) & (self.expanding == 0)

    @property
    def kinds(self) -> list[str]:
        """The kind of each point.

        `"stable"`, `"neutral"`, `"saddle"`, `"source"` or `"continuum"`.
        """
        return kinds.kinds(self, self.contracting)

    def __repr__(self):
        text = kinds.counts_of_kinds(self, self.contracting) or "no fixed point"
        if self.sets:
            return f"{text}; all of them, from {self.sets:,} active sets"
        if self.evidence:
            return f"{text}; {self.evidence}"
        converged = self.searches.sum()
        searches = converged + len(self.unconverged_speeds)
        return f"{text}; {converged} of {searches} searches converged"


def fixed_points(
    layer: keras.Layer,
    initial_states: "ArrayLike | None" = None,
    *,
    x: "ArrayLike | None" = None,
    complete: bool = False,
    tolerance: float = 1e-16,
    distance: float = 1e-4,
    iterations: int = 100,
    modulus_tolerance: float = 1e-6,
    seconds: float | None = None,
) -> FixedPoints:
    """The fixed points of a recurrent layer under a constant input.

    speed(s) = |F(s, x) - s|^2, 0 at a fixed point

    s is the state of `state_trajectories`. From every initial state the speed
    is minimized by the method of Levenberg and Marquardt. A search with a speed
    of at most `tolerance` max(1, |s|^2) has converged; the others end at slow
    points, local minima of the speed, or run out of iterations.

    A direction contracts if the modulus of its eigenvalue of the Jacobian
    d F / d s is below 1, expands if it is above 1, and is neutral if it is 1
    within `modulus_tolerance`, or as far as rounding may have moved it. A point
    is stable if all directions contract. If none expands and some are neutral,
    the eigenvalues do not decide: h - h^3 attracts and h + h^3 repels.

    Ends of searches closer than `distance` are one point. Points with an
    eigenvalue near 1 between which further ones are found are a continuum, such
    as a line attractor, which is reported as one point with its members.

    Only what the searches reach is found: take initial states from where the
    network goes, such as a few hundred rows of `state_trajectories`, with some
    noise added. Everything is computed in float64, at a cost of order
    (initial states) * state^3 * iterations.

    `complete=True` finds all fixed points of a SimpleRNN, RIN, RateRNN or
    ResidualRNN with ReLU, in place of the search. Those of the first three
    solve a linear complementarity problem,

    a - b = a V + c with a, b >= 0 and a_i b_i = 0, c = x W + bias

    of a rate a and of b, by how much an argument is below 0. For a set A of
    active units this is h_A (I - V_AA) = c_A, where h_A >= 0 and the argument
    of every other unit is at most 0. All 2^units sets are solved for up to 14
    units. Beyond, branch and bound solves those that remain: a linear program
    closes a branch in which no state is left, so a search that ends is a proof
    that there is no other fixed point. `seconds` or Ctrl-C end it with what it
    has found, and the result says how many branches are open. A
    RateRNN of rank 1 to 3 is searched in boxes of its overlaps, at any number
    of units.

    The fixed points of a ResidualRNN are the states h, anywhere, in which its
    inner units add nothing: a V = 0, where a - b - h U = c. The search decides
    inner units. Where all of them are shut, each state stays: a continuum of
    as many dimensions as there are units, all neutral, which is not `stable`
    in the sense above. There are further points where rates cancel. If none
    can, the search takes one node; else it may take minutes and more from 50
    inner units on.

    Where I - V_AA, of a ResidualRNN U_A V_A, has a singular value of at most
    `modulus_tolerance`, the solutions are a continuum, with its ends among the
    members, or none; an unbounded one is cut off at ten times the size of its
    nearest point. A unit whose argument is 0 counts as a neutral direction,
    because J is different on its two sides.

    Args:
        layer: A built recurrent layer or cell of Keras.
        initial_states: Array `(initial_states, state)`, finite, or a list of
            its parts, such as `[h, c]`. Defaults to `None`, for
            `complete=True`.
        x: Array `(features,)`, finite, the constant input. Defaults to
            `None`: zeros.
        complete: Boolean, whether to find all fixed points in place of those
            that searches reach. Takes no `initial_states`, and of the numbers
            below `modulus_tolerance` alone. Defaults to `False`.
        tolerance: Positive number, the largest speed of a fixed point.
            Defaults to 1e-16.
        distance: Positive number, the largest distance between two points
            that are one, in units of the largest norm of a state. Defaults
            to 1e-4.
        iterations: Positive integer, at most, for each search. Defaults to
            100.
        modulus_tolerance: Number from 0 to 1, how far from 1 the modulus of a
            neutral eigenvalue is at most. Defaults to 1e-6, for float32.
        seconds: Positive number, after which a search with `complete=True`
            ends with what it has found. Defaults to `None`: when it is done.

    Returns:
        A `FixedPoints`, a named tuple.

    Raises:
        ValueError: As in `state_trajectories`; if an argument is not as above,
            or F not finite at an initial state; with `complete=True`, if the
            layer is not of that kind, or has continua in more than 64 sets.

    Example:

    >>> layer = keras.layers.SimpleRNN(
    ...     1, recurrent_initializer=keras.initializers.Identity(2.0)
    ... )
    >>> layer.build((None, None, 1))
    >>> fixed_points = keras_rin.diagnostics.fixed_points(
    ...     layer, [[-1.0], [0.01], [1.0]]
    ... )
    >>> fixed_points.states.round(3) + 0.0  # s = tanh(2 s)
    array([[-0.958],
           [ 0.958],
           [ 0.   ]])
    >>> print(fixed_points)
    2 stable, 1 source; 3 of 3 searches converged

    Two units that inhibit each other:

    >>> layer = keras.layers.SimpleRNN(2, "relu", bias_initializer="ones")
    >>> layer.build((None, None, 1))
    >>> _ = layer.cell.recurrent_kernel.assign([[0.0, -2.0], [-2.0, 0.0]])
    >>> fixed_points = keras_rin.diagnostics.fixed_points(layer, complete=True)
    >>> print(fixed_points)
    2 stable, 1 source; all of them, from 4 active sets

    Reference:
        Sussillo and Barak, 2013, Opening the black box. For sets of active
        units: Eisenmann, Monfared, Goring and Durstewitz, 2023, Bifurcations
        and loss jumps in RNN training (arXiv 2310.17561). For the problem:
        Cottle, Pang and Stone, 1992, The linear complementarity problem.
    """
    cell = built_cell(layer)
    check_weights(cell)
    x = np.zeros(feature_count(cell) or 1) if x is None else x
    x = _arguments.vector("x", x, feature_count(cell) or np.size(x))
    number, tiny = _arguments.finite_number, np.finfo("float64").tiny
    tolerance = number("tolerance", tolerance, tiny)
    distance = number("distance", distance, tiny)
    iterations = _arguments.integer("iterations", iterations)
    modulus_tolerance, seconds = checked_limits(modulus_tolerance, seconds)
    if complete is (initial_states is not None):
        raise ValueError(
            "Pass either `initial_states` or `complete=True`. Received: "
            f"initial_states={initial_states!r}, complete={complete!r}"
        )
    if complete:
        return _all_points(cell, x, modulus_tolerance, seconds)
    with state_map(cell, "float64") as step:
        search = Search(step, x, tolerance, iterations)
        states = search.checked_states(initial_states)
        return _points_found(search, states, distance, modulus_tolerance)


def checked_limits(modulus_tolerance, seconds):
    """The tolerance of a modulus, and seconds, `None` for no limit of time."""
    number = _arguments.finite_number
    tolerance = number("modulus_tolerance", modulus_tolerance, 0, 1)
    if seconds is not None:
        seconds = number("seconds", seconds, 0)
    return tolerance, seconds


def _points_found(search, initial_states, distance, modulus_tolerance):
    states, speeds = search.minimize(initial_states)
    converged = search.has_converged(states, speeds)
    unconverged = states[~converged], speeds[~converged]
    states, speeds = states[converged], speeds[converged]
    distance *= np.linalg.norm([*initial_states, *states], axis=1).max()
    states, speeds, searches = search.distinct_roots(states, speeds, distance)
    jacobians = search.jacobians(states)
    points = []
    for group in search.continua(states, jacobians):
        k, members = _members(states, group, SAME_ROOT * distance)
        # At a double root a residual r moves eigenvalues by the order of
        # sqrt(r), and the speed is r^2.
        speed = (speeds[group] / speed_scale(states[group])).max()
        tolerance = max(modulus_tolerance, 4 * speed**0.25)
        flat = np.linalg.svdvals(minus_identity(jacobians[k])) <= tolerance
        # A Jordan block has more eigenvalues of 1 than directions it maps to
        # themselves.
        dimension = max(1, int(flat.sum())) if len(members) > 1 else 0
        points.append(
            kinds.directions(jacobians[k], tolerance)
            | {"states": states[k], "speeds": speeds[k], "members": members}
            | {"dimension": dimension, "searches": searches[group].sum()}
        )
    return _fixed_points(points, *unconverged)


def _all_points(layer, x, modulus_tolerance, seconds):
    """All fixed points of a layer with ReLU, from its sets of active units."""
    network = threshold_linear(layer, "`complete=True`", or_residual=True)
    drive, sets = network.drive(x), 0
    numbers = network.matrix, drive, modulus_tolerance
    if network.output is None:
        rates = active_sets.Network(*numbers)
    else:
        rates = active_sets.ResidualNetwork(*numbers, network.output)
    rank = 0 if network.factors is None else network.factors[0].shape[1]
    if 0 < rank <= LARGEST_RANK and network.units > active_sets.ENUMERATED:
        pieces, evidence = low_rank_fixed_points(
            rates, network.factors, seconds
        )
    else:
        pieces, sets, evidence = active_sets.all_fixed_points(rates, seconds)
    points = []
    for solution in pieces.solutions():
        states = network.states(solution.states, drive)
        residual = rates.change(solution.states[0]) * (network.leak or 1)
        jacobian = network.jacobian(solution.is_active)
        borders = np.count_nonzero(solution.is_border)
        points.append(
            kinds.directions(jacobian, modulus_tolerance, borders)
            | {"states": states[0], "speeds": residual @ residual}
            | {"members": states, "dimension": solution.dimension}
            | {"searches": 0}
        )
    nothing = np.zeros((0, network.units)), np.zeros(0)
    return _fixed_points(points, *nothing, sets, evidence)


def _fixed_points(
    points, unconverged_states, unconverged_speeds, sets=0, evidence=None
):
    """The points in the order of the result, each a dict of its fields."""
    order = "expanding", "neutral", "dimension"
    points = sorted(points, key=operator.itemgetter(*order))
    size = unconverged_states.shape[1]
    fields = kinds.columns(
        points,
        states=(size,),
        speeds=(),
        jacobians=(size, size),
        eigenvalues=(size,),
        searches=(),
    )
    return FixedPoints(
        **fields,
        contracting=size - fields["expanding"] - fields["neutral"],
        members=[point["members"] for point in points],
        unconverged_states=unconverged_states,
        unconverged_speeds=unconverged_speeds,
        sets=sets,
        evidence=evidence,
    )


def _members(states, group, root_distance):
    """The index of the middle state of a group, and the members.

    A group no larger than `root_distance` is a single point.
    """
    offsets = states[group] - states[group].mean(axis=0)
    distances = np.linalg.norm(offsets, axis=1)
    index = group[distances.argmin()]
    is_continuum = 2 * distances.max() > root_distance
    return index, states[group if is_continuum else [index]]
