"""Axes, bands and names, of all plots alike."""

from collections.abc import Mapping
from typing import Any

# Of five colors and six dashes, all 30 pairs differ.
COLORS = ["black", "#1f77b4", "#d95f02", "#7f7f7f", "#1b7837"]
DASHES = ["-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 3))]


def axes(ax) -> Any:
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
    count = len(COLORS) * len(DASHES)
    ax.set_prop_cycle(
        color=[COLORS[n % len(COLORS)] for n in range(count)],
        linestyle=[DASHES[n % len(DASHES)] for n in range(count)],
    )
    return ax


def band(ax, x, low, middle, high, label):
    (line,) = ax.plot(x, middle, label=label)
    ax.fill_between(x, low, high, color=line.get_color(), alpha=0.2, lw=0)


def named(name, curves):
    if not isinstance(curves, Mapping) or not curves:
        raise ValueError(
            f"`{name}` must be a non-empty dict of arrays by name. "
            f"Received: {name}={curves!r}"
        )
    return curves
