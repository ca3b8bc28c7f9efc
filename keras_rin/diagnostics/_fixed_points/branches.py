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
from keras_rin.diagnostics._fixed_points.branch_and_bound import run
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
    tolerance, seconds = checked_limits(modulus_tolerance, seconds)
    line = _Line(network, begin, end - begin, tolerance)
    problem = network_problem(
        network.matrix, begin, directions=[end - begin], limits=[[0, 1]]
    )
    evidence = run(Search(problem, line.accept, tolerance), seconds, "simplex")
    pieces = line.distinct_pieces()
    pieces.sort(key=operator.itemgetter("intervals", "expanding"))
    fields = kinds.columns(
        pieces, intervals=(2,), states=(2, network.units), switching=(2,)
    )
    ends = [piece["ends"] for piece in pieces]
    return Branches(**fields, ends=ends, evidence=evidence)


class _Joint(active_sets.Network):
    """The states (h, u) of h = relu(h V + c + u d) and u = u.

    The last arguments, of units that are always active, are u and 1 - u.
    """

    def equations(self, units):
        return super().equations(units[..., :-1])

    def states(self, units, coordinates):
        return super().states(units[..., :-1], coordinates)[:, :-1]


class _Line:
    """The straight pieces h(u), set by set."""

    def __init__(self, network, drive, direction, tolerance):
        self._network, self._tolerance = network, tolerance
        beside = np.zeros((network.units, 2))
        matrix = np.block([[network.matrix, beside], [direction, 1, -1]])
        self._joint = _Joint(matrix, np.append(drive, [0, 1]), tolerance)
        self._pieces: list[dict] = []

    def accept(self, is_active, is_border):
        """Adds the piece of a set, as `Search` asks for it."""
        units = np.flatnonzero(np.append(is_active, [True, True]))
        _, polyhedra = active_sets.solve_singular(self._joint, units)
        self._pieces += [self._piece(is_active, shape) for shape in polyhedra]
        return bool(polyhedra)

    def _piece(self, is_active, polyhedron):
        along, spanning = polyhedron.directions[:, -1], polyhedron.states
        *_, width = sizes = np.ptp(spanning, axis=0)
        is_vertical = 0 < polyhedron.dimension and (
            width <= self._tolerance * sizes.max()
        )
        if is_vertical:
            pairs = spanning[1:].reshape(-1, 2, len(sizes))
            states = pairs[np.ptp(pairs, axis=1).max(axis=1).argmax()]
            states[:, -1] = states[0, -1]
        else:
            states = polyhedron.ends(along)[::-1]
        rates, u = states[:, :-1], states[:, -1]
        if is_vertical or len(along) > 1:
            ends, switching = ("degenerate", "degenerate"), (-1, -1)
        else:
            slopes = polyhedron.directions[0] @ self._joint.matrix
            pairs = [self._end(is_active, state, slopes) for state in states]
            ends, switching = zip(*pairs, strict=True)
        drives = self._joint.drive + np.outer(u, self._joint.matrix[-1])
        jacobian = self._network.jacobian(is_active)
        return {
            "intervals": tuple(u.tolist()),
            "states": self._network.states(rates, drives[:, :-2]),
            "dimension": max(0, polyhedron.dimension - (not is_vertical)),
            "ends": ends,
            "switching": switching,
        } | kinds.directions(jacobian, self._tolerance)

    def _end(self, is_active, state, slopes):
        """What happens at an end, and the unit that switches there."""
        arguments = self._joint.arguments(state)
        close = CLOSE * np.abs(arguments).max()
        is_zero = (np.abs(arguments) <= close) & (np.abs(slopes) > CLOSE)
        units = np.flatnonzero(is_zero)
        if is_zero[-2:].any():
            return "limit", -1
        if len(units) > 1:
            return "degenerate", -1
        return self._name(is_active, units), units[0]

    def _name(self, is_active, units):
        """What happens where these units switch."""
        beyond = is_active ^ (np.arange(len(is_active)) == units[0])
        signs = []
        for units in map(np.flatnonzero, (is_active, beyond)):
            matrix = self._joint.minus_matrix(units)
            sign, _ = np.linalg.slogdet(matrix)
            smallest = np.linalg.svdvals(matrix).min(initial=1)
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
