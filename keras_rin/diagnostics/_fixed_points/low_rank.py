"""All fixed points of a low-rank network with ReLU, by boxes of overlaps.

Rates are a = relu(c + k M'), where the overlaps k = a N are few. Boxes cover
all k up to a radius and, as k = u / s with u on the surface of a cube, all
beyond. A box is cut if it has no fixed point, narrowed or halved, until so few
units may have either sign in it that each of their sets has a linear system.
"""

import itertools
import typing

import numpy as np

from keras_rin.diagnostics._fixed_points.active_sets import Pieces
from keras_rin.diagnostics._fixed_points.branch_and_bound import run

LARGEST_RANK = 3
UNDECIDED = 3  # units of either sign in a box whose sets are solved
CHUNK = 1024  # boxes at a time
SMALLEST = 1e-10  # the radius of a box that is not halved
ROUNDING = 1e-12


class _Chart(typing.NamedTuple):
    """Arguments v A + a and overlaps v B + b over a box of r numbers v."""

    slopes: np.ndarray  # A, (r, units)
    offsets: np.ndarray  # a, (units,)
    overlaps: np.ndarray  # B, (r, r)
    shift: np.ndarray  # b, (r,)
    lower: np.ndarray
    upper: np.ndarray


def low_rank_fixed_points(network, factors, seconds=None):
    """The `Pieces` of a network with V = N M', and their `SearchEvidence`.

    Args:
        network: The `Network` of V and c.
        factors: N and M, arrays `(units, rank)`.
        seconds: As in `fixed_points`.
    """
    search = _Boxes(network, *factors)
    return search.pieces, run(search, seconds, "boxes")


def _charts(left, right, drive):
    """The boxes that together hold every vector of overlaps."""
    rank = right.shape[1]
    identity = np.eye(rank)
    radius = 4 * max(1, np.abs(np.maximum(drive, 0) @ left).max())
    is_homogeneous = not drive.any()
    if not is_homogeneous:
        bound = np.full(rank, radius)
        yield _Chart(right.T, drive, identity, np.zeros(rank), -bound, bound)
    for axis, sign in itertools.product(range(rank), (-1, 1)):
        is_axis = np.arange(rank) == axis  # whose place takes s
        slopes = np.where(is_axis[:, None], drive, right.T)
        upper = np.where(is_axis, 1 / radius, 1.0)
        # Without a drive each direction with one fixed point has a line.
        lower = np.where(is_axis, upper * is_homogeneous, -1.0)
        overlaps = identity * ~is_axis
        offsets, shift = sign * right[:, axis], sign * identity[axis]
        yield _Chart(slopes, offsets, overlaps, shift, lower, upper)


