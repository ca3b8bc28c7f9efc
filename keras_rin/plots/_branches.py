"""Plots of cycles, and of branches of fixed points over an input."""

from typing import TYPE_CHECKING
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from keras_rin import _arguments
from keras_rin.diagnostics import Branches
from keras_rin.diagnostics import Cycles
from keras_rin.plots import _drawing
from keras_rin.plots._fixed_points import UNSTABLE
from keras_rin.plots._fixed_points import projection_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


FOLDS = {"marker": "s", "linestyle": "none", "label": "fold"}


def plot_branches(
    branches: Branches,
    *,
    project: "Callable[[np.ndarray], Any] | ArrayLike | None" = None,
    ax: "Axes | None" = None,
) -> "Figure":
    """Plots a bifurcation diagram: one number of fixed points over the input.

    Stable pieces are solid lines, others dashed; open squares are folds.

    Args:
        branches: The result of `keras_rin.diagnostics.fixed_point_branches`,
            with a piece.
        project: Function or layer that takes states `(count, state)` and
            returns an array `(count, 1)`, such as a read-out, or a matrix
            `(state, 1)`. Defaults to `None`: the first principal component of
            the ends of all pieces.
        ax: A matplotlib `Axes`. Defaults to `None`.
    """
    if not len(branches.ends):
        raise ValueError(
            f"`branches` must have a piece. Received: branches={branches}"
        )
    states = branches.states.reshape(-1, branches.states.shape[2])
    projection = projection_of(project, states, 1)
    shape = projection(states[:1]).shape
    _arguments.check_shape("project(states)", shape, (1, 1))
    values = np.reshape(projection(states), (-1, 2))
    name = "first principal component" if project is None else "projection"
    axes = _drawing.axes(ax, "u, from the first input to the second", name)
    for is_stable in True, False:
        label = "stable" if is_stable else "unstable or neutral"
        chosen = branches.stable == is_stable
        lines = branches.intervals[chosen], values[chosen]
        for interval, ends in zip(*lines, strict=True):
            style = line_style(axes, is_stable)
            axes.plot(interval, ends, label=label, **style)
            label = "_"  # one entry of the legend for each kind
    is_fold = np.array(branches.ends) == "fold"
    if is_fold.any():
        points = branches.intervals[is_fold], values[is_fold]
        face = axes.get_facecolor()
        axes.plot(*points, color=UNSTABLE, markerfacecolor=face, **FOLDS)
    _drawing.legend_below(axes, ncols=3)
    return axes.figure


def plot_cycles(
    cycles: Cycles,
    *,
    project: "Callable[[np.ndarray], Any] | ArrayLike | None" = None,
    ax: "Axes | None" = None,
) -> "Figure":
    """Plots cycles in two dimensions: their states, joined in order.

    Stable cycles have solid lines and filled circles, others dashed lines and
    open circles.

    Args:
        cycles: The result of `keras_rin.diagnostics.cycles`, with a cycle.
        project: Function, layer or matrix, as in `plot_fixed_points`. Defaults
            to `None`: the principal components of all states.
        ax: A matplotlib `Axes`. Defaults to `None`.
    """
    count, period, units = cycles.states.shape
    if not count:
        raise ValueError(
            f"`cycles` must have a cycle. Received: cycles={cycles}"
        )
    states = cycles.states.reshape(-1, units)
    projection = projection_of(project, states, 2)
    shape = projection(states[:1]).shape
    _arguments.check_shape("project(states)", shape, (1, 2))
    name = "principal component" if project is None else "projection"
    axes = _drawing.axes(ax, f"{name} 1", f"{name} 2")
    for is_stable in True, False:
        chosen = cycles.states[cycles.stable == is_stable]
        label = "stable" if is_stable else "unstable or neutral"
        label = f"{label} ({len(chosen)}), of period {period}"
        for closed in np.concatenate([chosen, chosen[:, :1]], axis=1):
            style = line_style(axes, is_stable) | {
                "marker": "o",
                "label": label,
            }
            face = None if is_stable else axes.get_facecolor()
            axes.plot(*projection(closed).T, markerfacecolor=face, **style)
            label = "_"  # one entry of the legend for each kind
    _drawing.legend_below(axes, ncols=2)
    return axes.figure


def line_style(axes, is_stable):
    """Solid lines in the color of text, or dashed ones."""
    if is_stable:
        return {"color": _drawing.foreground(axes), "linestyle": "-"}
    return {"color": UNSTABLE, "linestyle": "--"}
