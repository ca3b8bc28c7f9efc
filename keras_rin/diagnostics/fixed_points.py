"""Fixed points of a recurrent layer under a constant input."""

import typing

import keras
import numpy as np
import scipy
from numpy.typing import ArrayLike

from keras_rin import arguments
from keras_rin.diagnostics import jacobians
from keras_rin.diagnostics import recurrent_layers
from keras_rin.diagnostics.state_map import state_map

# An eigenvalue this close to 1 may belong to a continuum of fixed points.
NEAR_ONE = 1e-2
# Between two points of a continuum lies a third. It is looked for off the
# middle, where between two stable points a saddle may be.
BETWEEN, ASIDE = 0.38, 0.1


class FixedPoints(typing.NamedTuple):
    """What `fixed_points` finds; see there."""

    states: np.ndarray
    speeds: np.ndarray
    jacobians: np.ndarray
    eigenvalues: np.ndarray
    unstable: np.ndarray
    dimension: np.ndarray
    members: list
    starts: np.ndarray
    unconverged_states: np.ndarray
    unconverged_speeds: np.ndarray

    @property
    def stable(self):
        """Whether each is an isolated fixed point that attracts its vicinity.

        `(points,)`, Boolean.
        """
        return (self.unstable == 0) & (self.dimension == 0)


