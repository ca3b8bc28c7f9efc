"""Plots of fixed points and trajectories, projected to a plane or a space."""

import collections
from collections.abc import Callable
from typing import TYPE_CHECKING
from typing import Any

import keras
import numpy as np
from numpy.typing import ArrayLike

from keras_rin import _arguments
from keras_rin.diagnostics import FixedPoints
from keras_rin.diagnostics._fixed_points.kinds import count_of_kind
from keras_rin.plots import _drawing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

UNSTABLE = "#d95f02"
FEW = 6  # values that a color bar names one by one
MODE = np.linspace(-0.1, 0.1, 9)[:, None]  # of the extent of all states


def plot_fixed_points(
    fixed_points: FixedPoints,
    trajectories: "ArrayLike | None" = None,
    *,
    project: "Callable[[np.ndarray], Any] | ArrayLike | None" = None,
    components: int = 2,
    modes: bool = True,
    color_by: "ArrayLike | None" = None,
    color_label: str = "trajectory",
    ax: "Axes | None" = None,
) -> "Figure":
    """Plots fixed points in two or three dimensions, among trajectories.

    Stable points are filled circles, points with expanding directions open
    markers by their number, points with neutral directions alone plus signs,
    and members of a continuum dots. The legend has the words that the result
    prints.

    Args:
        fixed_points: The result of `keras_rin.diagnostics.fixed_points`.
        trajectories: Array `(batch, time, state)`, as returned by
            `keras_rin.diagnostics.state_trajectories`, drawn as thin lines.
            Defaults to `None`.
        project: Function or layer that takes states `(count, state)` and
            returns an array `(count, components)`, such as the read-out of the
            model, or a matrix `(state, components)`. Defaults to `None`: the
            principal components of fixed points and trajectories together.
        components: Integer, 2 or 3 dimensions to draw. Defaults to 2.
        modes: Whether a line through each point shows each of its expanding
            directions, the eigenvectors with an eigenvalue of modulus above 1,
            of a complex pair the real and the imaginary part. Defaults to
            `True`.
        color_by: Array `(batch,)` of a number for each trajectory, such as
            its class, from dark to light, with a color bar. Defaults to
            `None`: the time step, without one.
        color_label: The label of the color bar. Defaults to `"trajectory"`.
        ax: A matplotlib `Axes`, for three components with
            `projection="3d"`. Defaults to `None`.
    """
    if components not in (2, 3):
        raise ValueError(
            f"`components` must be 2 or 3. Received: components={components}"
        )
    size = fixed_points.states.shape[1]
    lines = np.zeros((0, 0, size)) if trajectories is None else trajectories
    lines = _arguments.finite_array("trajectories", lines)
    _arguments.check_shape("trajectories", lines.shape, ("batch", "time", size))
    if not len(lines) and not fixed_points.members:
        raise ValueError(
            "`fixed_points` has no point: pass `trajectories` to draw them. "
            "Received: trajectories=None"
        )
    if color_by is not None:
        color_by = _arguments.finite_array("color_by", color_by)
        _arguments.check_shape("color_by", color_by.shape, (len(lines),))
    states = np.concatenate([*lines, *fixed_points.members])
    projection = projection_of(project, states, components)
    shape = projection(states[:1]).shape
    _arguments.check_shape("project(states)", shape, (1, components))
    name = "principal component" if project is None else "projection"
    axes = _drawing.axes(ax, *(f"{name} {n + 1}" for n in range(components)))
    axes.locator_params(nbins=5)
    if lines.size:
        lines = np.array([projection(line) for line in lines])
        drawn = _draw_trajectories(axes, lines, color_by)
        if color_by is not None:
            _add_color_bar(axes, drawn, np.unique(color_by), color_label)
    if modes:
        for mode in _modes(fixed_points, np.ptp(states, axis=0).max()):
            style = {"color": UNSTABLE, "linewidth": 1.2, "zorder": 2}
            axes.plot(*projection(mode).T, "-", **style)
    draw_points(axes, fixed_points, projection)
    return axes.figure


