"""Plots of the diagnostics. matplotlib is imported on first use."""

import numpy as np

from keras_rin import arguments


def memory_curves(curves, ax=None):
    """Plots Fisher memory curves against the lag.

    Args:
        curves: Dict of arrays `(lags,)` by name, as returned by
            `keras_rin.diagnostics.fisher_memory_curve`.
        ax: A matplotlib `Axes` to draw on. Defaults to `None`: a new figure.

    Returns:
        The matplotlib `Figure`.

    Raises:
        ValueError: If `curves` is not a dict with at least one curve.

    Example:

    >>> curves = {"chain": 1 / np.arange(1, 10)}
    >>> figure = keras_rin.plots.memory_curves(curves)
    >>> figure.savefig(path)
    """
    ax = _axes(ax)
    for name, curve in _named("curves", curves).items():
        ax.plot(np.arange(len(curve)), curve, label=name)
    ax.set_xlabel("lag k (time steps)")
    ax.set_ylabel("Fisher memory J(k)")
    ax.legend()
    return ax.figure


def eigenvalues(recurrent_matrix, levels=(-3, -2, -1), points=40, ax=None):
    """Plots eigenvalues, pseudospectra and the unit circle.

    The contour of level e encloses every complex number that is an eigenvalue
    of some matrix within 10^e of W, in the spectral norm. For a normal matrix
    the contours are circles of that radius around the eigenvalues. Larger
    contours indicate that W is non-normal.

    Args:
        recurrent_matrix: Array W `(units, units)`.
        levels: Increasing sequence of numbers, the exponents e. If empty, only
            the eigenvalues are drawn. Defaults to (-3, -2, -1).
        points: Positive integer, number of grid points along each axis. Each
            point takes one singular value decomposition. Defaults to 40.
        ax: A matplotlib `Axes` to draw on. Defaults to `None`: a new figure.

    Returns:
        The matplotlib `Figure`.

    Raises:
        ValueError: If `recurrent_matrix` is not square, real and finite.

    Example:

    >>> chain = np.eye(10, k=1)
    >>> figure = keras_rin.plots.eigenvalues(chain, points=10)
    >>> figure.savefig(path)

    Reference:
        Trefethen and Embree, 2005, Spectra and pseudospectra.
    """
    matrix = arguments.square_matrix("recurrent_matrix", recurrent_matrix)
    ax = _axes(ax)
    spectrum = np.linalg.eigvals(matrix)
    side = 1.2 * max(1, np.abs(spectrum).max())
    if levels:
        grid = np.linspace(-side, side, points)
        distance = _smallest_singular_values(matrix, grid)
        lines = ax.contour(
            grid,
            grid,
            np.log10(np.maximum(distance, 1e-300)),
            levels=levels,
            colors="grey",
            linewidths=0.8,
            linestyles="solid",
        )
        ax.clabel(lines, fmt="$10^{%d}$")
    circle = np.exp(2j * np.pi * np.linspace(0, 1, 200))
    ax.plot(circle.real, circle.imag, ":", color="black", linewidth=1)
    ax.plot(spectrum.real, spectrum.imag, ".", color="black")
    ax.set_xlabel("real part")
    ax.set_ylabel("imaginary part")
    ax.set_aspect("equal")
    return ax.figure


def hidden_chain(found, reach=None, ax=None):
    """Plots the mean weight against the order difference, for each gate.

    Args:
        found: The result of `keras_rin.diagnostics.hidden_chain`, or a list of
            results for several networks.
        reach: Positive integer, largest order difference to draw. Few pairs of
            units have a large difference. Defaults to `None`: all.
        ax: A matplotlib `Axes` to draw on. Defaults to `None`: a new figure.

    Returns:
        The matplotlib `Figure`. The band is one standard error: over pairs of
        units for one network, over networks for a list.

    Example:

    >>> layer = keras.layers.LSTM(8)
    >>> layer.build((None, None, 1))
    >>> found = keras_rin.diagnostics.hidden_chain(layer)
    >>> figure = keras_rin.plots.hidden_chain(found)
    >>> figure.savefig(path)
    """
    ax = _axes(ax)
    networks = found if isinstance(found, list) else [found]
    reach = reach or min(len(one.order) for one in networks) - 1
    difference = np.arange(-reach, reach + 1)
    for gate in networks[0].mean_weight:
        means = [_within(one, one.mean_weight[gate], reach) for one in networks]
        if len(networks) > 1:
            error = np.std(means, axis=0, ddof=1) / np.sqrt(len(networks))
        else:
            error = networks[0].standard_error[gate]
            error = _within(networks[0], error, reach)
        error = np.nan_to_num(error)
        mean = np.mean(means, axis=0)
        _band(ax, difference, mean - error, mean, mean + error, gate)
    ax.axvline(0, color="grey", linewidth=0.8)
    ax.set_xlabel("order difference, receiver - sender (units)")
    ax.set_ylabel("mean weight")
    ax.legend()
    return ax.figure


