"""All branches of fixed points of a network with ReLU over an input."""

import operator
import typing

import keras
import numpy as np
from numpy.typing import ArrayLike

from keras_rin.diagnostics._fixed_points import active_sets
from keras_rin.diagnostics._fixed_points import kinds
from keras_rin.diagnostics._fixed_points.branch_and_bound import Search
from keras_rin.diagnostics._fixed_points.branch_and_bound import SearchEvidence
from keras_rin.diagnostics._fixed_points.branch_and_bound import network_problem
from keras_rin.diagnostics._fixed_points.fixed_points import checked_limits
from keras_rin.diagnostics._fixed_points.threshold_linear import (
    threshold_linear,
)

CLOSE = 1e-9  # two values of u that are one


class Branches(typing.NamedTuple):
    """What `fixed_point_branches` returns, an entry for each straight piece.

    Attributes:
        intervals: Array `(pieces, 2)`, the values of u at both ends.
        states: Array `(pieces, 2, units)`, the states at both ends.
        neutral: Integer array `(pieces,)`, the number of directions.
        expanding: Integer array `(pieces,)`, the number of directions.
        dimension: Integer array `(pieces,)`, 0 where there is one state for
            each u, else the number of directions in which further fixed points
            lie. A piece at one u alone is vertical.
        ends: List of pairs of words. `"limit"`: u is 0 or 1. `"persistence"`:
            a unit switches and the branch goes on. `"fold"`: a unit switches
            and the branch turns back. `"singular"`: a unit switches and the
            branch goes on at this u alone, because an eigenvalue of I - V_AA
            is 0. `"degenerate"`: several units switch at once, or the piece is
            singular itself.
        switching: Integer array `(pieces, 2)`, the unit that switches at each
            end, -1 if none does or several do.
        evidence: A `SearchEvidence`: whether these are all pieces.
    """

    intervals: np.ndarray
    states: np.ndarray
    neutral: np.ndarray
    expanding: np.ndarray
    dimension: np.ndarray
    ends: list[tuple[str, str]]
    switching: np.ndarray
    evidence: SearchEvidence

    @property
    def stable(self) -> np.ndarray:
        """Whether all directions of a piece contract, Boolean `(pieces,)`."""
        return (self.neutral == 0) & (self.expanding == 0)

    def states_at(self, u: float) -> np.ndarray:
        """The states `(points, units)` of the pieces that cross a value of u.

        Those of one state for each u, where u lies within their interval.
        """
        low, high = self.intervals.T
        crossing = (low <= u) & (u <= high) & (self.dimension == 0)
        low, high = low[crossing], high[crossing]
        share = (u - low) / np.where(high > low, high - low, 1)
        first, last = np.swapaxes(self.states[crossing], 0, 1)
        return first + share[:, None] * (last - first)

    def __repr__(self):
        count, stable = len(self.ends), self.stable.sum()
        folds = sum(pair.count("fold") for pair in self.ends)
        return (
            f"{count} straight pieces, {stable} of them stable, {folds} ends "
            f"at a fold; {self.evidence}"
        )


