"""All fixed points of h = relu(h V + c), from their sets of active units.

The points of a set A have h_A (I - V_AA) = c_A with h_A >= 0; the other units
are 0, which their arguments h_A V_A,rest + c_rest must not exceed. Of few units
all sets are solved; of more, those that branch and bound leaves.
"""

import dataclasses
import itertools
import typing
from typing import Any

import numpy as np
import scipy

from keras_rin.diagnostics._fixed_points.branch_and_bound import Problem
from keras_rin.diagnostics._fixed_points.branch_and_bound import Search
from keras_rin.diagnostics._fixed_points.branch_and_bound import network_problem
from keras_rin.diagnostics._fixed_points.branch_and_bound import run
from keras_rin.diagnostics._fixed_points.polyhedra import Polyhedron
from keras_rin.diagnostics._matrices.spectrum import ROUNDING

ENUMERATED = 14  # units: 2^14 systems take a second
SYSTEMS = 2**12  # solved at a time
FEW_POLYHEDRA = 2**4  # of more, branch and bound joins those of sets
POLYHEDRA = 2**6  # each takes linear programs, ten seconds for all


class Solution(typing.NamedTuple):
    """An isolated fixed point, or states of a continuum, one within first."""

    states: np.ndarray
    dimension: int
    is_active: np.ndarray
    is_border: np.ndarray  # units whose argument of ReLU is 0


@dataclasses.dataclass(frozen=True)
class Network:
    """V, c, and the largest singular value of I - V_AA that counts as 0.

    `Pieces` solves any network that has these methods.
    """

    matrix: np.ndarray
    drive: np.ndarray
    tolerance: float

    smallest: typing.ClassVar[float] = 0.0  # entry of a state

    @property
    def units(self):
        return len(self.drive)

    @property
    def scale(self):
        return max(1, np.abs(self.drive).max())

    @property
    def problem(self):
        return network_problem(self.matrix, self.drive)

    def arguments(self, states):
        """The arguments of ReLU."""
        return states @ self.matrix + self.drive

    def change(self, states):
        """What a step adds to states."""
        return np.maximum(self.arguments(states), 0) - states

    def equations(self, units):
        """M and r of z M = r, of the coordinates z of each row of `units`."""
        return self.minus_matrix(units), self.drive[units]

    def states(self, units, coordinates):
        """The states of coordinates, a row of each."""
        states = np.zeros((len(coordinates), self.units))
        np.put_along_axis(states, units, coordinates, axis=1)
        return states

    def minus_matrix(self, units):
        """I - V_AA, of each row of `units`."""
        identity = np.eye(units.shape[-1])
        return identity - self.matrix[units[..., :, None], units[..., None, :]]


@dataclasses.dataclass(frozen=True)
class ResidualNetwork(Network):
    """U, as the matrix, c and V, whose inner units add relu(h U + c) V to h.

    Its fixed points are the states h in which they add 0. Where U_A V_A is
    singular, those of a set are a polyhedron: of no active unit, all states in
    which every argument is at most 0.
    """

    output: np.ndarray
    smallest = -np.inf

    @property
    def problem(self):
        states, units = self.matrix.shape
        arguments = [np.eye(units), -self.matrix.T]
        added = [self.output.T, np.zeros((states, states))]
        scale = np.abs(self.drive).max() or 1.0
        lower = np.append(self.drive / scale, np.zeros(states))
        upper = np.repeat([np.inf, 0], [units, states])
        free = np.tile([-np.inf, np.inf], (states, 1))
        return Problem(units, np.block([arguments, added]), lower, upper, free)

    def change(self, states):
        return np.maximum(self.arguments(states), 0) @ self.output

    def equations(self, units):
        output = self.output[units]
        matrices = np.moveaxis(self.matrix[:, units], 0, 1) @ output
        return matrices, -np.einsum("si,sij->sj", self.drive[units], output)

    def states(self, units, coordinates):
        return coordinates


