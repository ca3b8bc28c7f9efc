"""The search for fixed points: the speed is minimized from many states."""

import numpy as np
import scipy

from keras_rin import _arguments
from keras_rin.diagnostics._dynamics.sequences import finite_states
from keras_rin.diagnostics._matrices import spectrum

# With a larger tolerance slow points are wanted, which refining would move.
REFINED_TOLERANCE = 1e-16
# Rounding gives a fixed point this speed.
ROUNDED_SPEED = (4 * spectrum.ROUNDING) ** 2
# Along a continuum J - I has singular values below this one, relative to the
# largest, if weights are rounded to float32.
FLAT_SINGULAR_VALUE = 3e-7
# An eigenvalue this close to 1 may belong to a continuum of fixed points.
NEAR_ONE = 1e-2
# Between two points of a continuum lies a third. The search for it begins off
# the middle, because a saddle may lie in the middle of two stable points, and
# must end close by. Both numbers are shares of the distance of the two.
BETWEEN, LARGEST_DRIFT = 0.38, 0.1


class Search:
    """Minimizes the speed from many states, each with a damping of its own."""

    def __init__(self, step, x, tolerance, iterations):
        self._step, self._x = step, x
        self._tolerance, self._iterations = tolerance, iterations

    def checked_states(self, states):
        states = finite_states(states)
        rows = max(1, len(np.atleast_1d(states)))
        shape = rows, self._step.size
        _arguments.check_shape("initial_states", states.shape, shape)
        if not np.isfinite(self._residuals(states)).all():
            raise ValueError(
                f"{self._step.name} must map `initial_states` to finite "
                "states. Received: initial_states up to "
                f"{np.abs(states).max():.3g}"
            )
        return states

    def has_converged(self, states, speeds):
        return speeds <= self._tolerance * speed_scale(states)

    def jacobians(self, states):
        if not len(states):
            return np.zeros((0, self._step.size, self._step.size))
        return self._step.jacobians(states, self._inputs(states))

    def minimize(self, states):
        """The states at which the searches end, and their speeds."""
        states = states.copy()
        speeds = _squares(self._residuals(states))
        damping = np.full(len(states), 1e-3)
        for _ in range(self._iterations):
            is_finished = self.has_converged(states, speeds) | (damping > 1e8)
            active = np.flatnonzero(~is_finished)
            if not active.size:
                break
            steps, is_stationary = _damped_steps(
                self._residuals(states[active]),
                self.jacobians(states[active]),
                damping[active],
            )
            trial = states[active] + steps
            trial_speeds = _squares(self._residuals(trial))
            is_better = trial_speeds < speeds[active]
            # A search that gains little where no direction leads down has
            # reached a slow point.
            is_slow_point = is_stationary & (
                trial_speeds > 0.9 * speeds[active]
            )
            damping[active] *= np.where(is_better, 0.1, 10)
            damping[active[is_slow_point]] = np.inf
            damping = np.maximum(damping, 1e-12)
            states[active[is_better]] = trial[is_better]
            speeds[active[is_better]] = trial_speeds[is_better]
        return states, speeds

    def refine(self, states, speeds):
        """Newton's method from where the searches end, while speeds decrease.

        A step leaves (m - 1) / m of the distance to a root of multiplicity m.
        """
        states, speeds = states.copy(), speeds.copy()
        rounded = ROUNDED_SPEED * speed_scale(states)
        active = np.flatnonzero(
            (speeds > rounded) & (self._tolerance <= REFINED_TOLERANCE)
        )
        # A whole step is too long where the residual is largest between roots.
        step_sizes = np.ones(len(states))
        for _ in range(self._iterations):
            if not active.size:
                break
            residuals = self._residuals(states[active])
            matrices = minus_identity(self.jacobians(states[active]))
            inverses = np.linalg.pinv(matrices, rcond=FLAT_SINGULAR_VALUE)
            steps = -(inverses @ residuals[:, :, None])[:, :, 0]
            trial = states[active] + step_sizes[active, None] * steps
            trial_speeds = _squares(self._residuals(trial))
            is_better = (
                trial_speeds < (1 - step_sizes[active] / 2) * speeds[active]
            )
            states[active[is_better]] = trial[is_better]
            speeds[active[is_better]] = trial_speeds[is_better]
            step_sizes[active] *= np.where(is_better, 4, 0.25)
            step_sizes = np.minimum(step_sizes, 1)
            is_unfinished = (speeds > rounded) & (step_sizes > 1e-3)
            active = active[is_unfinished[active]]
        return states, speeds

    def distinct_roots(self, states, speeds, distance):
        """Refined states, none close to another, their speeds and searches."""
        searches = np.ones(len(states), int)
        states, speeds, searches = _distinct(states, speeds, searches, distance)
        # Duplicates are dropped first, because refining takes long.
        states, speeds = self.refine(states, speeds)
        return _distinct(states, speeds, searches, distance)

    def continua(self, states, jacobians):
        """Arrays of indices, for each isolated root and each continuum.

        Two roots with an eigenvalue near 1 are of one continuum if they are
        neighbors in the minimum spanning tree and a fixed point lies between.
        """
        eigenvalues = np.linalg.eigvals(jacobians)
        is_near_one = (np.abs(eigenvalues - 1) <= NEAR_ONE).any(axis=1)
        isolated = list(np.flatnonzero(~is_near_one)[:, None])
        near = np.flatnonzero(is_near_one)
        if len(near) < 2:
            return isolated + [near] * len(near)
        distances = scipy.spatial.distance.cdist(states[near], states[near])
        tree = scipy.sparse.csgraph.minimum_spanning_tree(distances).tocoo()
        first, second = states[near[tree.row]], states[near[tree.col]]
        between = first + BETWEEN * (second - first)
        refined, speeds = self.refine(*self.minimize(between))
        drift = np.linalg.norm(refined - between, axis=1)
        is_close = drift <= LARGEST_DRIFT * tree.data
        tree.data[~(is_close & self.has_converged(refined, speeds))] = 0
        tree.eliminate_zeros()
        _, labels = scipy.sparse.csgraph.connected_components(
            tree, directed=False
        )
        return isolated + [near[labels == k] for k in range(labels.max() + 1)]

    def _residuals(self, states):
        return self._step.next(states, self._inputs(states)) - states

    def _inputs(self, states):
        return np.broadcast_to(self._x, (len(states), len(self._x)))


