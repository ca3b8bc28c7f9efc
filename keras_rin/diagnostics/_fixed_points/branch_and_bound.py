"""All solutions of a linear complementarity problem, by branch and bound.

A branch fixes a_i = 0 or b_i = 0 for some pairs. A linear program over the
others proves that it has no solution, or says on which pair to branch.
"""

import time
import typing
from collections.abc import Callable

import keras
import numpy as np

from keras_rin.diagnostics._fixed_points.linear_programs import Tableau
from keras_rin.diagnostics._fixed_points.linear_programs import minimum

QUIET = 2.0  # seconds until a progress bar appears


class Problem(typing.NamedTuple):
    """All z = (a, y) and b >= 0 with a >= 0 and a_i b_i = 0 for each pair.

    lower <= rows z <= upper, and b is by how much the first `pairs` products
    are above `lower`. y, which may be of no entry, is in `range`, an array
    `(entries, 2)`. All numbers are of the order of 1.
    """

    pairs: int
    rows: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    range: np.ndarray


def network_problem(matrix, drive, *, directions=(), limits=(), cuts=()):
    """The pairs a = relu(h), b = relu(-h) of a = relu(a V + c + y D).

    With c and D as they are divided by the largest entry of c.

    Args:
        matrix, drive: V and c.
        directions: D, array `(entries, units)`.
        limits: Array `(entries, 2)`, the range of y.
        cuts: Array `(rows, units)`, of which the products with a are at least
            0.
    """
    units = len(drive)
    directions = np.reshape(directions, (-1, units))
    limits = np.reshape(limits, (-1, 2))
    reach = np.abs(directions.T) @ np.abs(limits).max(axis=1, initial=0)
    scale = np.max(np.abs(drive) + reach, initial=0) or 1.0
    rows = np.hstack([(np.eye(units) - matrix).T, -directions.T / scale])
    cuts = np.reshape(cuts, (-1, units))
    cuts = np.hstack([cuts, np.zeros((len(cuts), len(limits)))])
    rows = np.concatenate([rows, cuts])
    lower = np.concatenate([drive / scale, np.zeros(len(cuts))])
    return Problem(units, rows, lower, np.full(len(rows), np.inf), limits)


class SearchEvidence(typing.NamedTuple):
    """What the search did that found all fixed points, cycles or branches.

    Its line says whether they are all, and from how many nodes.

    Attributes:
        nodes: Integer, the nodes of the search: each fixes some units to be
            active or inactive. Of a low-rank network, the boxes.
        programs: Integer, how many linear programs were solved.
        open_branches: Integer, how many branches are left. 0 is a proof that
            there is no other solution; else `seconds` or Ctrl-C ended it.
        closed: Number from 0 to 1, the share of all active sets in the
            branches that are closed.
        tolerance: Number, by how much an argument of ReLU may be off, relative
            to the largest drive, in a branch that is closed. What lies closer
            than that to the border of a linear piece counts once.
        solver: `"simplex"` or, of a low-rank network, `"boxes"`.
    """

    nodes: int
    programs: int
    open_branches: int
    closed: float
    tolerance: float
    solver: str

    def __repr__(self):
        nodes = f"{self.nodes:,} nodes"
        if self.open_branches:
            return (
                f"not all: {self.open_branches:,} branches are open after "
                f"{nodes}, {self.closed:.1%} of the active sets are closed"
            )
        name = "boxes" if self.solver == "boxes" else "nodes"
        programs = f" and {self.programs:,} linear programs" * bool(
            self.programs
        )
        return (
            f"all of them, from {self.nodes:,} {name}{programs} "
            f"(tolerance {self.tolerance:.0e})"
        )


def run(search, seconds, solver) -> SearchEvidence:
    """Steps until the queue is empty or the time is over, and what was done.

    Ctrl-C ends it as `seconds` do. A bar shows the share that is closed.
    """
    begin, bar, shown = time.monotonic(), None, 0
    limit = np.inf if seconds is None else seconds
    try:
        while search.queue and (passed := time.monotonic() - begin) < limit:
            if bar is None and passed > QUIET:
                bar = keras.utils.Progbar(100, unit_name="percent")
            percent = int(100 * search.closed)
            if bar is not None and percent > shown:
                bar.update(shown := percent, finalize=False)
            search.step()
    except KeyboardInterrupt:
        pass
    closed = search.closed if search.queue else 1.0
    if bar is not None:
        bar.update(round(100 * closed), finalize=True)
    return SearchEvidence(
        nodes=search.nodes,
        programs=search.programs,
        open_branches=search.open_branches,
        closed=closed,
        tolerance=search.tolerance,
        solver=solver,
    )