class Pieces:
    """Isolated fixed points and polyhedra of them, set by set."""

    def __init__(self, network):
        self.network = network
        self.isolated: list[Solution] = []
        self.polyhedra: list[Polyhedron] = []

    def add(self, units):
        """Solves sets of one size, `(sets, size)`. Whether one has a point."""
        solutions, singular_sets = _solve(self.network, units)
        polyhedra = []
        for singular_set in singular_sets:
            points, polyhedron = solve_singular(self.network, singular_set)
            solutions += points
            polyhedra += polyhedron
        self.isolated += solutions
        self.polyhedra += polyhedra
        return bool(solutions or polyhedra)

    def accept(self, is_active, is_border):
        """Adds the points of a set, as `Search` asks for it.

        Not those of a set beside a point that is not exactly on its border.
        """
        before = len(self.isolated)
        if not self.add(np.flatnonzero(is_active)[None]):
            return False
        new = self.isolated[before:]
        return all(not (is_border & ~point.is_border).any() for point in new)

    def solutions(self):
        """A `Solution` for each isolated fixed point and each continuum."""
        if len(self.polyhedra) > POLYHEDRA:
            raise ValueError(
                f"`complete=True` takes at most {POLYHEDRA} sets of active "
                "units with a continuum. Received: a layer with "
                f"{len(self.polyhedra)}"
            )
        return _joined(self.network, _distinct(self.isolated), self.polyhedra)


def all_fixed_points(network, seconds=None):
    """The `Pieces`, and how many sets were solved, or the `SearchEvidence`."""
    # Of inner units each face of a polyhedron would have a set.
    is_residual = isinstance(network, ResidualNetwork)
    if network.units <= ENUMERATED and not is_residual:
        pieces = enumerated(network)
        if len(pieces.polyhedra) <= FEW_POLYHEDRA:
            return pieces, 2**network.units, None
    pieces, evidence = searched(network, seconds)
    return pieces, 0, evidence


def enumerated(network):
    """The `Pieces` of all sets; it stops where they are too many continua."""
    pieces = Pieces(network)
    for units in active_sets(network.units):
        pieces.add(units)
        if len(pieces.polyhedra) > FEW_POLYHEDRA:
            break
    return pieces


def searched(network, seconds=None):
    """The `Pieces` that branch and bound finds, and its evidence."""
    pieces = Pieces(network)
    search = Search(network.problem, pieces.accept, network.tolerance)
    return pieces, run(search, seconds, "simplex")


def active_sets(units):
    """Arrays `(sets, size)` of indices, all sets of one size after another."""
    for size in range(units + 1):
        sets = itertools.combinations(range(units), size)
        while batch := list(itertools.islice(sets, SYSTEMS)):
            yield np.array(batch, int).reshape(len(batch), size)


def _solve(network, units):
    """The fixed points of regular sets, and the sets that are not regular."""
    matrices, right = network.equations(units)
    inverses, is_regular = _inverses(matrices)
    # From 1 / (smallest singular value) to the root of the size times that.
    norms = np.linalg.norm(inverses, axis=(1, 2))
    is_regular &= norms * network.tolerance < 1
    coordinates = np.einsum("sj,sji->si", right, inverses)
    arrays = units, coordinates, norms
    solutions = _fixed_points(network, *(array[is_regular] for array in arrays))
    return solutions, list(units[~is_regular])


def _inverses(matrices):
    """The inverses, and which exist."""
    try:
        return np.linalg.inv(matrices), np.ones(len(matrices), bool)
    except np.linalg.LinAlgError:
        signs, _ = np.linalg.slogdet(matrices)  # of the same factors
        exists = signs != 0
        identity = np.eye(matrices.shape[1])
        matrices = np.where(exists[:, None, None], matrices, identity)
        return np.linalg.inv(matrices), exists


