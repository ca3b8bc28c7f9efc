"""Linear programs of one set of rows, solved again as their bounds change.

HiGHS keeps its basis between two programs if `highspy` is installed, which is
tens of times as fast as `scipy.optimize.linprog`.
"""

import numpy as np
import scipy

try:
    import highspy
except ImportError:  # the extra `proofs`
    highspy = None  # type: ignore[assignment]

TOLERANCE = 1e-9  # by how much a solution may violate a row or a bound
OPTIONS = {
    "primal_feasibility_tolerance": TOLERANCE,
    "dual_feasibility_tolerance": TOLERANCE,
}


def linear_programs(rows, lower, upper):
    """The programs over z with lower <= rows z <= upper, lower may be upper."""
    kind = _SciPyPrograms if highspy is None else _HighsPrograms
    return kind(np.asarray(rows, float), lower, upper)


class _HighsPrograms:
    solver = "HiGHS"

    def __init__(self, rows, lower, upper):
        count, size = rows.shape
        self._columns = np.arange(size, dtype=np.int32)
        self._cost: np.ndarray = np.zeros(size)
        self._highs = _silent_solver()
        for name, value in OPTIONS.items():
            self._highs.setOptionValue(name, value)
        self._highs.addVars(size, np.zeros(size), np.full(size, np.inf))
        indices = [np.flatnonzero(row).astype(np.int32) for row in rows]
        for k, index in enumerate(indices):
            values = rows[k, index]
            self._highs.addRow(lower[k], upper[k], len(index), index, values)

    def minimize(self, cost, lower, upper):
        """z, `None` if there is none, NaN if the solver does not decide."""
        highs, statuses = self._highs, highspy.HighsModelStatus
        size = len(self._columns)
        if not np.array_equal(cost, self._cost):
            highs.changeColsCost(size, self._columns, cost)
            self._cost = cost
        highs.changeColsBounds(size, self._columns, lower, upper)
        highs.run()
        status = highs.getModelStatus()
        if status not in (statuses.kOptimal, statuses.kInfeasible):
            highs.clearSolver()
            highs.run()
            status = highs.getModelStatus()
        if status == statuses.kInfeasible:
            return None
        if status != statuses.kOptimal:
            return np.full(size, np.nan)
        return np.array(highs.getSolution().col_value)


def _silent_solver():
    class SilentHighs(highspy.Highs):
        def enableCallbacks(self):  # the first one prints a banner
            self.silent()

    return SilentHighs()


class _SciPyPrograms:
    solver = "SciPy"

    def __init__(self, rows, lower, upper):
        is_equality = lower == upper
        above, below = np.isfinite(lower), np.isfinite(upper)
        above, below = above & ~is_equality, below & ~is_equality
        self._rows = {
            "A_eq": rows[is_equality],
            "b_eq": lower[is_equality],
            "A_ub": np.concatenate([rows[below], -rows[above]]),
            "b_ub": np.concatenate([upper[below], -lower[above]]),
        }

    def minimize(self, cost, lower, upper):
        bounds = np.column_stack([lower, upper])
        result = scipy.optimize.linprog(
            cost, bounds=bounds, options=OPTIONS, **self._rows
        )
        if result.status == 2:
            return None
        return np.full(len(cost), np.nan) if result.x is None else result.x
