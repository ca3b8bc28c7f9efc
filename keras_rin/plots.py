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
    _unit_circle(ax)
    ax.plot(spectrum.real, spectrum.imag, ".", color="black")
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


def gradient_norms(norms, ax=None):
    """Plots gradient norms of the last state against the time lag.

    Args:
        norms: Dict of arrays `(time + 1,)` by name, as returned by
            `keras_rin.diagnostics.gradient_norms`.
        ax: A matplotlib `Axes` to draw on. Defaults to `None`: a new figure.

    Returns:
        The matplotlib `Figure`.

    Raises:
        ValueError: If `norms` is not a dict with at least one curve.

    Example:

    >>> norms = {"leaky": 0.9 ** np.arange(10)[::-1]}
    >>> figure = keras_rin.plots.gradient_norms(norms)
    >>> figure.savefig(path)
    """
    ax = _axes(ax)
    for name, norm in _named("norms", norms).items():
        back = np.asarray(norm)[::-1]
        ax.plot(np.where(back > 0, back, np.nan), label=name)
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


def fixed_points(found, trajectories=None, ax=None):
    """Plots fixed points in the plane of the first two principal components.

    Stable points are filled circles, saddles open markers, by the dimension
    of their unstable space, and members of a continuum dots.

    Args:
        found: The result of `keras_rin.diagnostics.fixed_points`.
        trajectories: Array `(batch, time, state)`, as returned by
            `keras_rin.diagnostics.state_trajectories`, drawn as thin lines;
            the components are theirs. Defaults to `None`: those of the fixed
            points.
        ax: A matplotlib `Axes` to draw on. Defaults to `None`: a new figure.

    Returns:
        The matplotlib `Figure`.

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
    ax = _axes(ax)
    lines = [] if trajectories is None else np.asarray(trajectories, "float64")
    every = np.concatenate([*lines, *found.members])
    center = every.mean(axis=0)
    _, _, components = np.linalg.svd(every - center, full_matrices=False)

    def plane(states):
        # A state of one number has no second component.
        return np.pad((states - center) @ components[:2].T, [(0, 0), (0, 1)])

    for line in lines:
        ax.plot(*plane(line).T[:2], "-", color="0.75", linewidth=0.6, zorder=1)
    kinds = {}
    for entry in zip(
        found.dimension, found.unstable, found.members, strict=True
    ):
        kinds.setdefault(entry[:2], []).append(entry[2])
    for (dimension, unstable), members in sorted(kinds.items()):
        label, style = _kind_of_point(dimension, unstable, len(members))
        points = plane(np.concatenate(members)).T[:2]
        ax.plot(*points, linestyle="none", label=label, zorder=3, **style)
    ax.set_xlabel("first principal component")
    ax.set_ylabel("second principal component")
    if kinds:  # below, where it hides no point
        ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.15), ncols=2)
    return ax.figure


def _kind_of_point(dimension, unstable, count):
    if dimension:
        label = f"continuum of dimension {dimension} ({count})"
        return label, {"marker": ".", "markersize": 3, "color": "#1f77b4"}
    if not unstable:
        return f"stable ({count})", {"marker": "o", "color": "black"}
    marker = ["x", "s", "^", "D"][min(unstable, 4) - 1]
    style = {"marker": marker, "color": "#d95f02", "markerfacecolor": "white"}
    return f"saddle, {unstable} unstable ({count})", style


def jacobian_spectra(eigenvalues, ax=None):
    """Plots eigenvalues of Jacobians and the unit circle.

    Args:
        eigenvalues: Dict of complex arrays by name, of any shape, such as the
            `eigenvalues` that `keras_rin.diagnostics.fixed_points` returns.
        ax: A matplotlib `Axes` to draw on. Defaults to `None`: a new figure.

    Returns:
        The matplotlib `Figure`.

    Raises:
        ValueError: If `eigenvalues` is not a dict with at least one array.

    Example:

    >>> eigenvalues = {"stable": np.array([0.9 + 0.1j, 0.9 - 0.1j])}
    >>> figure = keras_rin.plots.jacobian_spectra(eigenvalues)
    >>> figure.savefig(path)
    """
    ax = _axes(ax)
    _unit_circle(ax)
    markers = [".", "x", "^", "s", "+"]
    for k, (name, values) in enumerate(
        _named("eigenvalues", eigenvalues).items()
    ):
        values = np.ravel(values)
        style = {"marker": markers[k % 5], "ms": 4, "mfc": "none", "ls": "none"}
        ax.plot(values.real, values.imag, **style, label=name)
    ax.legend()
    return ax.figure


def lyapunov_spectra(spectra, ax=None):
    """Plots the Lyapunov exponents of several networks against their index.

    Args:
        spectra: Dict of results of `keras_rin.diagnostics.lyapunov_spectrum`
            by name. The band is one standard error over sequences. Exponents
            of -inf are not drawn.
        ax: A matplotlib `Axes` to draw on. Defaults to `None`: a new figure.

    Returns:
        The matplotlib `Figure`.

    Raises:
        ValueError: If `spectra` is not a dict with at least one result.

    Example:

    >>> layer = keras.layers.GRU(8)
    >>> layer.build((None, None, 1))
    >>> x = np.random.default_rng(0).normal(size=(4, 50, 1))
    >>> spectrum = keras_rin.diagnostics.lyapunov_spectrum(layer, x)
    >>> figure = keras_rin.plots.lyapunov_spectra({"GRU": spectrum})
    >>> figure.savefig(path)
    """
    ax = _axes(ax)
    ax.axhline(0, color="grey", linewidth=0.8)
    for name, found in _named("spectra", spectra).items():
        index = np.arange(1, len(found.exponents) + 1)
        middle = np.where(np.isfinite(found.exponents), found.exponents, np.nan)
        error = np.nan_to_num(found.standard_error)
        _band(ax, index, middle - error, middle, middle + error, name)
    ax.set_xlabel("index i")
    ax.set_ylabel("Lyapunov exponent (1 / time step)")
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


def _unit_circle(ax):
    circle = np.exp(2j * np.pi * np.linspace(0, 1, 200))
    ax.plot(circle.real, circle.imag, ":", color="black", linewidth=1)
    ax.set_xlabel("real part")
    ax.set_ylabel("imaginary part")
    ax.set_aspect("equal")
    ax.locator_params(nbins=5)


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