class _Boxes:
    """The queue of boxes, of each chart arrays of middles and radii."""

    def __init__(self, network, left, right):
        self._left = left
        self.pieces = Pieces(network)
        self.pieces.add(np.zeros((1, 0), int))
        self._solved = {np.packbits(np.zeros(len(left), bool)).tobytes()}
        self.tolerance = network.tolerance
        self.nodes = self.programs = self._tiny = 0
        charts = list(_charts(left, right, network.drive))
        self.queue = []
        for chart in charts:
            middle = (chart.lower + chart.upper) / 2
            radius = (chart.upper - chart.lower) / 2
            self.queue.append((chart, middle[None], radius[None]))
        self._volume = len(charts)

    @property
    def open_branches(self):
        return sum(len(box[1]) for box in self.queue) + self._tiny

    @property
    def closed(self):
        """The share of all charts that is closed."""
        open_volume = 0.0
        for chart, _, radii in self.queue:
            sizes = np.maximum((chart.upper - chart.lower) / 2, SMALLEST)
            open_volume += np.prod(radii / sizes + 1e-300, axis=1).sum()
        return 1 - min(1.0, open_volume / self._volume)

    def step(self):
        """Cuts, narrows, solves or halves the next boxes."""
        chart, middle, radius = self.queue.pop()
        if len(middle) > CHUNK:
            self.queue.append((chart, middle[CHUNK:], radius[CHUNK:]))
            middle, radius = middle[:CHUNK], radius[:CHUNK]
        self.nodes += len(middle)
        arguments = middle @ chart.slopes + chart.offsets
        reach = radius @ np.abs(chart.slopes)
        is_on, is_off = arguments >= reach, arguments <= -reach
        undecided = ~(is_on | is_off)
        new, new_radius, is_kept = self._narrowed(
            chart, middle, radius, arguments, reach, is_on, undecided
        )
        is_decided = undecided.sum(axis=1) <= UNDECIDED
        for k in np.flatnonzero(is_kept & is_decided):
            self._solve(chart, middle[k], radius[k], is_on[k], undecided[k])
        going_on = is_kept & ~is_decided
        is_tiny = going_on & (new_radius.max(axis=1) <= SMALLEST)
        self._tiny += int(np.count_nonzero(is_tiny))
        going_on &= ~is_tiny
        halves = self._halved(
            chart, new[going_on], new_radius[going_on], radius[going_on]
        )
        if len(halves[0]):
            self.queue.append((chart, *halves))

    def _narrowed(
        self, chart, middle, radius, arguments, reach, is_on, undecided
    ):
        """Smaller boxes of the same fixed points, and which may have any.

        ReLU of an undecided unit is within `gap` of the line through its ends.
        """
        low, high = arguments - reach, arguments + reach
        width = np.where(undecided, 2 * reach, 1)
        slope = np.where(undecided, high / width, is_on)
        gap = np.where(undecided, -slope * low / 2, 0)
        rates = slope * arguments + gap
        values = rates @ self._left - middle @ chart.overlaps - chart.shift
        errors = gap @ np.abs(self._left) + ROUNDING
        jacobians = np.einsum(
            "ru,bu,uq->brq", chart.slopes, slope, self._left, optimize=True
        )
        jacobians = jacobians - chart.overlaps
        spread = np.einsum("br,brq->bq", radius, np.abs(jacobians))
        is_kept = (np.abs(values) <= spread + errors).all(axis=1)
        determinants = np.linalg.det(jacobians)
        is_regular = is_kept & (np.abs(determinants) > 1e-9)
        identity = np.eye(len(chart.shift))
        inverses = np.linalg.inv(
            np.where(is_regular[:, None, None], jacobians, identity)
        )
        center = middle - np.einsum("br,brq->bq", values, inverses)
        spread = np.einsum("br,brq->bq", errors, np.abs(inverses)) + ROUNDING
        low = np.maximum(middle - radius, center - spread)
        high = np.minimum(middle + radius, center + spread)
        is_kept &= ~is_regular | (low <= high).all(axis=1)
        use = (is_regular & is_kept)[:, None]
        new = np.where(use, (low + high) / 2, middle)
        return new, np.where(use, (high - low) / 2, radius), is_kept

    def _halved(self, chart, middle, radius, before):
        """Boxes that were hardly narrowed are halved along one axis."""
        shares = radius.max(axis=1) > 0.6 * before.max(axis=1)
        done = middle[~shares], radius[~shares]
        middle, radius = middle[shares], radius[shares].copy()
        weights = np.abs(chart.slopes).sum(axis=1) + 1e-300
        axis = (radius * weights).argmax(axis=1)
        rows = np.arange(len(middle))
        radius[rows, axis] /= 2
        step = np.zeros_like(middle)
        step[rows, axis] = radius[rows, axis]
        middles = np.concatenate([done[0], middle - step, middle + step])
        return middles, np.concatenate([done[1], radius, radius])

    def _solve(self, chart, middle, radius, is_on, undecided):
        """The fixed points of a box, from the sets that it meets."""
        free = np.flatnonzero(undecided)
        for bits in itertools.product([False, True], repeat=len(free)):
            is_active = is_on.copy()
            is_active[free] = bits
            if self._may_have_point(chart, middle, radius, is_active):
                key = np.packbits(is_active).tobytes()
                if key not in self._solved:
                    self._solved.add(key)
                    self.pieces.add(np.flatnonzero(is_active)[None])

    def _may_have_point(self, chart, middle, radius, is_active):
        """Whether v of a set lies in a box, or is not determined."""
        left = self._left[is_active]
        matrix = chart.slopes[:, is_active] @ left - chart.overlaps
        right = chart.shift - chart.offsets[is_active] @ left
        tolerance = self.pieces.network.tolerance
        if np.linalg.svdvals(matrix)[-1] <= tolerance:
            return True
        v = np.linalg.solve(matrix.T, right)
        slack = 1e-6 * (np.abs(v).max() + radius.max())
        return bool((np.abs(v - middle) <= radius + slack).all())
