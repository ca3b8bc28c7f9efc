"""Plots of curves by name: memory, gradient norms, weights, learning."""

from collections.abc import Mapping
from itertools import zip_longest
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from keras_rin import _arguments
from keras_rin.diagnostics import HiddenChain
from keras_rin.diagnostics import LyapunovSpectrum
from keras_rin.diagnostics import SchurAblation
from keras_rin.plots import _drawing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def plot_memory_curves(
    curves: Mapping[str, "ArrayLike"], *, ax: "Axes | None" = None
) -> "Figure":
    """Plots Fisher memory curves against the lag.

    Args:
        curves: Dict of arrays `(lags,)` by name, as returned by
            `keras_rin.diagnostics.fisher_memory_curve`.
        ax: A matplotlib `Axes`. Defaults to `None`.

    Example:

    >>> curves = {"chain": 1 / np.arange(1, 10)}
    >>> figure = keras_rin.plots.plot_memory_curves(curves)
    >>> figure.savefig(path)
    """
    curves = _drawing.named("curves", curves, _drawing.curve)
    axes = _drawing.axes(ax, "lag k (time steps)", "Fisher memory J(k)")
    for name, curve in curves.items():
        axes.plot(curve, label=name, **_drawing.style(name))
    return _drawing.with_legend(axes)


def plot_gradient_norms(
    norms: Mapping[str, "ArrayLike"], *, ax: "Axes | None" = None
) -> "Figure":
    """Plots gradient norms of the last state against the time lag.

    A cross marks the last lag whose norm is not 0, if the norm of a longer lag
    is: the axis is logarithmic.

    Args:
        norms: Dict of arrays `(time + 1,)` by name, as returned by
            `keras_rin.diagnostics.gradient_norms`.
        ax: A matplotlib `Axes`. Defaults to `None`.
    """
    norms = _drawing.named("norms", norms, _drawing.curve)
    ylabel = r"gradient norm $\|\partial h_T / \partial s_t\|$"
    axes = _drawing.axes(ax, "lag T - t (time steps)", ylabel)
    for name, norm in norms.items():
        by_lag = norm[::-1]
        drawn = np.where(by_lag > 0, by_lag, np.nan)
        (line,) = axes.plot(drawn, label=name, **_drawing.style(name))
        if not by_lag[-1:].all():
            last = np.flatnonzero(by_lag)[-1:]
            axes.plot(last, by_lag[last], "x", color=line.get_color())
    axes.set_yscale("log")
    return _drawing.with_legend(axes)


def plot_hidden_chain(
    hidden_chain: HiddenChain | list[HiddenChain],
    *,
    reach: int | None = None,
    ax: "Axes | None" = None,
) -> "Figure":
    """Plots the mean weight against the order difference, for each gate.

    The band is one standard error over pairs of units, or networks of a list.

    Args:
        hidden_chain: The result of `keras_rin.diagnostics.hidden_chain`, or a
            list of results for several networks with the same gates.
        reach: Positive integer, largest order difference to draw. Few pairs of
            units have a large difference. Defaults to `None`: all.
        ax: A matplotlib `Axes`. Defaults to `None`.
    """
    networks = hidden_chain
    if not isinstance(networks, list):
        networks = [networks]
    gates = {tuple(network.mean_weight) for network in networks}
    if len(gates) != 1:
        raise ValueError(
            "`hidden_chain` must be of networks with the same gates. "
            f"Received: networks with {len(gates)} sets of gates"
        )
    largest = min(len(network.order) for network in networks) - 1
    reach = largest if reach is None else _arguments.integer("reach", reach)
    x = np.arange(-min(reach, largest), min(reach, largest) + 1)
    xlabel = "order difference, receiver - sender (units)"
    axes = _drawing.axes(ax, xlabel, "mean weight")
    axes.axvline(0, color="grey", linewidth=0.8)
    for gate in networks[0].mean_weight:
        means = [
            network.mean_weight[gate][np.isin(network.difference, x)]
            for network in networks
        ]
        if len(networks) > 1:
            error = np.std(means, axis=0, ddof=1) / np.sqrt(len(networks))
        else:
            is_drawn = np.isin(networks[0].difference, x)
            error = networks[0].standard_error[gate][is_drawn]
        _drawing.band_of_error(axes, x, np.mean(means, axis=0), error, gate)
    return _drawing.with_legend(axes)


def plot_learning_curves(
    curves: Mapping[str, "ArrayLike"],
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
        ax: A matplotlib `Axes`. Defaults to `None`.

    Example:

    >>> curves = {"RIN": [[1.0, 0.5], [0.9, 0.7]]}
    >>> figure = keras_rin.plots.plot_learning_curves(curves, baseline=1)
    """
    curves = _drawing.named("curves", curves, _scores_by_epoch)
    axes = _drawing.axes(ax, "epoch", ylabel)
    for name, scores in curves.items():
        low, middle, high = np.nanquantile(scores, (0, 0.5, 1), axis=1)
        epochs = np.arange(len(scores)) + 1
        _drawing.band(axes, epochs, low, middle, high, name)
    if baseline is not None:
        axes.axhline(baseline, color="grey", linewidth=0.8)
    axes.locator_params(axis="x", integer=True, min_n_ticks=1)
    return _drawing.with_legend(axes)


def _scores_by_epoch(name, runs):
    """Array `(epochs, runs)`, NaN after the end of a run."""
    runs = list(runs) if np.iterable(runs) else [runs]
    runs = runs if any(map(np.ndim, runs)) else [runs]
    runs = [_drawing.curve(name, run) for run in runs]
    scores = list(zip_longest(*runs, fillvalue=np.nan))
    return np.reshape(scores, (-1, len(runs)))


def plot_lyapunov_spectra(
    spectra: Mapping[str, LyapunovSpectrum], *, ax: "Axes | None" = None
) -> "Figure":
    """Plots the Lyapunov exponents of several networks against their index.

    Args:
        spectra: Dict of results of `keras_rin.diagnostics.lyapunov_spectrum`
            by name. The band is one standard error over sequences. Exponents
            of -inf are not drawn.
        ax: A matplotlib `Axes`. Defaults to `None`.
    """
    spectra = _drawing.named("spectra", spectra)
    axes = _drawing.axes(ax, "index i", "Lyapunov exponent (1 / time step)")
    axes.axhline(0, color="grey", linewidth=0.8)
    for name, spectrum in spectra.items():
        exponents, error, _ = spectrum
        finite = np.where(np.isfinite(exponents), exponents, np.nan)
        index = np.arange(len(finite)) + 1
        _drawing.band_of_error(axes, index, finite, error, name)
    return _drawing.with_legend(axes)


def plot_schur_ablation(
    ablation: SchurAblation, *, ax: "Axes | None" = None
) -> "Figure":
    """Plots the score without each band of the non-normal part.

    A cross is the score without a single coupling, at its band; the thin line
    is the score of the layer as it is.

    Args:
        ablation: The result of `keras_rin.diagnostics.schur_ablation`.
        ax: A matplotlib `Axes`. Defaults to `None`.
    """
    xlabel = "band j - i (couplings from i to j)"
    axes = _drawing.axes(ax, xlabel, "score without it")
    axes.axhline(ablation.score, color="grey", linewidth=0.8)
    bands = np.arange(len(ablation.band_scores)) + 1
    axes.plot(bands, ablation.band_scores, ".-", label="band")
    i, j = ablation.couplings.T
    axes.plot(j - i, ablation.coupling_scores, "x", label="coupling")
    axes.locator_params(axis="x", integer=True, min_n_ticks=1)
    return _drawing.with_legend(axes)