def draw_points(axes, fixed_points, projection, is_drawn=None):
    """The marks of fixed points, of some of them alone, with a legend."""
    for kind, members in _members_by_kind(fixed_points, is_drawn):
        style = _style(axes, *kind)
        style["label"] = _label(len(members), *kind)
        coordinates = projection(np.concatenate(members)).T
        axes.plot(*coordinates, linestyle="none", zorder=3, **style)
        _drawing.legend_below(axes, ncols=2)


def projection_of(project, states, components):
    """A function from states to coordinates."""
    if project is None:
        center = states.mean(axis=0)
        _, _, axes = np.linalg.svd(states - center, full_matrices=False)
        # A state of one number has no second component.
        axes = np.pad(axes[:components], [(0, components), (0, 0)])[:components]
        return lambda states: (states - center) @ axes.T
    if not callable(project):
        matrix = _arguments.finite_array("project", project)
        return lambda states: states @ matrix
    return lambda states: keras.ops.convert_to_numpy(project(states))


def _draw_trajectories(axes, lines, color_by):
    """One collection of thin segments, the more the more transparent."""
    import matplotlib
    from matplotlib import collections as flat
    from mpl_toolkits.mplot3d import art3d

    batch, time, dimensions = lines.shape
    segments = np.stack([lines[:, :-1], lines[:, 1:]], axis=2)
    values = np.arange(time) if color_by is None else color_by[:, None]
    # Neither end of the map is lost on a white or a dark page.
    colors = matplotlib.colormaps["viridis"](np.linspace(0.15, 0.85, 256))
    kinds = {2: flat.LineCollection, 3: art3d.Line3DCollection}
    collection = kinds[dimensions](
        segments.reshape(-1, 2, dimensions),
        array=np.broadcast_to(values, (batch, time))[:, 1:].ravel(),
        cmap=matplotlib.colors.ListedColormap(colors),
        linewidths=0.6,
        alpha=max(0.25, min(0.8, 20 / batch)),
        capstyle="round",
        zorder=1,
    )
    axes.add_collection(collection)
    if dimensions == 3:
        axes.auto_scale_xyz(*lines.reshape(-1, 3).T)
    axes.autoscale_view()
    return collection


def _add_color_bar(axes, collection, values, label):
    from matplotlib.cm import ScalarMappable

    # The lines may be nearly transparent.
    opaque = ScalarMappable(collection.norm, collection.cmap)
    bar = axes.figure.colorbar(opaque, ax=axes, pad=0.02, label=label)
    if len(values) <= FEW:
        bar.set_ticks(values)


def _modes(fixed_points, extent):
    """States on a line along each expanding direction of each point."""
    fields = fixed_points.states, fixed_points.jacobians, fixed_points.expanding
    for state, jacobian, expanding in zip(*fields, strict=True):
        eigenvalues, vectors = np.linalg.eig(jacobian)
        # Of a conjugate pair the second shows the imaginary part.
        vectors = np.where(eigenvalues.imag < 0, vectors.imag, vectors.real).T
        for vector in vectors[np.argsort(-np.abs(eigenvalues))[:expanding]]:
            yield state + extent * MODE * vector / np.linalg.norm(vector)


def _members_by_kind(fixed_points, is_drawn=None):
    """Pairs of a kind of points and a list of their members, sorted."""
    names = "dimension", "expanding", "kinds", "members"
    fields = (getattr(fixed_points, name) for name in names)
    points = collections.defaultdict(list)
    for k, (dimension, expanding, *rest) in enumerate(
        zip(*fields, strict=True)
    ):
        kind, members = rest
        if is_drawn is None or is_drawn[k]:
            points[int(dimension), int(expanding), kind].append(members)
    return sorted(points.items())


def _label(count, dimension, expanding, name):
    """What the line of the result says of points of one kind."""
    return count_of_kind(count, name, expanding, dimension)


def _style(axes, dimension, expanding, name):
    if dimension:
        return {"marker": ".", "markersize": 3, "color": "#1f77b4"}
    if name == "stable":
        return {"marker": "o", "color": _drawing.foreground(axes)}
    marker = "+xs^D"[min(expanding, 4)]
    face = axes.get_facecolor()
    return {"marker": marker, "color": UNSTABLE, "markerfacecolor": face}
