"""Axes, bands and names, of all plots alike."""

from typing import Any


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
    ax.set_prop_cycle(
        color=["black", "#1f77b4", "#d95f02", "#7f7f7f", "#1b7837"],
        linestyle=["-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1))],
    )
    return ax


def band(ax, x, low, middle, high, label):
    (line,) = ax.plot(x, middle, label=label)
    ax.fill_between(x, low, high, color=line.get_color(), alpha=0.2, lw=0)


def named(name, curves):
    if not isinstance(curves, dict) or not curves:
        raise ValueError(
            f"`{name}` must be a non-empty dict of arrays by name. "
            f"Received: {name}={curves!r}"
        )
    return curves