def fixed_point_branches(
    layer: keras.Layer,
    x_from: "ArrayLike",
    x_to: "ArrayLike",
    *,
    modulus_tolerance: float = 1e-6,
    seconds: float | None = None,
) -> Branches:
    """The fixed points of a network with ReLU along a line of inputs, exactly.

    x(u) = (1 - u) x_from + u x_to, 0 <= u <= 1

    In each set of active units a fixed point is a linear function of u, so a
    bifurcation diagram consists of straight pieces. The search of
    `fixed_points(layer, complete=True)`, with u as one more variable, finds all
    of them. Within a piece the Jacobian and the stability are constant.

    Args:
        layer: A built SimpleRNN, RIN or RateRNN with ReLU, or its cell.
        x_from: Array `(features,)`, finite, the input at u = 0.
        x_to: Array `(features,)`, finite, the input at u = 1.
        modulus_tolerance: Number from 0 to 1, as in `fixed_points`. Defaults
            to 1e-6.
        seconds: Positive number, after which the search ends with what it has
            found, as Ctrl-C does. Defaults to `None`: when it is done.

    Returns:
        A `Branches`, a named tuple.

    Raises:
        ValueError: If the layer is not of that kind, or an argument is not as
            above.

    Example: without input a unit that excites itself is off or unstable.

    >>> layer = keras.layers.SimpleRNN(1, "relu", bias_initializer="ones")
    >>> layer.build((None, None, 1))
    >>> weights = [[[-2.0]], [[2.0]], [-0.5]]
    >>> layer.set_weights([np.array(array) for array in weights])
    >>> branches = keras_rin.diagnostics.fixed_point_branches(
    ...     layer, [-1.0], [1.0]
    ... )
    >>> branches.intervals
    array([[0.375, 1.   ],
           [0.375, 1.   ]])
    >>> branches.ends
    [('fold', 'limit'), ('fold', 'limit')]

    Reference:
        di Bernardo, Budd, Champneys and Kowalczyk, 2008, Piecewise-smooth
        dynamical systems, chapter 5.
    """
    network = threshold_linear(layer, "`fixed_point_branches`")
    begin, end = network.drive(x_from, "x_from"), network.drive(x_to, "x_to")
    limits = checked_limits(modulus_tolerance, seconds)
    line = _Line(network, begin, end - begin, *limits)
    evidence = line.search.run()
    pieces = line.distinct_pieces()
    pieces.sort(key=operator.itemgetter("intervals", "expanding"))
    fields = kinds.columns(
        pieces, intervals=(2,), states=(2, network.units), switching=(2,)
    )
    ends = [piece["ends"] for piece in pieces]
    return Branches(**fields, ends=ends, evidence=evidence)


