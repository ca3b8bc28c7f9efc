"""Fixed points of h = relu(h V + c) that fill a polyhedron."""

import numpy as np
import scipy

FAR = 10.0  # where an unbounded polyhedron is cut off, in units of its origin
SMALL = 1e-7  # relative, the tolerance of linear programs


class Polyhedron:
    """The points h = origin + z D of one set of active units.

    In the set h >= 0, outside it arguments <= 0. `states` are a point within
    and others that span the polyhedron; there is none if it is empty.
    """

    def __init__(self, network, units, origin, directions):
        self.network, self._count = network, len(directions)
        self._is_inside = np.zeros(network.units, bool)
        self._is_inside[units] = True
        self._origin = np.zeros(network.units)
        self._origin[units] = origin
        self._directions = np.zeros((self._count, network.units))
        self._directions[:, units] = directions
        # Rows a z <= b: the states are at least 0, the arguments at most 0.
        slopes = (self._directions @ network.matrix).T
        limits = -network.arguments(self._origin)
        self._states = np.column_stack([-self._directions.T, self._origin])
        self._arguments = np.column_stack([slopes, limits])
        size = max(network.scale, np.abs(origin).max())
        self._far = np.inf
        nearest = self._furthest(-self._directions.sum(axis=1))
        if nearest is not None:  # the smallest sum of units, all at least 0
            size = max(size, np.abs(nearest).max())
        self._far = FAR * size
        self.slack = max(SMALL, network.tolerance) * self._far
        self.states, self.dimension = self._spanning_states()

    def contains(self, states):
        """Which of these fixed points, one a row, are points of this set."""
        arguments = self.network.arguments(states)[:, self._is_inside]
        is_off = (states[:, ~self._is_inside] <= self.slack).all(axis=1)
        return (arguments >= -self.slack).all(axis=1) & is_off

    def meets(self, other):
        """Whether there is a point of both."""
        here, there = self._is_inside, other._is_inside
        # States that are 0 there, arguments that are 0 here.
        rows = [-self._states[here & ~there], -self._arguments[there & ~here]]
        return self._furthest(np.zeros(self._count), rows) is not None

    def _spanning_states(self):
        """States, the first of them within, and the dimension."""
        explored = np.zeros((self._count, 0))
        ends: list[np.ndarray] = []
        dimension = 0
        for number in range(self._count):
            basis, _ = np.linalg.qr(explored, mode="complete")
            direction = basis[:, number]  # orthogonal to those before
            pair = self._furthest(direction), self._furthest(-direction)
            if pair[0] is None or pair[1] is None:
                return np.zeros((0, self.network.units)), 0
            extent = pair[0] - pair[1]
            is_flat = extent @ direction <= self.slack
            dimension += int(not is_flat)
            new = direction if is_flat else extent
            explored = np.column_stack([explored, new])
            ends += pair
        points = np.vstack([np.mean(ends, axis=0), *ends])
        states = np.maximum(self._origin + points @ self._directions, 0)
        return states[: len(states) if dimension else 1], dimension

    def _furthest(self, direction, further_rows=()):
        """The z furthest along a direction, `None` if there is no z at all."""
        inside = self._is_inside
        rows = np.concatenate(
            [self._states[inside], self._arguments[~inside], *further_rows]
        )
        box = -self._far, self._far
        result = scipy.optimize.linprog(
            -direction, rows[:, :-1], rows[:, -1], bounds=box
        )
        return result.x if result.success else None
