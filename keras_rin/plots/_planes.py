"""Plots of eigenvalues in the complex plane."""

import itertools
from collections.abc import Mapping
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import scipy
from numpy.typing import ArrayLike

from keras_rin import _arguments
from keras_rin.plots import _drawing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def plot_eigenvalues(
    recurrent_matrix: "ArrayLike | Mapping[str, ArrayLike]",
    *,
    levels: Sequence[float] = (-3, -2, -1),
    points: int = 100,
    ax: "Axes | None" = None,
) -> "Figure":
    """Plots eigenvalues, pseudospectra and the unit circle.

    The contour of level e encloses every complex number that is an eigenvalue
    of some matrix at a distance of 10^e from V, in the spectral norm. For a
    normal matrix the contours are circles of that radius around the
    eigenvalues. Larger contours indicate that V is non-normal.

    Args:
        recurrent_matrix: Array V `(units, units)`, or a dict of such arrays by
            name, as `keras_rin.diagnostics.recurrent_matrices` returns, each
            with a color.
        levels: Increasing sequence of numbers, the exponents e. If empty, only
            the eigenvalues are drawn. Defaults to (-3, -2, -1).
        points: Integer of at least 2, number of grid points along each axis.
            Contours narrower than their distance are not drawn. Defaults to
            100.
        ax: A matplotlib `Axes`. Defaults to `None`.

    Example:

    >>> chain = np.eye(10, k=1)
    >>> figure = keras_rin.plots.plot_eigenvalues(chain, points=10)

    Reference:
        Trefethen and Embree, 2005, Spectra and pseudospectra.
    """
    check, name = _arguments.square_matrix, "recurrent_matrix"
    if isinstance(recurrent_matrix, Mapping):
        matrices = _drawing.named(name, recurrent_matrix, check)
    else:
        matrices = {"": check(name, recurrent_matrix)}
    points = _arguments.integer("points", points, at_least=2)
    levels = _drawing.curve("levels", levels)
    axes = _complex_plane(ax)
    colors = itertools.cycle([_drawing.foreground(axes), *_drawing.COLORS])
    entries = []
    markers = itertools.cycle(".x+^s")
    for name, matrix in matrices.items():
        spectrum = np.linalg.eigvals(matrix)
        color = _drawing.style(name).get("color", next(colors))
        if len(levels):
            side = 1.2 * max(1, np.abs(spectrum).max())
            contour_color = color if name else "grey"
            lines = _draw_pseudospectra(
                axes, matrix, side, levels, points, contour_color
            )
        style = {"color": color, "zorder": 3, "linestyle": "none"}
        style |= {"marker": next(markers), "label": name or "_eigenvalues"}
        entries += axes.plot(spectrum.real, spectrum.imag, **style)
    labels = list(matrices) if len(matrices) > 1 or "" not in matrices else []
    handles, title = entries[: len(labels)], None
    if len(levels):
        handles += lines.legend_elements()[0]
        labels += [f"$10^{{{power:g}}}$" for power in levels]
        title = "pseudospectra, by the distance from V"
    if labels:
        _drawing.legend_below(axes, handles, labels, ncols=6, title=title)
    return axes.figure


def _draw_pseudospectra(axes, matrix, side, levels, points, color):
    triangle, _ = scipy.linalg.schur(matrix, "complex")
    # Each contour encloses an eigenvalue, so a contour that does not cross a
    # circle around all eigenvalues lies inside the circle.
    half_circle = np.exp(1j * np.linspace(0, np.pi, points))
    radius = 10.0 ** max(levels)
    while _distances(triangle, side * half_circle).min() < radius:
        side *= 1.2
    grid = np.linspace(-side, side, points)
    # V is real, so the lower half of the plane mirrors the upper one.
    upper = grid + 1j * grid[points // 2 :, None]
    upper = _distances(triangle, upper.ravel()).reshape(upper.shape)
    distances = [*upper[points % 2 :][::-1], *upper]
    powers = np.log10(np.maximum(distances, 1e-300))
    style = {"colors": color, "linewidths": 0.8}
    style["linestyles"] = (_drawing.DASHES * len(levels))[: len(levels)]
    return axes.contour(grid, grid, powers, levels=levels, **style)


def _distances(triangle, z, iterations=10):
    """The smallest singular value of z I - T for each z, T triangular.

    By inverse iteration over all z at once, faster than their decompositions.
    """
    diagonal = z - np.diagonal(triangle)[:, None]
    diagonal = np.where(np.abs(diagonal) < 1e-15, 1e-15, diagonal)
    size = len(triangle)
    start = np.random.default_rng(0).normal(size=(size, 1))
    x = np.repeat(start, len(z), axis=1).astype(complex)
    with np.errstate(all="ignore"):  # singular within the range of float64
        for _ in range(iterations):
            x /= np.linalg.norm(x, axis=0)
            for i in range(size):
                x[i] += triangle[:i, i].conj() @ x[:i]
                x[i] /= diagonal[i].conj()
            distances = 1 / np.linalg.norm(x, axis=0)
            for i in reversed(range(size)):
                x[i] += triangle[i, i + 1 :] @ x[i + 1 :]
                x[i] /= diagonal[i]
    return np.nan_to_num(distances)


def plot_jacobian_spectra(
    eigenvalues: Mapping[str, "ArrayLike"], *, ax: "Axes | None" = None
) -> "Figure":
    """Plots eigenvalues of Jacobians and the unit circle.

    Args:
        eigenvalues: Dict of complex arrays by name, of any shape, such as the
            `eigenvalues` that `keras_rin.diagnostics.fixed_points` returns.
        ax: A matplotlib `Axes`. Defaults to `None`.
    """
    eigenvalues = _drawing.named("eigenvalues", eigenvalues, _complex_numbers)
    axes = _complex_plane(ax)
    most = max(1, *(len(real) for real, _ in eigenvalues.values()))
    markers = itertools.cycle("ox^s+")
    for name, values in eigenvalues.items():
        style = {"markersize": 4, "markerfacecolor": "none"}
        style["color"] = _drawing.style(name).get("color")
        # Names with fewer points above, none with a face that covers others.
        count = len(values[0])
        style |= {"markeredgewidth": 0.7, "zorder": 3 - count / most}
        style["alpha"] = max(0.2, min(1, 300 / max(1, count)))
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
    axes.plot(
        circle.real, circle.imag, ":", color="grey", linewidth=1, zorder=3
    )
    axes.set_aspect("equal")
    axes.locator_params(nbins=5)
    return axes