def _distinct(states, speeds, searches, distance):
    """The slowest of each group of close states, and its searches."""
    slowest, counts = [], []
    remaining = np.argsort(speeds, kind="stable")
    while remaining.size:
        offsets = states[remaining] - states[remaining[0]]
        is_distant = np.linalg.norm(offsets, axis=1) > distance
        slowest.append(remaining[0])
        counts.append(searches[remaining[~is_distant]].sum())
        remaining = remaining[is_distant]
    index = np.array(slowest, int)
    return states[index], speeds[index], np.array(counts, int)


def _damped_steps(residuals, jacobians, damping):
    """The d that minimizes |r + A d|^2 + damping scale |d|^2, A = J - I.

    The second result is whether a state is stationary: whether r is
    orthogonal to the columns of A, to 1 %.
    """
    matrices = minus_identity(jacobians)
    transposed = np.swapaxes(matrices, 1, 2)
    normal_matrices = transposed @ matrices
    # This view of the diagonals is written to below.
    diagonal = np.einsum("sii->si", normal_matrices)
    gradients = (transposed @ residuals[:, :, None])[:, :, 0]
    lengths = np.sqrt(diagonal * _squares(residuals)[:, None])
    is_stationary = (np.abs(gradients) <= 0.01 * lengths).all(axis=1)
    diagonal += (damping * (diagonal.mean(axis=1) + 1e-300))[:, None]
    steps = -np.linalg.solve(normal_matrices, gradients[:, :, None])[:, :, 0]
    return steps, is_stationary


def _squares(vectors):
    with np.errstate(over="ignore"):
        return (vectors**2).sum(axis=1)


def speed_scale(states):
    """max(1, |s|^2), the scale of a speed."""
    return np.maximum(1, _squares(states))


def minus_identity(matrices):
    """J - I."""
    return matrices - np.eye(matrices.shape[-1])
