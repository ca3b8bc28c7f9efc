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
        seconds: float | None = None,
    ):
        self._problem, self._accept = problem, accept
        self._slack, self._limit = tolerance, seconds
        self._count = 0  # of programs
        none = np.zeros(problem.pairs, bool)
        cost = np.repeat([1.0, 0.0], [problem.pairs, len(problem.range)])
        is_free = np.append(none, np.isinf(problem.range[:, 0]))
        self._stack = [(none, none, Tableau(problem.rows, cost, is_free))]

    def run(self) -> SearchEvidence:
        """Searches, and says what was done. Ctrl-C ends it as `seconds` do."""
        nodes, closed, progress = 0, 0.0, Progress(self._limit)
        try:
            while self._stack and progress.goes_on(closed):
                is_off, is_on, _ = self._stack[-1]
                branches = self._branches(*self._stack[-1])
                self._stack.pop()  # not before: Ctrl-C leaves it open
                self._stack += branches
                nodes += 1
                if not branches:
                    closed += 0.5 ** np.count_nonzero(is_off | is_on)
        except KeyboardInterrupt:
            pass
        closed = closed if self._stack else 1.0
        progress.end(closed)
        return SearchEvidence(
            nodes=nodes,
            programs=self._count,
            open_branches=len(self._stack),
            closed=closed,
            tolerance=self._slack,
            solver="simplex",
        )

    def _branches(self, is_off, is_on, tableau):
        """Two branches, the more likely one last; none if it is closed."""
        is_free = ~(is_off | is_on)
        lower, upper = self._bounds(is_off, is_on)
        self._count += 1
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
        return 10 * self._slack

    def _bounds(self, is_off, is_on):
        """The smallest and the largest z and rows z in a branch."""
        problem, slack = self._problem, self._slack
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
        self._count += 1
        return minimum(cost, self._problem.rows, lower, upper)


class Progress:
    """A bar of the share that is closed, and the limit of time."""

    def __init__(self, limit):
        self._begin = time.monotonic()
        self._limit = np.inf if limit is None else limit
        self._bar, self._shown = None, 0

    def goes_on(self, closed):
        passed = time.monotonic() - self._begin
        if self._bar is None and passed > QUIET:
            self._bar = keras.utils.Progbar(100, unit_name="percent")
        if self._bar is not None and int(100 * closed) > self._shown:
            self._shown = int(100 * closed)
            self._bar.update(self._shown, finalize=False)
        return passed < self._limit

    def end(self, closed):
        if self._bar is not None:
            self._bar.update(round(100 * closed), finalize=True)
