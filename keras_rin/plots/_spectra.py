"""Plots of eigenvalues and pseudospectra."""

import itertools
from collections.abc import Mapping
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from keras_rin import _arguments
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
            Each point takes one singular value decomposition. A contour
            narrower than the distance of two points is not drawn. Defaults
            to 40.
        ax: A matplotlib `Axes` to draw on. Defaults to `None`: a new figure.

    Returns:
        The `Figure`.

    Raises:
        ValueError: If `recurrent_matrix` is not square, real and finite, or
            if `levels` or `points` are not as above.

    Example:

    >>> chain = np.eye(10, k=1)
    >>> figure = keras_rin.plots.plot_eigenvalues(chain, points=10)
    >>> figure.savefig(path)

    Reference:
        Trefethen and Embree, 2005, Spectra and pseudospectra.
    """
    matrix = _arguments.square_matrix("recurrent_matrix", recurrent_matrix)
    points = _arguments.integer("points", points, at_least=2)
    levels = _drawing.curve("levels", levels)
    axes = _drawing.axes(ax)
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
        distance = _smallest_singular_values(matrix, grid)
        lines = axes.contour(
            grid,
            grid,
            np.log10(np.maximum(distance, 1e-300)),
            levels=levels,
            colors="grey",
            linewidths=0.8,
            linestyles="solid",
        )
        axes.clabel(lines, fmt=lambda power: f"$10^{{{power:g}}}$")
    _unit_circle(axes)
    axes.plot(spectrum.real, spectrum.imag, ".", color="black")
    return axes.figure


def _smallest_singular_values(matrix, grid):
    """Those of z I - V on a square grid; V is real, so half of it suffices."""
    lower = grid[: (len(grid) + 1) // 2]
    values = [_distances(matrix, grid + 1j * y) for y in lower]
    mirrored = values[: len(grid) // 2][::-1]
    return np.array([*values, *mirrored])


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
        ax: A matplotlib `Axes` to draw on. Defaults to `None`: a new figure.

    Returns:
        The `Figure`.

    Raises:
        ValueError: If `eigenvalues` is no such dict, or empty.

    Example:

    >>> eigenvalues = {"stable": np.array([0.9 + 0.1j, 0.9 - 0.1j])}
    >>> figure = keras_rin.plots.plot_jacobian_spectra(eigenvalues)
    >>> figure.savefig(path)
    """
    eigenvalues = _drawing.named("eigenvalues", eigenvalues, _complex_numbers)
    axes = _drawing.axes(ax)
    _unit_circle(axes)
    markers = itertools.cycle(".x^s+")
    for name, values in eigenvalues.items():
        axes.plot(
            *values,
            next(markers),
            markersize=4,
            markerfacecolor="none",
            label=name,
            color=_drawing.style(name).get("color"),
        )
    axes.legend()
    return axes.figure


def _complex_numbers(name, values):
    """The real and the imaginary parts."""
    values = np.ravel(values)
    parts = values.real, values.imag
    return [_arguments.real_array(name, part) for part in parts]


def _unit_circle(axes):
    circle = np.exp(2j * np.pi * np.linspace(0, 1, 200))
    axes.plot(circle.real, circle.imag, ":", color="black", linewidth=1)
    axes.set_xlabel("real part")
    axes.set_ylabel("imaginary part")
    axes.set_aspect("equal")
    axes.locator_params(nbins=5)
