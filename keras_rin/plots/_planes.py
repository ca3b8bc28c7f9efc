"""Plots in a plane: of eigenvalues, or of two components of a state."""

import collections
import itertools
from collections.abc import Mapping
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from keras_rin import _arguments
from keras_rin.diagnostics import FixedPoints
from keras_rin.plots import _drawing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def plot_eigenvalues(
    recurrent_matrix: ArrayLike,
    *,
    levels: Sequence[float] = (-3, -2, -1),
    points: int = 40,
    ax: "Axes | None" = None,
) -> "Figure":
    """Plots eigenvalues, pseudospectra and the unit circle.

    The contour of level e encloses every complex number that is an eigenvalue
    of some matrix within 10^e of V, in the spectral norm. For a normal matrix
    the contours are circles of that radius around the eigenvalues. Larger
    contours indicate that V is non-normal.

    Args:
        recurrent_matrix: Array V `(units, units)`.
        levels: Increasing sequence of numbers, the exponents e. If empty, only
            the eigenvalues are drawn. Defaults to (-3, -2, -1).
        points: Integer of at least 2, number of grid points along each axis.
            Each takes one singular value decomposition. Contours narrower
            than their distance are not drawn. Defaults to 40.
        ax: A matplotlib `Axes`. Defaults to `None`.

    Example:

    >>> chain = np.eye(10, k=1)
    >>> figure = keras_rin.plots.plot_eigenvalues(chain, points=10)

    Reference:
        Trefethen and Embree, 2005, Spectra and pseudospectra.
    """
    matrix = _arguments.square_matrix("recurrent_matrix", recurrent_matrix)
    points = _arguments.integer("points", points, at_least=2)
    levels = _drawing.curve("levels", levels)
    axes = _complex_plane(ax)
    spectrum = np.linalg.eigvals(matrix)
    side = 1.2 * max(1, np.abs(spectrum).max())
    if len(levels):
        # Each contour encloses an eigenvalue, so a contour that does not
        # cross a circle around all eigenvalues lies inside the circle.
        half_circle = np.exp(1j * np.linspace(0, np.pi, points))
        radius = 10.0 ** max(levels)
        while _distances(matrix, side * half_circle).min() < radius:
            side *= 1.2
        grid = np.linspace(-side, side, points)
        # V is real, so the lower half of the plane mirrors the upper one.
        upper = [_distances(matrix, grid + 1j * y) for y in grid[points // 2 :]]
        distances = [*upper[points % 2 :][::-1], *upper]
        powers = np.log10(np.maximum(distances, 1e-300))
        style = {"colors": "grey", "linewidths": 0.8, "linestyles": "solid"}
        lines = axes.contour(grid, grid, powers, levels=levels, **style)
        axes.clabel(lines, fmt=lambda power: f"$10^{{{power:g}}}$")
    axes.plot(spectrum.real, spectrum.imag, ".", color="black")
    return axes.figure


def _distances(matrix, z):
    """The smallest singular value of z I - V for each z."""
    shifted = z[:, None, None] * np.eye(len(matrix)) - matrix
    return np.linalg.svd(shifted, compute_uv=False)[:, -1]


def plot_jacobian_spectra(
    eigenvalues: Mapping[str, ArrayLike], *, ax: "Axes | None" = None
) -> "Figure":
    """Plots eigenvalues of Jacobians and the unit circle.

    Args:
        eigenvalues: Dict of complex arrays by name, of any shape, such as the
            `eigenvalues` that `keras_rin.diagnostics.fixed_points` returns.
        ax: A matplotlib `Axes`. Defaults to `None`.
    """
    eigenvalues = _drawing.named("eigenvalues", eigenvalues, _complex_numbers)
    axes = _complex_plane(ax)
    markers = itertools.cycle(".x^s+")
    for name, values in eigenvalues.items():
        style = {"markersize": 4, "markerfacecolor": "none"}
        style["color"] = _drawing.style(name).get("color")
        axes.plot(*values, next(markers), label=name, **style)
    return _drawing.with_legend(axes)


def _complex_numbers(name, values):
    """The real and the imaginary parts."""
    values = np.ravel(values)
    parts = values.real, values.imag
    return [_arguments.real_array(name, part) for part in parts]


def _complex_plane(ax):
    """The axes with the unit circle."""
    axes = _drawing.axes(ax, "real part", "imaginary part")
    circle = np.exp(2j * np.pi * np.linspace(0, 1, 200))
    axes.plot(circle.real, circle.imag, ":", color="black", linewidth=1)
    axes.set_aspect("equal")
    axes.locator_params(nbins=5)
    return axes


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
        ax: A matplotlib `Axes`. Defaults to `None`.
    """
    _drawing.result(FixedPoints, "fixed_points", fixed_points)
    size = fixed_points.states.shape[1]
    lines = np.zeros((0, 0, size)) if trajectories is None else trajectories
    lines = _arguments.finite_array("trajectories", lines)
    _arguments.check_shape("trajectories", lines.shape, ("batch", "time", size))
    if not len(lines) and not fixed_points.members:
        raise ValueError(
            "`fixed_points` has no point: pass `trajectories` to draw them. "
            "Received: trajectories=None"
        )
    axes = _drawing.axes(ax, "principal component 1", "principal component 2")
    states = np.concatenate([*lines, *fixed_points.members])
    center = states.mean(axis=0)
    _, _, components = np.linalg.svd(states - center, full_matrices=False)
    # A state of one number has no second component.
    plane = np.pad(components[:2], [(0, 1), (0, 0)])[:2]
    for line in lines:
        style = {"color": "0.75", "linewidth": 0.6, "zorder": 1}
        axes.plot(*(plane @ (line - center).T), "-", **style)
    members_by_kind = _members_by_kind(fixed_points)
    for (dimension, expanding, name), members in members_by_kind:
        style = _style(dimension, expanding, name)
        style["label"] = f"{name} ({len(members)})"
        coordinates = plane @ (np.concatenate(members) - center).T
        axes.plot(*coordinates, linestyle="none", zorder=3, **style)
    if members_by_kind:
        # A legend below the axes hides no point.
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.15), ncols=2)
    return axes.figure


def _members_by_kind(fixed_points):
    """Pairs of a kind of points and a list of their members, sorted."""
    names = "dimension", "expanding", "neutral", "contracting", "members"
    fields = (getattr(fixed_points, name) for name in names)
    points = collections.defaultdict(list)
    for *counts, members in zip(*fields, strict=True):
        points[_kind_of_point(*counts)].append(members)
    return sorted(points.items())


def _kind_of_point(dimension, expanding, neutral, contracting):
    """The dimension of a continuum, expanding directions, and the name."""
    name = f"neutral in {neutral}" if neutral else "stable"
    if dimension:
        name = f"continuum of dimension {dimension}"
    elif expanding:
        name = "saddle" if contracting or neutral else "source"
    name += f", {expanding} unstable" if expanding else ""
    return dimension, expanding, name


def _style(dimension, expanding, name):
    if dimension:
        return {"marker": ".", "markersize": 3, "color": "#1f77b4"}
    if name == "stable":
        return {"marker": "o", "color": "black"}
    marker = "+xs^D"[min(expanding, 4)]
    return {"marker": marker, "color": "#d95f02", "markerfacecolor": "white"}