class _Line:
    """The straight pieces h(u) of h = relu(h V + c + u d), set by set."""

    def __init__(self, network, drive, direction, tolerance, seconds):
        problem = network_problem(
            network.matrix, drive, directions=[direction], limits=[[0, 1]]
        )
        self.search = Search(problem, self.accept, tolerance, seconds)
        self._network, self._tolerance = network, tolerance
        self._drive, self._direction = drive, direction
        self._pieces: list[dict] = []

    def _at(self, u):
        drive = self._drive + u * self._direction
        return active_sets.Network(self._network.matrix, drive, self._tolerance)

    def accept(self, is_active, is_border):
        """Adds the piece of a set, as `Search` asks for it."""
        units = np.flatnonzero(is_active)
        matrix, smallest = self._matrix(units)
        if smallest <= self._tolerance:
            pieces = self._singular_pieces(is_active, units, matrix)
        else:
            pieces = self._regular_piece(is_active, units, matrix, smallest)
        self._pieces += pieces
        return bool(pieces)

    def _matrix(self, units):
        """I - V_AA and its smallest singular value, of no unit 1."""
        matrix = self._at(0).minus_matrix(units)
        return matrix, np.linalg.svdvals(matrix).min(initial=1)

    def _regular_piece(self, is_active, units, matrix, smallest):
        """Where all rates are at least 0 and all arguments at most 0."""
        drives = np.stack([self._drive, self._direction])
        rates = np.zeros_like(drives)
        rates[:, units] = np.linalg.solve(matrix.T, drives[:, units].T).T
        arguments = rates @ self._network.matrix + drives
        # Signed so that all must be at least 0: value + u * slope.
        value, slope = np.where(is_active, rates, -arguments)
        size = np.abs(rates).max(initial=self._at(0).scale)
        error = 1e-14 * len(value) * size * (1 + 1 / smallest)
        is_flat = np.abs(slope) <= error
        if (is_flat & (value < -error)).any():
            return []
        with np.errstate(divide="ignore", invalid="ignore"):
            zeros = -value / slope
        bounds, switching = [], []
        for sign, limit in ((1, 0.0), (-1, 1.0)):  # below, above
            is_bound = ~is_flat & (sign * slope > 0)
            levels = np.where(is_bound, sign * zeros, -np.inf)
            level = levels.max()
            close = np.flatnonzero(levels >= level - CLOSE)
            is_limit = level <= sign * limit + CLOSE
            bounds.append(limit if is_limit else sign * level)
            switching.append([] if is_limit else list(close))
        if bounds[0] > bounds[1] + CLOSE:
            return []
        bounds[1] = max(bounds)
        states = [np.maximum(rates[0] + u * rates[1], 0) for u in bounds]
        return [self._piece(bounds, states, is_active, 0, switching)]

    def _singular_pieces(self, is_active, units, matrix):
        """A vertical piece at one u, or a continuum over an interval."""
        left, values, _ = np.linalg.svd(matrix.T)
        left = left[:, values <= self._tolerance]
        offsets, slopes = (
            self._drive[units] @ left,
            self._direction[units] @ left,
        )
        k = np.abs(slopes).argmax()
        scale = self._at(0).scale
        if abs(slopes[k]) > self._tolerance * scale:
            bounds = [-offsets[k] / slopes[k]] * 2
        else:
            bounds = self.search.range_of_last(~is_active, is_active)
        if bounds is None or not -CLOSE <= bounds[0] <= 1 + CLOSE:
            return []
        members = []
        for u in bounds:
            pieces = active_sets.Pieces(self._at(u))
            pieces.add(units[None])
            members += pieces.polyhedra
        if len(members) < 2:
            return []
        is_vertical = bounds[0] == bounds[1]
        first, last = members[0].states, members[1].states
        if is_vertical and len(first) > 2:  # the ends of the first direction
            states = [first[1], first[2]]
        else:
            states = [first[0], last[0]]
        dimension = members[0].dimension
        return [self._piece(bounds, states, is_active, dimension, None)]

    def _piece(self, bounds, states, is_active, dimension, switching):
        drives = [self._at(u).drive for u in bounds]
        states = [
            self._network.states(rates, drive)
            for rates, drive in zip(states, drives, strict=True)
        ]
        jacobian = self._network.jacobian(is_active)
        directions = kinds.directions(jacobian, self._tolerance)
        if switching is None:
            ends, units = ["degenerate"] * 2, [-1, -1]
        else:
            ends = [self._name(is_active, units) for units in switching]
            units = [group[0] if len(group) == 1 else -1 for group in switching]
        return {
            "intervals": tuple(map(float, bounds)),
            "states": np.array(states),
            "dimension": dimension,
            "ends": tuple(ends),
            "switching": units,
        } | directions

    def _name(self, is_active, units):
        """What happens where these units switch."""
        if not units:
            return "limit"
        if len(units) > 1:
            return "degenerate"
        beyond = is_active ^ (np.arange(len(is_active)) == units[0])
        signs = []
        for units in map(np.flatnonzero, (is_active, beyond)):
            matrix, smallest = self._matrix(units)
            sign, _ = np.linalg.slogdet(matrix)
            signs.append(int(sign) * (smallest > self._tolerance))
        names = {1: "persistence", -1: "fold", 0: "singular"}
        return names[signs[0] * signs[1]]

    def distinct_pieces(self):
        """Pieces that are no end of a longer one, and each of them once."""
        longest = sorted(
            self._pieces, key=lambda p: p["intervals"][0] - p["intervals"][1]
        )
        distinct: list[dict] = []
        for piece in longest:
            if not any(_covers(other, piece) for other in distinct):
                distinct.append(piece)
        return distinct


def _covers(piece, other):
    """Whether both ends of another piece lie on this one."""
    (low, high), states = piece["intervals"], piece["states"]
    if piece["dimension"] != other["dimension"]:
        return False
    size = 1e-7 * max(1, np.abs(states).max())
    for u, state in zip(other["intervals"], other["states"], strict=True):
        if not low - CLOSE <= u <= high + CLOSE:
            return False
        share = (u - low) / (high - low) if high > low else 0
        nearest = states[0] + share * (states[1] - states[0])
        if np.abs(nearest - state).max() > size:
            return False
    return True
