"""Linear programs of one set of rows, solved again as their bounds change.

A `Tableau` goes on from the vertex before by the dual simplex method, which for
dense rows takes less time than the call of a solver. `minimum` is such a call.
"""

import copy

import numpy as np
import scipy

TOLERANCE = 1e-9  # by how much a solution may violate a row or a bound
PIVOTS = 1_000  # at most, before SciPy solves the program


class Tableau:
    """A vertex of the z and rows z within bounds.

    As many of them as z has entries are at a bound. The others, the basic ones,
    are the products of `table` with these.

    Args:
        rows: Array `(rows, entries)`.
        cost: Array `(entries,)`, at least 0; 0 for entries without bounds.
        is_free: Booleans `(entries,)`, which entries are without bounds.
    """

    def __init__(self, rows, cost, is_free):
        count, self._size = rows.shape
        self._rows = rows
        self._table = np.vstack([rows, cost])  # and the cost of a change
        self._order = np.arange(self._size + count)  # the basic ones last
        self._is_high = np.zeros(self._size, bool)  # the bound that each is at
        for column in np.flatnonzero(is_free):  # is basic for good
            pivots = np.abs(self._table[:-1, column])
            pivots[self._order[self._size :] < self._size] = 0
            if pivots.any():
                self._exchange(pivots.argmax(), column)

    def copy(self):
        other = copy.copy(self)
        other._table, other._order = self._table.copy(), self._order.copy()
        other._is_high = self._is_high.copy()
        return other

    def point(self, lower, upper):
        """z and rows z within these bounds, `None` if there are none.

        The bounds are within those of the point before.
        """
        size = self._size
        low, high = lower[self._order], upper[self._order]
        fixed = np.where(self._is_high, high[:size], low[:size])
        fixed[np.isinf(fixed)] = 0
        # In which direction each of them may move.
        signs = np.where(self._is_high, -1, 1) * (low[:size] < high[:size])
        for _ in range(PIVOTS):
            basic = self._table[:-1] @ fixed
            excess = np.maximum(low[size:] - basic, basic - high[size:])
            row = excess.argmax()
            if excess[row] <= TOLERANCE:
                values = np.empty(len(lower))
                values[self._order] = np.concatenate([fixed, basic])
                return values
            sign = 1 if basic[row] < low[size + row] else -1
            gains = sign * signs * self._table[row]
            columns = np.flatnonzero(gains > TOLERANCE)
            if not len(columns):
                if self._proves_none(row, lower, upper):
                    return None
                break
            gains = gains[columns]
            ratios = np.abs(self._table[-1, columns]) / gains
            is_least = ratios <= ratios.min() + TOLERANCE
            column = columns[np.where(is_least, gains, 0).argmax()]
            self._exchange(row, column)
            pair, turned = [column, size + row], [size + row, column]
            low[pair], high[pair] = low[turned], high[turned]
            self._is_high[column] = sign < 0
            fixed[column] = low[column] if sign > 0 else high[column]
            signs[column] = sign * (low[column] < high[column])
        return minimum(np.zeros(len(lower)), self._rows, lower, upper)

    def _exchange(self, row, column):
        """Makes the entry of a column basic, in place of that of a row."""
        table = self._table
        factors = table[:, column].copy()
        new = table[row] / -factors[row]
        new[column] = 1 / factors[row]
        factors[row] = 1
        table[row] = table[:, column] = 0
        # In place, in a sixth of the time of an outer product and a sum.
        self._table = scipy.linalg.blas.dger(
            1.0, new, factors, a=table.T, overwrite_a=True
        ).T
        pair = [column, self._size + row]
        self._order[pair] = self._order[pair[::-1]]

    def _proves_none(self, row, lower, upper):
        """Whether a sum over rows z - (rows z) is 0 for no z within bounds.

        Its weights are those of a row of the table (Farkas' lemma).
        """
        sums = np.empty(len(lower))
        sums[self._order] = np.append(
            -self._table[row], np.zeros(len(self._rows))
        )
        sums[self._order[self._size + row]] = 1
        weights = sums[self._size :]
        sums[: self._size] = -weights @ self._rows
        sums[np.abs(sums) < TOLERANCE * np.abs(sums).max()] = 0
        ends = np.where(sums, [lower, upper], 0) * sums
        least, most = ends.min(axis=0).sum(), ends.max(axis=0).sum()
        return least > 0 or most < 0


def minimum(cost, rows, lower, upper):
    """The z and rows z of least cost, `None` if there are none within bounds.

    NaN if the solver does not decide. Costs and bounds are of z and of rows z.
    """
    size = rows.shape[1]
    low, high = lower[size:], upper[size:]
    has_low, has_high = np.isfinite(low), np.isfinite(high)
    result = scipy.optimize.linprog(
        cost[:size] + cost[size:] @ rows,
        np.concatenate([rows[has_high], -rows[has_low]]),
        np.concatenate([high[has_high], -low[has_low]]),
        bounds=np.column_stack([lower[:size], upper[:size]]),
        options={
            "primal_feasibility_tolerance": TOLERANCE,
            "dual_feasibility_tolerance": TOLERANCE,
        },
    )
    if result.status == 2:
        return None
    if result.x is None:
        return np.full(len(lower), np.nan)
    return np.concatenate([result.x, rows @ result.x])