def _within(found, profile, reach):
    return profile[np.abs(found.difference) <= reach]


def gradient_horizon(sizes, ax=None):
    """Plots gradient norms of the last state against the time lag.

    A cross marks the last lag whose norm is not 0, if the norm of a longer lag
    is: the axis is logarithmic.

    Args:
        sizes: Dict of arrays `(time + 1,)` by name, as returned by
            `keras_rin.diagnostics.gradient_horizon`.
        ax: A matplotlib `Axes` to draw on. Defaults to `None`: a new figure.

    Returns:
        The matplotlib `Figure`.

    Raises:
        ValueError: If `sizes` is not a dict with at least one curve.

    Example:

    >>> sizes = {"leaky": 0.9 ** np.arange(10)[::-1]}
    >>> figure = keras_rin.plots.gradient_horizon(sizes)
    >>> figure.savefig(path)
    """
    ax = _axes(ax)
    for name, size in _named("sizes", sizes).items():
        back = np.asarray(size)[::-1]
        (line,) = ax.plot(np.where(back > 0, back, np.nan), label=name)
        if not back[-1]:
            last = np.flatnonzero(back)[-1:]
            ax.plot(last, back[last], "x", color=line.get_color())
    ax.set_yscale("log")
    ax.set_xlabel("lag T - t (time steps)")
    ax.set_ylabel(r"gradient norm $\|\partial h_T / \partial s_t\|$")
    ax.legend()
    return ax.figure


def learning_curves(curves, ylabel="validation loss", baseline=None, ax=None):
    """Plots a quantity against the epoch, with its range over seeds.

    Args:
        curves: Dict of arrays `(seeds, epochs)` by name. The line is the
            median over seeds; the band extends from the minimum to the
            maximum.
        ylabel: String, name of the quantity, with its unit. Defaults to
            `"validation loss"`.
        baseline: Number, the score of a constant predictor, drawn as a thin
            horizontal line. Defaults to `None`.
        ax: A matplotlib `Axes` to draw on. Defaults to `None`: a new figure.

    Returns:
        The matplotlib `Figure`.

    Raises:
        ValueError: If `curves` is not a dict with at least one curve.

    Example:

    >>> curves = {"RIN": [[1.0, 0.5], [0.9, 0.7]]}
    >>> figure = keras_rin.plots.learning_curves(curves, baseline=1)
    >>> figure.savefig(path)
    """
    ax = _axes(ax)
    for name, runs in _named("curves", curves).items():
        runs = np.atleast_2d(np.asarray(runs, "float64"))
        epochs = np.arange(1, runs.shape[1] + 1)
        low, middle, high = np.nanquantile(runs, (0, 0.5, 1), axis=0)
        _band(ax, epochs, low, middle, high, name)
    if baseline is not None:
        ax.axhline(baseline, color="grey", linewidth=0.8)
    ax.set_xlabel("epoch")
    ax.set_ylabel(ylabel)
    ax.legend()
    return ax.figure


def _axes(ax):
    try:
        import matplotlib.figure
    except ImportError as error:
        raise ImportError(
            "keras_rin.plots needs matplotlib: pip install 'keras-rin[plots]'."
        ) from error

    if ax is None:
        figure = matplotlib.figure.Figure(figsize=(6, 4), layout="constrained")
        ax = figure.subplots()
    # Dashes as well as colors distinguish the lines, also in grayscale.
    ax.set_prop_cycle(
        color=["black", "#1f77b4", "#d95f02", "#7f7f7f", "#1b7837"],
        linestyle=["-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1))],
    )
    return ax


def _band(ax, x, low, middle, high, label):
    (line,) = ax.plot(x, middle, label=label)
    ax.fill_between(x, low, high, color=line.get_color(), alpha=0.2, lw=0)


def _named(name, curves):
    if not isinstance(curves, dict) or not curves:
        raise ValueError(
            f"`{name}` must be a non-empty dict of arrays by name. "
            f"Received: {name}={curves!r}"
        )
    return curves


def _smallest_singular_values(matrix, grid):
    """Of z I - W on a square grid of z; W is real, so half of it suffices."""
    eye = np.eye(len(matrix))
    lower = grid[: (len(grid) + 1) // 2]
    values = [
        np.linalg.svd(
            (grid[:, None, None] + 1j * y) * eye - matrix, compute_uv=False
        )[:, -1]
        for y in lower
    ]
    mirrored = values[: len(grid) // 2][::-1]
    return np.array([*values, *mirrored])
