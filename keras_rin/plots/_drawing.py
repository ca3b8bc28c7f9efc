"""Axes, lines and checks that the plots share."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from keras_rin import _arguments
from keras_rin import _extras

# One style for each layer and initialization in every picture, in colors
# that differ without red or green and are read on white and on black.
DASH_DOTTED = (0, (5, 1, 1, 1, 1, 1))
STYLES = {
    "RIN": {"color": "#0072b2", "linestyle": "-"},
    "SimpleRNN": {"color": "#7f7f7f", "linestyle": ":"},
    "GRU": {"color": "#e69f00", "linestyle": "--"},
    "LSTM": {"color": "#9467bd", "linestyle": DASH_DOTTED},
    "chain": {"color": "#009e73", "linestyle": "-"},
    "feedback chain": {"color": "#009e73", "linestyle": ":"},
    "chain + identity": {"color": "#cc79a7", "linestyle": "-."},
    "orthogonal": {"color": "#d55e00", "linestyle": "--"},
    "identity": {"color": "#0072b2", "linestyle": "-"},
}
# Other lines differ by order: of five colors, first that of text, and six
# dashes, all 30 pairs.
COLORS = ["#d95f02", "#1f77b4", "#7f7f7f", "#1b7837"]
DASHES = ["-", "--", "-.", ":", DASH_DOTTED, (0, (1, 3))]


def axes(ax, *labels) -> Any:
    """Axes with a label for each dimension, by default of a new figure."""
    try:
        import matplotlib.pyplot
    except ImportError as error:
        raise ImportError(
            "keras_rin.plots needs matplotlib: "
            f"{_extras.install_command('plots')}"
        ) from error

    if ax is None:  # a figure without pyplot cannot be shown
        figure = matplotlib.pyplot.figure(figsize=(6, 4), layout="constrained")
        # In space, too, points are drawn above lines.
        space = {"projection": "3d", "computed_zorder": False}
        ax = figure.add_subplot(**(space if len(labels) == 3 else {}))
    if len(labels) == 3 and not hasattr(ax, "get_zlim"):
        raise ValueError(
            '`ax` must have `projection="3d"` for three components. '
            f"Received: ax={ax!r}"
        )
    names = (f"{axis}label" for axis in "xyz")
    ax.set(**dict(zip(names, labels, strict=False)))
    # Dashes as well as colors distinguish the lines, also in grayscale.
    colors = [foreground(ax), *COLORS] * 6
    ax.set_prop_cycle(color=colors, linestyle=DASHES * 5)
    return ax


def foreground(ax):
    """The color of text: black, or white in a dark style of Matplotlib."""
    return ax.xaxis.label.get_color()


def style(name):
    """The style of a layer or initialization, {} if it has none."""
    name = str(name).removeprefix("RIN, ").removeprefix("RIN ")
    return STYLES.get(name, {})


def band(ax, x, low, middle, high, label):
    (line,) = ax.plot(x, middle, label=label, **style(label))
    ax.fill_between(x, low, high, color=line.get_color(), alpha=0.2, lw=0)


def band_of_error(ax, x, middle, error, label):
    error = np.nan_to_num(error)
    band(ax, x, middle - error, middle, middle + error, label)


def legend_below(ax, *entries, **options):
    """A legend that hides no point."""
    y = -0.08 if hasattr(ax, "get_zlim") else -0.15
    place = {"loc": "upper center", "bbox_to_anchor": (0.5, y)}
    ax.legend(*entries, **place, **options)


def with_legend(ax):
    ax.legend()
    return ax.figure


def named(name, values, checked=lambda name, value: value) -> dict[str, Any]:
    """A dict that is not empty; `checked` takes the name of each value too."""
    if not isinstance(values, Mapping) or not values:
        raise ValueError(
            f"`{name}` must be a non-empty dict by name. "
            f"Received: {name}={values!r}"
        )
    return {k: checked(f"{name}[{k!r}]", value) for k, value in values.items()}


def curve(name, values):
    array = _arguments.real_array(name, values)
    _arguments.check_shape(name, array.shape, ("length",))
    return array