def fixed_points(
    layer: keras.Layer,
    inputs: ArrayLike | None,
    initial_states: ArrayLike,
    tolerance: float = 1e-16,
    distance: float = 1e-4,
    iterations: int = 100,
) -> FixedPoints:
    """The fixed points of a recurrent layer under a constant input.

    speed(s) = |F(s, x) - s|^2, 0 at a fixed point

    s is the state of `state_trajectories`: h, and (h, c) of an LSTM. From
    every initial state the speed is minimized by the method of Levenberg and
    Marquardt, all of them at once. A search with a speed of at most
    `tolerance` max(1, |s|^2) has converged; the others end at slow points,
    local minima of the speed, or run out of iterations, and are returned
    apart.

    Points closer than `distance` are one. An eigenvalue of the Jacobian
    d F / d s at 1 says that a fixed point may not be isolated. Such points
    between which further ones are found are a continuum, such as a line
    attractor, which is reported as one point with its members.

    Only what the searches reach is found: take initial states from where the
    network goes, such as a few hundred rows of `state_trajectories`, with some
    noise added. Everything is computed in float64, whatever the dtype of the
    layer, except for what a cell or an activation of your own computes in
    float32. The cost is of order initial_states state^3 iterations; what is
    computed on the way takes initial_states state^2 numbers a few times.

    Args:
        layer: A built recurrent layer or cell of Keras.
        inputs: Array `(features,)`, finite, the constant input x; `None` for
            zeros.
        initial_states: Array `(initial_states, state)`, finite.
        tolerance: Positive number, the largest speed of a fixed point.
            Defaults to 1e-16, a distance of 1e-8 between s and F(s, x). Larger
            tolerances take slow points for fixed points.
        distance: Positive number, the largest distance between two points
            that are one, in units of the largest norm of a state. Defaults
            to 1e-4.
        iterations: Positive integer, at most, for each search. Defaults to
            100.

    Returns:
        A named tuple with an entry for each fixed point, stable ones first:
        `states` `(points, state)`; `speeds` `(points,)`; `jacobians`
        `(points, state, state)`, J[i, j] = d F_i / d s_j; `eigenvalues`
        `(points, state)`, the largest modulus first; `unstable` `(points,)`,
        the number of eigenvalues of modulus above 1, the dimension of the
        unstable space: 0 for a stable point, otherwise a saddle;
        `dimension` `(points,)`, 0 for an isolated point, and for a continuum
        the number of eigenvalues within 0.01 of 1, which do not count as
        unstable; `members`, a list of arrays `(members, state)`, the states of
        one continuum, the only state of an isolated point; `starts`
        `(points,)`, how many searches ended there. And of the searches that
        did not converge `unconverged_states` `(searches, state)` and
        `unconverged_speeds` `(searches,)`. The property `stable` is a Boolean
        array `(points,)`.

    Raises:
        ValueError: If the layer has no single cell or no weights yet, if its
            weights are not finite, if `inputs` or `initial_states` has
            another shape or is not finite, if `tolerance` or `distance` is
            not positive or `iterations` is no positive integer, or if F is
            not finite at an initial state.

    Example:

    >>> layer = keras.layers.SimpleRNN(
    ...     1, recurrent_initializer=keras.initializers.Identity(2.0)
    ... )
    >>> layer.build((None, None, 1))
    >>> found = keras_rin.diagnostics.fixed_points(
    ...     layer, [0.0], [[-1.0], [0.01], [1.0]]
    ... )
    >>> found.states.round(3) + 0.0  # s = tanh(2 s)
    array([[-0.958],
           [ 0.958],
           [ 0.   ]])
    >>> found.unstable
    array([0, 0, 1])

    Reference:
        Sussillo and Barak, 2013, Opening the black box: low-dimensional
        dynamics in high-dimensional recurrent neural networks.
    """
    cell = jacobians.checked_cell(layer)
    x = _constant_input(cell, inputs)
    positive = np.finfo("float64").tiny
    tolerance = arguments.finite_number("tolerance", tolerance, positive)
    distance = arguments.finite_number("distance", distance, positive)
    iterations = arguments.integer("iterations", iterations)
    with state_map(cell, "float64") as step:
        search = Search(step, x, tolerance, iterations)
        first = search.check(initial_states)
        states, speeds = search.minimize(first)
        converged = search.has_converged(states, speeds)
        left = ~converged
        slow = states[left], speeds[left]
        states, speeds = states[converged], speeds[converged]
        norms = np.linalg.norm([*first, *states], axis=1)
        places, starts = _distinct(states, speeds, distance * norms.max())
        states, speeds = states[places], speeds[places]
        matrices = search.jacobians(states)
        eigenvalues = _by_modulus(np.linalg.eigvals(matrices))
        groups = _continua(states, eigenvalues, search)
    near = np.abs(eigenvalues - 1) <= NEAR_ONE
    found = []
    for group in groups:
        members = states[group]
        middle = np.linalg.norm(members - members.mean(axis=0), axis=1)
        place = group[middle.argmin()]
        apart = near[place] if len(group) > 1 else np.zeros_like(near[place])
        unstable = (np.abs(eigenvalues[place]) > 1) & ~apart
        total = starts[group].sum()
        found.append((unstable.sum(), apart.sum(), place, members, total))
    found.sort(key=lambda one: one[:3])
    unstable, dimension, places, members, starts = (
        zip(*found, strict=True) if found else ((),) * 5
    )
    places = np.array(places, int)
    return FixedPoints(
        states[places],
        speeds[places],
        matrices[places],
        eigenvalues[places],
        np.array(unstable, int),
        np.array(dimension, int),
        list(members),
        np.array(starts, int),
        *slow,
    )


def _constant_input(cell, inputs):
    features = recurrent_layers.features(cell)
    if inputs is None:
        return np.zeros(features or 1)
    inputs = arguments.real_array("inputs", inputs)
    return arguments.vector("inputs", inputs, features or inputs.size)


