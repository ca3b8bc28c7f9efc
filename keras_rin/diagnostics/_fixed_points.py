"""Fixed points of a recurrent layer under a constant input."""

import collections
import typing

import keras
import numpy as np
import scipy
from numpy.typing import ArrayLike

from keras_rin import _arguments
from keras_rin._layer_walk.layers import feature_count
from keras_rin.diagnostics import _cells
from keras_rin.diagnostics import _spectrum
from keras_rin.diagnostics._fixed_point_search import Search
from keras_rin.diagnostics._fixed_point_search import minus_identity
from keras_rin.diagnostics._fixed_point_search import speed_scale
from keras_rin.diagnostics._state_map import state_map

# An eigenvalue this close to 1 may belong to a continuum of fixed points.
NEAR_ONE = 1e-2
# Between two points of a continuum lies a third. The search for it begins off
# the middle, because a saddle may lie in the middle of two stable points, and
# must end close by. Both numbers are shares of the distance of the two.
BETWEEN, LARGEST_DRIFT = 0.38, 0.1
# Searches end at various distances from a degenerate root. Points within this
# multiple of `distance` are therefore a single root and no continuum.
SAME_ROOT = 300


class FixedPoints(typing.NamedTuple):
    """What `fixed_points` returns, an entry for each fixed point.

    Stable points come first, the others by the number of expanding
    directions. `print` shows how many there are of each kind.

    Attributes:
        states: Array `(points, state)`.
        speeds: Array `(points,)`.
        jacobians: Array `(points, state, state)`, J[i, j] = d F_i / d s_j.
        eigenvalues: Complex array `(points, state)`, those of the Jacobian,
            the largest modulus first.
        contracting: Integer array `(points,)`, the number of directions.
        neutral: Integer array `(points,)`, the number of directions.
        expanding: Integer array `(points,)`, the number of directions.
        dimension: Integer array `(points,)`, 0 for an isolated point, for a
            continuum the number of directions along it, all of them neutral.
        members: List of arrays `(members, state)`, the states of one
            continuum, the only state of an isolated point.
        searches: Integer array `(points,)`, how many searches ended there.
        unconverged_states: Array `(searches, state)`, where the searches end
            that did not converge.
        unconverged_speeds: Array `(searches,)`, the speeds there.
    """

    states: np.ndarray
    speeds: np.ndarray
    jacobians: np.ndarray
    eigenvalues: np.ndarray
    contracting: np.ndarray
    neutral: np.ndarray
    expanding: np.ndarray
    dimension: np.ndarray
    members: list[np.ndarray]
    searches: np.ndarray
    unconverged_states: np.ndarray
    unconverged_speeds: np.ndarray

    @property
    def stable(self) -> np.ndarray:
        """Whether all directions of a point contract, Boolean `(points,)`."""
        return (self.neutral == 0) & (self.expanding == 0)

    @property
    def kinds(self) -> list[str]:
        """The kind of each point.

        `"stable"`, `"neutral"`, `"saddle"`, `"source"` or `"continuum"`.
        """
        columns = self.expanding, self.neutral, self.contracting, self.dimension
        return list(map(_kind, *columns))

    def __str__(self):
        counts = np.array([self.expanding, self.dimension]).tolist()
        kinds = zip(self.kinds, *counts, strict=True)
        points = [
            _count_of_kind(number, *kind)
            for kind, number in collections.Counter(kinds).items()
        ]
        converged = self.searches.sum()
        searches = converged + len(self.unconverged_speeds)
        return (
            f"{', '.join(points) or 'no fixed point'}; "
            f"{converged} of {searches} searches converged"
        )


def _kind(expanding, neutral, contracting, dimension):
    if dimension:
        return "continuum"
    if expanding:
        return "saddle" if neutral or contracting else "source"
    return "neutral" if neutral else "stable"


def _count_of_kind(number, kind, expanding, dimension):
    """The words for a number of points of one kind."""
    directions = f" ({expanding} expanding direction{'s' * (expanding > 1)})"
    name = kind + "s" * (number > 1 and kind in ("saddle", "source"))
    if kind == "continuum":
        name = f"{'continua' if number > 1 else kind} of dimension {dimension}"
    has_others = expanding > 0 and kind != "source"
    return f"{number} {name}{directions * has_others}"


