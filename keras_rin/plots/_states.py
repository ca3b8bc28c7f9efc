"""Plots of states in the plane of their principal components."""

from typing import TYPE_CHECKING
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from keras_rin.plots import _drawing

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def fixed_points(
    found: Any,
    trajectories: ArrayLike | None = None,
    ax: "Axes | None" = None,
) -> Any:
    """Plots fixed points in the plane of two principal components.

    The components are those of the fixed points and the trajectories together.

    Stable points are filled circles, points with expanding directions, which
    the legend calls unstable, open markers by their number, points with neutral
    directions alone plus signs, and members of a continuum dots.

    Args:
        found: The result of `keras_rin.diagnostics.fixed_points`.
        trajectories: Array `(batch, time, state)`, as returned by
            `keras_rin.diagnostics.state_trajectories`, drawn as thin lines.
            Defaults to `None`.
        ax: A matplotlib `Axes` to draw on. Defaults to `None`: a new figure.

    Returns:
        The matplotlib `Figure`.

    Raises:
        ValueError: If there are neither fixed points nor trajectories.

    Example:

    >>> layer = keras.layers.GRU(8)
    >>> layer.build((None, None, 1))
    >>> states = keras_rin.diagnostics.state_trajectories(
    ...     layer, np.ones((5, 20, 1))
    ... )
    >>> found = keras_rin.diagnostics.fixed_points(
    ...     layer, [1.0], states[:, -1]
    ... )
    >>> figure = keras_rin.plots.fixed_points(found, states)
    >>> figure.savefig(path)
    """
    ax = _drawing.axes(ax)
    lines = np.asarray([] if trajectories is None else trajectories, "float64")
    if not len(lines) and not len(found.members):
        raise ValueError(
            "`found` has no fixed point: pass `trajectories` to draw them. "
            "Received: trajectories=None"
        )
    states = np.concatenate([*lines, *found.members])
    center = states.mean(axis=0)
    _, _, components = np.linalg.svd(states - center, full_matrices=False)

    def project(points):
        # A state of one number has no second component.
        return np.pad((points - center) @ components[:2].T, [(0, 0), (0, 1)])

    for line in lines:
        ax.plot(
            *project(line).T[:2], "-", color="0.75", linewidth=0.6, zorder=1
        )
    points: dict[tuple, list] = {}
    counts = found.dimension, found.expanding, found.neutral, found.contracting
    for *kind, members in zip(*counts, found.members, strict=True):
        points.setdefault(_kind_of_point(*kind), []).append(members)
    for (dimension, expanding, name), members in sorted(points.items()):
        label = f"{name} ({len(members)})"
        style = _style(dimension, expanding, name)
        coordinates = project(np.concatenate(members)).T[:2]
        ax.plot(*coordinates, linestyle="none", label=label, zorder=3, **style)
    ax.set_xlabel("first principal component")
    ax.set_ylabel("second principal component")
    if points:
        # A legend below the axes hides no point.
        ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.15), ncols=2)
    return ax.figure


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