class Search:
    """Minimizes the speed from many states, each with a damping of its own."""

    def __init__(self, step, x, tolerance, iterations):
        self._step, self._x = step, x
        self._tolerance, self._iterations = tolerance, iterations

    def check(self, states):
        states = arguments.real_array("initial_states", states)
        if states.ndim != 2 or states.shape[1] != self._step.size:
            raise ValueError(
                "`initial_states` must have the shape (initial_states, "
                f"{self._step.size}). Received: initial_states of shape "
                f"{states.shape}"
            )
        states = arguments.finite_array("initial_states", states)
        if not len(states):
            raise ValueError("`initial_states` must not be empty.")
        if not np.isfinite(self._residuals(states)).all():
            raise ValueError(
                f"{self._step.name} must map `initial_states` to finite "
                "states. Received: initial_states up to "
                f"{np.abs(states).max():.3g}"
            )
        return states

    def has_converged(self, states, speeds):
        return speeds <= self._tolerance * np.maximum(1, _squares(states))

    def jacobians(self, states):
        if not len(states):
            return np.zeros((0, self._step.size, self._step.size))
        return self._step.jacobians(states, self._inputs(states))

    def minimize(self, states):
        """Where the searches end, and the speeds there."""
        states = states.copy()
        speeds = _squares(self._residuals(states))
        damping = np.full(len(states), 1e-3)
        for _ in range(self._iterations):
            ended = self.has_converged(states, speeds) | (damping > 1e8)
            active = np.flatnonzero(~ended)
            if not active.size:
                break
            steps, flat = _steps(
                self._residuals(states[active]),
                self.jacobians(states[active]),
                damping[active],
            )
            trial = states[active] + steps
            trial_speeds = _squares(self._residuals(trial))
            better = trial_speeds < speeds[active]
            # Where no direction leads down, and little is gained: a slow point.
            stalled = flat & (trial_speeds > 0.9 * speeds[active])
            damping[active] *= np.where(better, 0.1, 10)
            damping[active[stalled]] = np.inf
            damping = np.maximum(damping, 1e-12)
            states[active[better]] = trial[better]
            speeds[active[better]] = trial_speeds[better]
        return states, speeds

    def _residuals(self, states):
        return self._step.next(states, self._inputs(states)) - states

    def _inputs(self, states):
        return np.broadcast_to(self._x, (len(states), len(self._x)))


def _steps(residuals, matrices, damping):
    """The d that minimizes |r + A d|^2 + damping scale |d|^2, A = J - I.

    And whether r is orthogonal to the columns of A, to 1 %.
    """
    matrices = matrices - np.eye(matrices.shape[-1])
    transposed = np.swapaxes(matrices, 1, 2)
    normal = transposed @ matrices
    diagonal = np.einsum("sii->si", normal)
    gradients = (transposed @ residuals[:, :, None])[:, :, 0]
    lengths = np.sqrt(diagonal * _squares(residuals)[:, None])
    flat = (np.abs(gradients) <= 0.01 * lengths).all(axis=1)
    diagonal += (damping * (diagonal.mean(axis=1) + 1e-300))[:, None]
    return -np.linalg.solve(normal, gradients[:, :, None])[:, :, 0], flat


def _squares(vectors):
    with np.errstate(over="ignore"):
        return (vectors**2).sum(axis=1)


def _distinct(states, speeds, distance):
    """The slowest of each group of close states, and how many are in it."""
    places, counts = [], []
    left = np.argsort(speeds, kind="stable")
    while left.size:
        away = np.linalg.norm(states[left] - states[left[0]], axis=1) > distance
        places.append(left[0])
        counts.append((~away).sum())
        left = left[away]
    return np.array(places, int), np.array(counts, int)


def _by_modulus(eigenvalues):
    order = np.argsort(-np.abs(eigenvalues), axis=1, kind="stable")
    return np.take_along_axis(eigenvalues, order, axis=1)


def _continua(states, eigenvalues, search):
    """Indices of the points that are isolated, and of those of a continuum.

    Of points with an eigenvalue at 1 those are linked that are neighbours in
    the shortest tree through all of them and have a fixed point between them.
    """
    near = (np.abs(eigenvalues - 1) <= NEAR_ONE).any(axis=1)
    alone = [np.array([place]) for place in np.flatnonzero(~near)]
    near = np.flatnonzero(near)
    if len(near) < 2:
        return alone + [near] * len(near)
    distances = scipy.spatial.distance
    apart = distances.squareform(distances.pdist(states[near]))
    tree = scipy.sparse.csgraph.minimum_spanning_tree(apart).tocoo()
    one, other = states[near[tree.row]], states[near[tree.col]]
    between = one + BETWEEN * (other - one)
    ends, speeds = search.minimize(between)
    moved = np.linalg.norm(ends - between, axis=1) <= ASIDE * tree.data
    linked = moved & search.has_converged(ends, speeds)
    tree.data[~linked] = 0
    tree.eliminate_zeros()
    _, labels = scipy.sparse.csgraph.connected_components(tree, directed=False)
    return alone + [near[labels == k] for k in range(labels.max() + 1)]
