"""Plots of curves by name: memory, gradient norms, weights, learning."""

from collections.abc import Mapping
from itertools import zip_longest
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from keras_rin import _arguments
from keras_rin.diagnostics import HiddenChain
from keras_rin.plots import _drawing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def plot_memory_curves(
    curves: Mapping[str, ArrayLike], *, ax: "Axes | None" = None
) -> "Figure":
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
    >>> figure = keras_rin.plots.plot_memory_curves(curves)
    >>> figure.savefig(path)
    """
    axes = _drawing.axes(ax)
    for name, curve in _drawing.named("curves", curves).items():
        axes.plot(
            np.arange(len(curve)), curve, label=name, **_drawing.style(name)
        )
    axes.set_xlabel("lag k (time steps)")
    axes.set_ylabel("Fisher memory J(k)")
    axes.legend()
    return axes.figure


def plot_gradient_norms(
    norms: Mapping[str, ArrayLike], *, ax: "Axes | None" = None
) -> "Figure":
    """Plots gradient norms of the last state against the time lag.

    A cross marks the last lag whose norm is not 0, if the norm of a longer lag
    is: the axis is logarithmic.

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
    >>> figure = keras_rin.plots.plot_gradient_norms(norms)
    >>> figure.savefig(path)
    """
    axes = _drawing.axes(ax)
    for name, norm in _drawing.named("norms", norms).items():
        by_lag = np.asarray(norm)[::-1]
        drawn = np.where(by_lag > 0, by_lag, np.nan)
        (line,) = axes.plot(drawn, label=name, **_drawing.style(name))
        if not by_lag[-1]:
            last = np.flatnonzero(by_lag)[-1:]
            axes.plot(last, by_lag[last], "x", color=line.get_color())
    axes.set_yscale("log")
    axes.set_xlabel("lag T - t (time steps)")
    axes.set_ylabel(r"gradient norm $\|\partial h_T / \partial s_t\|$")
    axes.legend()
    return axes.figure


def plot_hidden_chain(
    hidden_chain: HiddenChain | list[HiddenChain],
    *,
    reach: int | None = None,
    ax: "Axes | None" = None,
) -> "Figure":
    """Plots the mean weight against the order difference, for each gate.

    Args:
        hidden_chain: The result of `keras_rin.diagnostics.hidden_chain`, or a
            list of results for several networks.
        reach: Positive integer, largest order difference to draw. Few pairs of
            units have a large difference. Defaults to `None`: all.
        ax: A matplotlib `Axes` to draw on. Defaults to `None`: a new figure.

    Returns:
        The matplotlib `Figure`. The band is one standard error: over pairs of
        units for one network, over networks for a list.

    Raises:
        ValueError: If `reach` is not a positive integer.

    Example:

    >>> layer = keras.layers.LSTM(8)
    >>> layer.build((None, None, 1))
    >>> hidden_chain = keras_rin.diagnostics.hidden_chain(layer)
    >>> figure = keras_rin.plots.plot_hidden_chain(hidden_chain)
    >>> figure.savefig(path)
    """
    axes = _drawing.axes(ax)
    networks = (
        hidden_chain if isinstance(hidden_chain, list) else [hidden_chain]
    )
    largest = min(len(network.order) for network in networks) - 1
    reach = largest if reach is None else _arguments.integer("reach", reach)
    reach = min(reach, largest)
    difference = np.arange(-reach, reach + 1)
    for gate in networks[0].mean_weight:
        means = [
            _within_reach(network, network.mean_weight[gate], reach)
            for network in networks
        ]
        if len(networks) > 1:
            error = np.std(means, axis=0, ddof=1) / np.sqrt(len(networks))
        else:
            error = networks[0].standard_error[gate]
            error = _within_reach(networks[0], error, reach)
        error = np.nan_to_num(error)
        mean = np.mean(means, axis=0)
        _drawing.band(axes, difference, mean - error, mean, mean + error, gate)
    axes.axvline(0, color="grey", linewidth=0.8)
    axes.set_xlabel("order difference, receiver - sender (units)")
    axes.set_ylabel("mean weight")
    axes.legend()
    return axes.figure


def _within_reach(network, profile, reach):
    return profile[np.abs(network.difference) <= reach]


def plot_learning_curves(
    curves: Mapping[str, ArrayLike],
    *,
    ylabel: str = "validation loss",
    baseline: float | None = None,
    ax: "Axes | None" = None,
) -> "Figure":
    """Plots a quantity against the epoch, with its range over seeds.

    Args:
        curves: Dict of arrays `(seeds, epochs)` by name, of lists of curves,
            some of which may end early, or of single curves `(epochs,)`. The
            line is the median over seeds; the band extends from the minimum
            to the maximum.
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
    >>> figure = keras_rin.plots.plot_learning_curves(curves, baseline=1)
    >>> figure.savefig(path)
    """
    axes = _drawing.axes(ax)
    for name, runs in _drawing.named("curves", curves).items():
        runs = [runs] if np.ndim(runs[0]) == 0 else runs
        by_epoch = list(zip_longest(*runs, fillvalue=np.nan))
        epochs = np.arange(1, len(by_epoch) + 1)
        low, middle, high = (
            [np.nanquantile(scores, quantile) for scores in by_epoch]
            for quantile in (0, 0.5, 1)
        )
        _drawing.band(axes, epochs, low, middle, high, name)
    if baseline is not None:
        axes.axhline(baseline, color="grey", linewidth=0.8)
    axes.locator_params(axis="x", integer=True, min_n_ticks=1)
    axes.set_xlabel("epoch")
    axes.set_ylabel(ylabel)
    axes.legend()
    return axes.figure
