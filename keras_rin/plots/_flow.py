"""The flow of a recurrent layer in a plane of its states."""

from typing import TYPE_CHECKING

import keras
import numpy as np
from numpy.typing import ArrayLike

from keras_rin import _arguments
from keras_rin._layer_walk.layers import cell_of
from keras_rin._layer_walk.layers import feature_count
from keras_rin.diagnostics import FixedPoints
from keras_rin.diagnostics import state_trajectories
from keras_rin.plots import _drawing
from keras_rin.plots._fixed_points import draw_points

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NEAR = 0.02  # how far from the plane a fixed point is drawn, of the extent


def plot_flow(
    layer: keras.Layer,
    plane: "ArrayLike",
    *,
    x: "ArrayLike | None" = None,
    fixed_points: FixedPoints | None = None,
    extent: float | None = None,
    points: int = 30,
    ax: "Axes | None" = None,
) -> "Figure":
    """Plots speed and direction of the state in a plane, under one input.

    The color is the speed |F(s, x) - s|, on a logarithmic scale. Lines follow
    the part of F(s, x) - s within the plane. Fixed points that lie in the plane
    have the marks of `plot_fixed_points`.

    Args:
        layer: A built recurrent layer or cell of Keras.
        plane: Array of two directions `(2, state)`, such as the right vectors
            of a low-rank layer or the read-out, transposed, in a plane through
            the mean of `fixed_points` or else 0; or of three points of the
            plane `(3, state)`, such as three fixed points.
        x: Array `(features,)`, finite, the constant input. Defaults to
            `None`: zeros.
        fixed_points: The result of `keras_rin.diagnostics.fixed_points` under
            the same input. Defaults to `None`.
        extent: Positive number, half of the side of the square that is drawn.
            Defaults to `None`: what encloses the points of the plane and the
            fixed points, or 1.
        points: Integer of at least 2, number of grid points along each axis.
            Defaults to 30.
        ax: A matplotlib `Axes`. Defaults to `None`.
    """
    points = _arguments.integer("points", points, at_least=2)
    plane = _arguments.finite_array("plane", plane)
    rows = len(plane) if plane.ndim == 2 and len(plane) == 3 else 2
    size = plane.shape[-1] if plane.ndim else 0
    _arguments.check_shape("plane", plane.shape, (rows, size))
    states = np.zeros((0, size))
    if fixed_points is not None:
        states = np.concatenate([states, *fixed_points.members])
    if rows == 3:
        center, plane = plane.mean(axis=0), plane
        corners, directions = plane - center, plane[1:] - plane[0]
    else:
        center = states.mean(axis=0) if len(states) else np.zeros(size)
        corners, directions = np.zeros((0, size)), plane
    basis = _orthonormal(directions)
    inside = np.concatenate([corners, states - center]) @ basis.T
    if extent is None:
        extent = 1.3 * np.abs(inside).max(initial=0) or 1.0
    extent = _arguments.finite_number("extent", extent, 1e-300)
    side = np.linspace(-extent, extent, points)
    first, second = np.meshgrid(side, side)
    grid = np.stack([first.ravel(), second.ravel()], axis=1)
    change = _changes(layer, center + grid @ basis, x)
    axes = _drawing.axes(ax, "along the first direction", "along the second")
    _draw_speed(axes, side, np.linalg.norm(change, axis=1))
    flow = (change @ basis.T).T.reshape(2, points, points)
    style = {"color": "white", "linewidth": 0.6, "arrowsize": 0.7}
    axes.streamplot(side, side, *flow, density=1.2, **style)
    if fixed_points is not None:
        offsets = [members - center for members in fixed_points.members]
        distances = [
            np.linalg.norm(part - part @ basis.T @ basis, axis=1).min()
            for part in offsets
        ]
        is_near = np.array(distances) <= NEAR * extent
        draw_points(
            axes, fixed_points, lambda s: (s - center) @ basis.T, is_near
        )
    axes.set(xlim=(-extent, extent), ylim=(-extent, extent))
    return axes.figure


def _changes(layer, states, x):
    """F(s, x) - s of each state."""
    features = feature_count(cell_of(layer)) or np.size(x)
    x = np.zeros(features) if x is None else x
    x = _arguments.vector("x", x, features)
    inputs = np.tile(x, (len(states), 1, 1))
    pairs = state_trajectories(
        layer, inputs, initial_states=states, dtype="float64"
    )
    return pairs[:, 1] - pairs[:, 0]


def _orthonormal(directions):
    """Two orthonormal rows, the first along the first direction."""
    basis, triangle = np.linalg.qr(directions.T)
    sizes = np.abs(np.diagonal(triangle))
    if len(sizes) < 2 or sizes.min() <= 1e-9 * np.linalg.norm(directions):
        raise ValueError(
            "`plane` must span a plane: two directions, or three points that "
            f"are not on a line. Received: plane={directions}"
        )
    return (basis * np.sign(np.diagonal(triangle))).T


def _draw_speed(axes, side, speeds):
    from matplotlib.colors import LogNorm

    speeds = speeds.reshape(len(side), len(side))
    largest = speeds.max() or 1.0
    limits = max(speeds.min(), 1e-3 * largest), largest
    norm = LogNorm(limits[0], max(limits[1], 1.001 * limits[0]))
    image = axes.pcolormesh(
        side, side, speeds, norm=norm, cmap="viridis", shading="gouraud"
    )
    image.set_rasterized(True)  # of a file of vectors, too
    axes.figure.colorbar(image, ax=axes, pad=0.02, label="speed |F(s, x) - s|")
