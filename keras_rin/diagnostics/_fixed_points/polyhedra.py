"""Fixed points of h = relu(h V + c) that fill a polyhedron."""

import numpy as np
import scipy

FAR = 10.0  # where an unbounded polyhedron is cut off, in units of its origin
FLAT = 1e-12  # relative, an argument that does not change along a line
SMALL = 1e-7  # relative, the tolerance of linear programs


class Polyhedron:
    """The points s = origin + z D of one set of active units.

    In the set arguments >= 0, outside it arguments <= 0. `states` are a point
    within and others that span the polyhedron; there is none if it is empty.
    """

    def __init__(self, network, units, origin, directions):
        self.network, self._count = network, len(directions)
        is_inside = np.zeros(network.units, bool)
        is_inside[units] = True
        self._signs = np.where(is_inside, 1, -1)
        every = np.tile(units, (1 + self._count, 1))
        points = network.states(every, np.vstack([origin, directions]))
        self._origin, self.directions = points[0], points[1:]
        size = max(network.scale, np.abs(origin).max(), self._nearest_size())
        self._far = FAR * size
        self.slack = max(SMALL, network.tolerance) * self._far
        self.states, self.dimension = self._spanning_states()

    def contains(self, states):
        """Which of these fixed points, one a row, are points of this set."""
        arguments = self.network.arguments(states)
        return (self._signs * arguments >= -self.slack).all(axis=1)

    def ends(self, direction):
        """The states furthest along a direction of z, and against it."""
        points = [self._furthest(sign * direction) for sign in (1, -1)]
        states = self._origin + np.array(points) @ self.directions
        return np.maximum(states, self.network.smallest)

    def meets(self, other):
        """Whether there is a point of both."""
        return self._furthest(np.zeros(self._count), other._signs) is not None

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
        states = self._origin + points @ self.directions
        states = np.maximum(states, self.network.smallest)
        return states[: len(states) if dimension else 1], dimension

    def _nearest_size(self):
        """The least size of a point, of its largest entry; 0 if there is none.

        The entries of origin + z D are at most t and at least -t.
        """
        rows, limits = self._rows(self._signs)
        sides = np.vstack([self.directions.T, -self.directions.T])
        t = np.repeat([-1.0, 0.0], [len(sides), len(rows)])
        result = scipy.optimize.linprog(
            np.append(np.zeros(self._count), 1.0),
            np.column_stack([np.vstack([sides, rows]), t]),
            np.concatenate([-self._origin, self._origin, limits]),
            bounds=(None, None),
        )
        return result.fun if result.success else 0.0

    def _furthest(self, direction, *signs):
        """The z furthest along a direction, `None` if there is no z at all."""
        pairs = [self._rows(sign) for sign in (self._signs, *signs)]
        rows, limits = map(np.concatenate, zip(*pairs, strict=True))
        if self._count == 1:
            return self._end_of_line(direction, rows[:, 0], limits)
        box = -self._far, self._far
        result = scipy.optimize.linprog(-direction, rows, limits, bounds=box)
        return result.x if result.success else None

    def _end_of_line(self, direction, slopes, limits):
        """The z furthest along a direction of one dimension."""
        is_flat = np.abs(slopes) <= FLAT * np.abs(slopes).max()
        with np.errstate(divide="ignore", invalid="ignore"):
            ends = limits / slopes
        low = ends[~is_flat & (slopes < 0)].max(initial=-np.inf)
        high = ends[~is_flat & (slopes > 0)].min(initial=np.inf)
        close = SMALL * self._far / FAR
        if low > high + close or (limits[is_flat] < -close).any():
            return None
        end = max(low, high) if direction[0] > 0 else low
        if abs(end) * max(SMALL, self.network.tolerance) > self._far:
            end = np.copysign(self._far, end)
        return np.array([end])

    def _rows(self, signs):
        """Rows and limits: rows z <= limits if arguments have these signs."""
        slopes = (self.directions @ self.network.matrix).T
        limits = signs * self.network.arguments(self._origin)
        return -signs[:, None] * slopes, limits