def fixed_points(
    layer: keras.Layer,
    initial_states: "ArrayLike",
    *,
    x: "ArrayLike | None" = None,
    tolerance: float = 1e-16,
    distance: float = 1e-4,
    iterations: int = 100,
    modulus_tolerance: float = 1e-6,
) -> FixedPoints:
    """The fixed points of a recurrent layer under a constant input.

    speed(s) = |F(s, x) - s|^2, 0 at a fixed point

    s is the state of `state_trajectories`. From every initial state the speed
    is minimized by the method of Levenberg and Marquardt. A search with a speed
    of at most `tolerance` max(1, |s|^2) has converged; the others end at slow
    points, local minima of the speed, or run out of iterations.

    A direction contracts if the modulus of its eigenvalue of the Jacobian
    d F / d s is below 1, expands if it is above 1, and is neutral if it is 1
    within `modulus_tolerance`, or as far as rounding may have moved it. A point
    is stable if all directions contract. If none expands and some are neutral,
    the eigenvalues do not decide: h - h^3 attracts and h + h^3 repels.

    Ends of searches closer than `distance` are one point. Points with an
    eigenvalue near 1 between which further ones are found are a continuum, such
    as a line attractor, which is reported as one point with its members.

    Only what the searches reach is found: take initial states from where the
    network goes, such as a few hundred rows of `state_trajectories`, with some
    noise added. Everything is computed in float64, at a cost of order
    (initial states) * state^3 * iterations.

    Args:
        layer: A built recurrent layer or cell of Keras.
        initial_states: Array `(initial_states, state)`, finite.
        x: Array `(features,)`, finite, the constant input. Defaults to
            `None`: zeros.
        tolerance: Positive number, the largest speed of a fixed point.
            Defaults to 1e-16.
        distance: Positive number, the largest distance between two points
            that are one, in units of the largest norm of a state. Defaults
            to 1e-4.
        iterations: Positive integer, at most, for each search. Defaults to
            100.
        modulus_tolerance: Number from 0 to 1, how far from 1 the modulus of a
            neutral eigenvalue is at most. Defaults to 1e-6, for float32.

    Returns:
        A `FixedPoints`, a named tuple.

    Raises:
        ValueError: As in `state_trajectories`; if an argument is not as above,
            or F not finite at an initial state.

    Example:

    >>> layer = keras.layers.SimpleRNN(
    ...     1, recurrent_initializer=keras.initializers.Identity(2.0)
    ... )
    >>> layer.build((None, None, 1))
    >>> fixed_points = keras_rin.diagnostics.fixed_points(
    ...     layer, [[-1.0], [0.01], [1.0]]
    ... )
    >>> fixed_points.states.round(3) + 0.0  # s = tanh(2 s)
    array([[-0.958],
           [ 0.958],
           [ 0.   ]])
    >>> print(fixed_points)
    2 stable, 1 source; 3 of 3 searches converged

    Reference:
        Sussillo and Barak, 2013, Opening the black box.
    """
    cell = _cells.built_cell(layer)
    _cells.check_weights(cell)
    x = np.zeros(feature_count(cell) or 1) if x is None else x
    features = feature_count(cell) or np.size(x)
    x = _arguments.vector("x", x, features)
    smallest = np.finfo("float64").tiny
    tolerance = _arguments.finite_number("tolerance", tolerance, smallest)
    distance = _arguments.finite_number("distance", distance, smallest)
    iterations = _arguments.integer("iterations", iterations)
    modulus_tolerance = _arguments.finite_number(
        "modulus_tolerance", modulus_tolerance, 0, 1
    )
    with state_map(cell, "float64") as step:
        search = Search(step, x, tolerance, iterations)
        checked_states = search.checked_states(initial_states)
        states, speeds = search.minimize(checked_states)
        converged = search.has_converged(states, speeds)
        unconverged = states[~converged], speeds[~converged]
        states, speeds = states[converged], speeds[converged]
        distance *= np.linalg.norm([*checked_states, *states], axis=1).max()
        roots = _distinct_roots(search, states, speeds, distance)
        groups = _continua(roots, search)
    points = [
        _describe(roots, group, SAME_ROOT * distance, modulus_tolerance)
        for group in groups
    ]
    return _sorted_points(roots, sorted(points), unconverged)


class _Roots(typing.NamedTuple):
    """States that map to themselves, none of them close to another."""

    states: np.ndarray
    speeds: np.ndarray
    searches: np.ndarray
    jacobians: np.ndarray


class _Point(typing.NamedTuple):
    """One root, or the middle one of a continuum.

    Points are sorted by the first four fields.
    """

    expanding: int
    neutral: int
    dimension: int
    root: int
    eigenvalues: np.ndarray
    members: np.ndarray
    searches: int