class Search:
    """Branch and bound: a branch begins at the vertex of the one above it.

    `accept` takes the units that are active in all solutions of a branch in
    which no pair is left to decide, and those that are on a border, as Boolean
    arrays. It returns whether it has a solution there.
    """

    def __init__(
        self,
        problem: Problem,
        accept: Callable[[np.ndarray, np.ndarray], bool],
        tolerance: float,
    ):
        self._problem, self._accept = problem, accept
        self.tolerance, self.closed = tolerance, 0.0
        self.nodes = self.programs = 0
        none = np.zeros(problem.pairs, bool)
        cost = np.repeat([1.0, 0.0], [problem.pairs, len(problem.range)])
        is_free = np.append(none, np.isinf(problem.range[:, 0]))
        self.queue = [(none, none, Tableau(problem.rows, cost, is_free))]

    @property
    def open_branches(self):
        return len(self.queue)

    def step(self):
        """Closes the last branch, or puts two in its place."""
        is_off, is_on, _ = self.queue[-1]
        branches = self._branches(*self.queue[-1])
        self.queue.pop()  # not before: Ctrl-C leaves it open
        self.queue += branches
        self.nodes += 1
        if not branches:
            self.closed += 0.5 ** np.count_nonzero(is_off | is_on)

    def _branches(self, is_off, is_on, tableau):
        """Two branches, the more likely one last; none if it is closed."""
        is_free = ~(is_off | is_on)
        lower, upper = self._bounds(is_off, is_on)
        self.programs += 1
        point = tableau.point(lower, upper)
        if point is None:
            return []
        largest = self._largest_entries(point, is_free, lower, upper)
        priority = largest.min(axis=0)
        if not (priority[is_free] > self._zero).any():
            is_active = is_on | (is_free & (largest[0] > self._zero))
            is_border = is_free & (largest <= self._zero).all(axis=0)
            if self._accept(is_active, is_border) or not is_free.any():
                return []
            # Nothing of this pattern: what is left is close to a border.
            priority = -largest.max(axis=0)
        index = np.where(is_free, priority, -np.inf).argmax()
        unit = np.arange(len(is_on)) == index
        branches = [
            (is_off | unit, is_on, tableau),
            (is_off, is_on | unit, tableau.copy()),
        ]
        is_on_first = largest[0, index] > largest[1, index]
        return branches if is_on_first else branches[::-1]

    @property
    def _zero(self):
        return 10 * self.tolerance

    def _bounds(self, is_off, is_on):
        """The smallest and the largest z and rows z in a branch."""
        problem, slack = self._problem, self.tolerance
        # Of units that are on arguments are at least the slack: below that a
        # point belongs to the branch in which they are off.
        least = np.where(is_on, 2 * slack, 0)
        lower = np.concatenate([least, problem.range[:, 0], problem.lower])
        most = np.where(is_off, 0, np.inf)
        upper = np.concatenate([most, problem.range[:, 1], problem.upper])
        b = self._place_of_b
        upper[b] = np.where(is_on, lower[b] + slack, np.inf)
        lower[b] -= slack
        return lower, upper

    @property
    def _place_of_b(self):
        first = self._problem.rows.shape[1]
        return slice(first, first + self._problem.pairs)

    def _pairs(self, values):
        """a and b, array `(2, pairs)`, of z and rows z."""
        pairs = self._problem.pairs
        b = values[self._place_of_b] - self._problem.lower[:pairs]
        return np.stack([values[:pairs], b])

    def _largest_entries(self, point, is_free, lower, upper):
        """The a and b of free pairs that are not 0 in all of the branch.

        Array `(2, pairs)`, of entries as large as one solution has them. It is
        incomplete once both entries of a pair are above 0.
        """
        largest = self._pairs(point)
        while np.isfinite(largest).all():
            is_zero = (largest <= self._zero) & is_free
            is_undecided = largest.min(axis=0)[is_free] > self._zero
            if is_undecided.any() or not is_zero.any():
                return largest
            raised = np.zeros(len(point), bool)
            raised[: len(is_free)], raised[self._place_of_b] = is_zero
            capped = np.where(raised, np.minimum(upper, lower + 1), upper)
            point = self._minimum(-1.0 * raised, lower, capped)
            if point is None or not np.isfinite(point).all():
                break
            new = self._pairs(point)
            if not (is_zero & (new > self._zero)).any():
                return largest
            largest = np.maximum(largest, new)
        # Undecided by the solver: each pair may have either sign.
        return np.ones((2, len(is_free)))

    def _minimum(self, cost, lower, upper):
        self.programs += 1
        return minimum(cost, self._problem.rows, lower, upper)