def _fixed_points(network, units, coordinates, norms):
    """The solutions in which the signs of units are those of their sets.

    A number within rounding of 0 has either sign: its unit is on a border.
    """
    size = 1 + np.abs(network.matrix).sum(axis=0).max()
    largest = np.abs(coordinates).max(axis=1, initial=network.scale)
    error = 16 * ROUNDING * network.units * size**2 * largest * (1 + norms)
    states = network.states(units, coordinates)
    arguments = network.arguments(states)
    is_border = np.abs(arguments) <= error[:, None]
    is_inside = np.zeros(arguments.shape, bool)
    np.put_along_axis(is_inside, units, True, axis=1)
    is_point = (is_border | ((arguments > 0) == is_inside)).all(axis=1)
    states = np.maximum(states, network.smallest)
    return [
        Solution(states[k : k + 1], 0, is_inside[k] & ~on, on)
        for k, on in enumerate(is_border)
        if is_point[k]
    ]


def solve_singular(network, units):
    """The isolated points, or the polyhedron, of a set that is not regular."""
    matrix, drive = (array[0] for array in network.equations(units[None]))
    left, values, right = np.linalg.svd(matrix.T)  # M^T z = r
    is_flat = values <= network.tolerance
    projections = drive @ left
    origin = (projections * ~is_flat / np.where(is_flat, 1, values)) @ right
    unmet = np.abs(projections * is_flat).max()
    scale = max(network.scale, np.abs(origin).max())
    if is_flat.any() and unmet <= network.tolerance * scale:
        polyhedron = Polyhedron(network, units, origin, right[is_flat])
        return [], [polyhedron] if len(polyhedron.states) else []
    # A hundred times as far as rounding takes a singular value of 0.
    if values[-1] <= 100 * ROUNDING * len(values) * max(1, values[0]):
        return [], []  # no solution: the hyperplanes are parallel
    coordinates = (projections / values) @ right
    return _fixed_points(
        network, units[None], coordinates[None], 1 / values[-1:]
    ), []


def _distinct(solutions):
    """A point on a border is a solution for either sign: it comes once."""
    distinct: dict[int | bytes, Solution] = {}
    for number, solution in enumerate(solutions):
        borders = np.packbits([solution.is_active, solution.is_border])
        is_inner = not solution.is_border.any()
        distinct.setdefault(number if is_inner else borders.tobytes(), solution)
    return list(distinct.values())


def _joined(network, isolated, polyhedra):
    """Solutions that touch are one, described where it has most dimensions."""
    pieces: list[Any] = [*polyhedra, *isolated]
    if not pieces:
        return []
    links = np.zeros((len(pieces), len(pieces)), bool)
    for row, polyhedron in enumerate(polyhedra):
        for column, piece in enumerate(pieces):
            links[row, column] = polyhedron.contains(piece.states).any()
    labels = _components(links)
    # Two lines meet at their ends; planes may meet elsewhere.
    planes = [k for k, shape in enumerate(polyhedra) if shape.dimension > 1]
    for first, second in itertools.combinations(planes, 2):
        if labels[first] != labels[second]:
            links[first, second] = polyhedra[first].meets(polyhedra[second])
    labels = _components(links)
    groups = [np.flatnonzero(labels == k) for k in range(max(labels) + 1)]
    return [_union(network, [pieces[k] for k in group]) for group in groups]


def _components(links):
    return scipy.sparse.csgraph.connected_components(links, directed=False)[1]


def _union(network, pieces):
    largest = max(pieces, key=lambda piece: piece.dimension)
    if isinstance(largest, Solution):
        return largest
    others = [piece.states for piece in pieces if piece is not largest]
    states = np.concatenate([largest.states, *others])
    arguments = network.arguments(largest.states[0])
    is_border = np.abs(arguments) <= largest.slack
    return Solution(
        states if largest.dimension else states[:1],
        largest.dimension,
        (arguments > 0) & ~is_border,
        is_border,
    )