def _distinct_roots(search, states, speeds, distance):
    searches = np.ones(len(states), int)
    states, speeds, searches = _distinct(states, speeds, searches, distance)
    # Duplicates are dropped, because refining takes longer than searching.
    states, speeds = search.refine(states, speeds)
    states, speeds, searches = _distinct(states, speeds, searches, distance)
    return _Roots(states, speeds, searches, search.jacobians(states))


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


def _describe(roots, group, root_distance, modulus_tolerance):
    """The `_Point` of a group of roots that are one point or continuum."""
    root, members, is_continuum = _members(roots.states, group, root_distance)
    # At a double root a residual r moves eigenvalues by the order of sqrt(r),
    # and the speed is r^2.
    speed = (roots.speeds[group] / speed_scale(roots.states[group])).max()
    tolerance = max(modulus_tolerance, 4 * speed**0.25)
    jacobian = roots.jacobians[root]
    singular_values = np.linalg.svd(minus_identity(jacobian), compute_uv=False)
    # A Jordan block has more eigenvalues of 1 than directions it maps to
    # themselves.
    nullity = max(1, np.count_nonzero(singular_values <= tolerance))
    # Rounding leaves a state s uncertain by eps |s| over the smallest singular
    # value of J - I, or by sqrt(eps) |s| where this is 0, and J with it.
    smallest = max(singular_values[-1], np.sqrt(_spectrum.ROUNDING))
    error = _spectrum.ROUNDING * (len(jacobian) + 1 / smallest)
    eigenvalues, is_neutral = _spectrum.neutral(jacobian, tolerance, error)
    by_modulus = np.argsort(-np.abs(eigenvalues), kind="stable")
    is_expanding = ~is_neutral & (np.abs(eigenvalues) > 1)
    return _Point(
        expanding=is_expanding.sum(),
        neutral=is_neutral.sum(),
        dimension=is_continuum * nullity,
        root=root,
        eigenvalues=eigenvalues[by_modulus],
        members=members,
        searches=roots.searches[group].sum(),
    )


def _sorted_points(roots, points, unconverged):
    def column(field):
        return np.array([getattr(point, field) for point in points], int)

    index, size = column("root"), roots.states.shape[1]
    eigenvalues = np.array([point.eigenvalues for point in points], complex)
    expanding, neutral = column("expanding"), column("neutral")
    return FixedPoints(
        states=roots.states[index],
        speeds=roots.speeds[index],
        jacobians=roots.jacobians[index],
        eigenvalues=eigenvalues.reshape(-1, size),
        contracting=size - expanding - neutral,
        neutral=neutral,
        expanding=expanding,
        dimension=column("dimension"),
        members=[point.members for point in points],
        searches=column("searches"),
        unconverged_states=unconverged[0],
        unconverged_speeds=unconverged[1],
    )


def _members(states, group, root_distance):
    """The middle state of a group, its members, and whether it is a continuum.

    A group no larger than `root_distance` is a single point.
    """
    offsets = states[group] - states[group].mean(axis=0)
    distances = np.linalg.norm(offsets, axis=1)
    index = group[distances.argmin()]
    is_continuum = 2 * distances.max() > root_distance
    return index, states[group if is_continuum else [index]], is_continuum


def _continua(roots, search):
    """An array of indices for each isolated root and for each continuum.

    Two roots with an eigenvalue near 1 belong to one continuum if they are
    neighbors in the minimum spanning tree and a fixed point lies between them.
    """
    states = roots.states
    eigenvalues = np.linalg.eigvals(roots.jacobians)
    is_near_one = (np.abs(eigenvalues - 1) <= NEAR_ONE).any(axis=1)
    isolated = [np.array([root]) for root in np.flatnonzero(~is_near_one)]
    near = np.flatnonzero(is_near_one)
    if len(near) < 2:
        return isolated + [near] * len(near)
    distances = scipy.spatial.distance.cdist(states[near], states[near])
    tree = scipy.sparse.csgraph.minimum_spanning_tree(distances).tocoo()
    first, second = states[near[tree.row]], states[near[tree.col]]
    between = first + BETWEEN * (second - first)
    refined, speeds = search.refine(*search.minimize(between))
    is_close = (
        np.linalg.norm(refined - between, axis=1) <= LARGEST_DRIFT * tree.data
    )
    linked = is_close & search.has_converged(refined, speeds)
    tree.data[~linked] = 0
    tree.eliminate_zeros()
    _, labels = scipy.sparse.csgraph.connected_components(tree, directed=False)
    return isolated + [near[labels == k] for k in range(labels.max() + 1)]
