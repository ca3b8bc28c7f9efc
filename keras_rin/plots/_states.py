"""Plots of states in the plane of their principal components."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from keras_rin import _arguments
from keras_rin.diagnostics import FixedPoints
from keras_rin.plots import _drawing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def plot_fixed_points(
    fixed_points: FixedPoints,
    trajectories: ArrayLike | None = None,
    *,
    ax: "Axes | None" = None,
) -> "Figure":
    """Plots fixed points in the plane of two principal components.

    The components are those of the fixed points and the trajectories together.

    Stable points are filled circles, points with expanding directions, which
    the legend calls unstable, open markers by their number, points with neutral
    directions alone plus signs, and members of a continuum dots.

    Args:
        fixed_points: The result of `keras_rin.diagnostics.fixed_points`.
        trajectories: Array `(batch, time, state)`, as returned by
            `keras_rin.diagnostics.state_trajectories`, drawn as thin lines.
            Defaults to `None`.
        ax: A matplotlib `Axes` to draw on. Defaults to `None`: a new figure.

    Returns:
        The `Figure`.

    Raises:
        ValueError: If there are neither fixed points nor trajectories, or if
            one of the two is not as above.

    Example:

    >>> layer = keras.layers.GRU(8)
    >>> layer.build((None, None, 1))
    >>> states = keras_rin.diagnostics.state_trajectories(
    ...     layer, np.ones((5, 20, 1))
    ... )
    >>> fixed_points = keras_rin.diagnostics.fixed_points(
    ...     layer, states[:, -1], x=[1.0]
    ... )
    >>> figure = keras_rin.plots.plot_fixed_points(fixed_points, states)
    >>> figure.savefig(path)
    """
    _drawing.result(FixedPoints, "fixed_points", fixed_points)
    lines = np.zeros((0, 0, fixed_points.states.shape[1]))
    if trajectories is not None:
        expected = "batch", "time", lines.shape[-1]
        lines = _arguments.finite_array("trajectories", trajectories)
        _arguments.check_shape("trajectories", lines.shape, expected)
    if not len(lines) and not fixed_points.members:
        raise ValueError(
            "`fixed_points` has no point: pass `trajectories` to draw them. "
            "Received: trajectories=None"
        )
    axes = _drawing.axes(ax)
    states = np.concatenate([*lines, *fixed_points.members])
    center = states.mean(axis=0)
    _, _, components = np.linalg.svd(states - center, full_matrices=False)

    def project(points):
        # A state of one number has no second component.
        return np.pad((points - center) @ components[:2].T, [(0, 0), (0, 1)])

    for line in lines:
        axes.plot(
            *project(line).T[:2], "-", color="0.75", linewidth=0.6, zorder=1
        )
    members_by_kind = _members_by_kind(fixed_points)
    for (dimension, expanding, name), members in members_by_kind:
        label = f"{name} ({len(members)})"
        style = _style(dimension, expanding, name)
        coordinates = project(np.concatenate(members)).T[:2]
        axes.plot(
            *coordinates, linestyle="none", label=label, zorder=3, **style
        )
    axes.set_xlabel("first principal component")
    axes.set_ylabel("second principal component")
    if members_by_kind:
        # A legend below the axes hides no point.
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.15), ncols=2)
    return axes.figure


def _members_by_kind(fixed_points):
    """Pairs of a kind of points and a list of their members, sorted."""
    counts = (
        fixed_points.dimension,
        fixed_points.expanding,
        fixed_points.neutral,
        fixed_points.contracting,
    )
    points: dict[tuple, list] = {}
    for *kind, members in zip(*counts, fixed_points.members, strict=True):
        points.setdefault(_kind_of_point(*kind), []).append(members)
    return sorted(points.items())


def _kind_of_point(dimension, expanding, neutral, contracting):
    """The dimension of a continuum, expanding directions, and the name."""
    if dimension:
        name = f"continuum of dimension {dimension}"
    elif expanding:
        name = "saddle" if contracting or neutral else "source"
    else:
        name = f"neutral in {neutral}" if neutral else "stable"
    name += f", {expanding} unstable" if expanding else ""
    return dimension, expanding, name


def _style(dimension, expanding, name):
    if dimension:
        return {"marker": ".", "markersize": 3, "color": "#1f77b4"}
    if name == "stable":
        return {"marker": "o", "color": "black"}
    marker = ["+", "x", "s", "^", "D"][min(expanding, 4)]
    return {"marker": marker, "color": "#d95f02", "markerfacecolor": "white"}
