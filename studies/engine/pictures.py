"""The pictures of a study: losses at the best, in training, at all rates."""

import itertools

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from engine import tables
from engine import words
from engine.study import SOLVED
from keras_rin import plots

FAR_BELOW = 0.1  # of the baseline
STYLES = plots.STYLES  # extended for labels of studies
STYLES |= {
    "IRNN": {"color": "#56b4e9", "linestyle": "--"},
    "identity + noise": STYLES["identity"],
    "kept orthogonal": {"color": "#d55e00", "linestyle": "-"},
}
OTHER = "#332288"  # a variant without a style
CAPTIONS = {
    "models.svg": "Normalized test loss of each model",
    "curves.svg": "Normalized validation loss after each epoch: median and "
    "range over seeds",
}


def color(label):
    """The color of a variant, by the layer or initialization in its label."""
    names = label.removeprefix("RIN, "), label.removeprefix("RIN ")
    for name in (*names, label.split(", ")[0]):
        if name in STYLES:
            return STYLES[name]["color"]
    return OTHER


def subplots(width, height, *shape, **options):
    """A figure of a size in inches, and its axes."""
    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(*shape, **options)


def ordered_colors(count):
    """Colors from dark to light, for lines that have an order."""
    return matplotlib.colormaps["viridis"](np.linspace(0, 0.8, count))


def shared_legend(figure, axes):
    """One legend above all panels, of the lines of one of them."""
    lines, labels = axes.get_legend_handles_labels()
    place = {"loc": "outside upper center", "ncols": len(labels)}
    figure.legend(lines, labels, **place)


def plot_range(axes, x, values, label, color, **line):
    """Plots the median of rows of values, and their range as a band."""
    low, middle, high = np.quantile(values, [0, 0.5, 1], axis=0)
    axes.plot(x, middle, label=label, color=color, **line)
    axes.fill_between(x, low, high, color=color, alpha=0.15, linewidth=0)


def figures(study):
    """{file: function that draws it}, once a variant has all its runs."""
    if not study.outcomes:
        return {}
    drawn = {"models.svg": _models}
    if study.protocol["curves"]:
        drawn["curves.svg"] = _curves
    return drawn


def _models(study):
    """Test losses of the seeds and their medians, best on top.

    The baseline is drawn where a loss comes near it.
    """
    panels = _panels(study)
    sizes = [len(panel) for _, panel in panels]
    height = 0.6 + 0.4 * len(panels) + 0.3 * sum(sizes)
    shape = {"sharex": True, "squeeze": False, "height_ratios": sizes}
    figure, rows = subplots(7, height, len(panels), **shape)
    losses = (outcome.test_losses.values() for outcome in study.outcomes)
    all_losses = list(itertools.chain(*losses))
    for axes, (title, panel) in zip(rows[:, 0], panels, strict=True):
        best = [(label, outcome.best) for label, outcome in panel]
        for label, trial in sorted(
            best, key=lambda pair: pair[1].median_test_loss
        ):
            losses = list(trial.test_losses.values())
            axes.plot(losses, [label] * len(losses), "|", color="grey")
            axes.plot(trial.median_test_loss, label, "o", color=color(label))
        if max(all_losses) > SOLVED:
            axes.axvline(1, color="grey", linewidth=1)
        axes.set_title(title, loc="left")
        axes.margins(y=0.5 / len(panel))
        axes.invert_yaxis()
    axes.set_xlabel("normalized loss (baseline = 1)")
    # All have one x axis: its end is known once all is drawn.
    if 0 < min(all_losses) < FAR_BELOW:
        axes.set_xscale("log")
    else:
        axes.set_xlim(0, None)
    for axes in rows[:-1, 0]:
        axes.tick_params(axis="x", which="both", bottom=False)
    return figure


def _curves(study):
    """Normalized validation loss after each epoch, best hyperparameters.

    The axis is logarithmic where a loss is far below the baseline. Panels of
    the same models share one legend.
    """
    panels = _panels(study)
    height, count = 0.8 + 2.4 * len(panels), len(panels)
    shared = {"sharex": True, "sharey": True}
    labels = {"ylabel": "normalized loss", "baseline": 1}
    figure, rows = subplots(6, height, count, **shared, squeeze=False)
    for axes, (title, panel) in zip(rows[:, 0], panels, strict=True):
        curves = {
            label: list(outcome.best.validation_curves.values())
            for label, outcome in panel
        }
        plots.plot_learning_curves(curves, **labels, ax=axes)
        axes.set_title(title, loc="left")
        axes.label_outer()
    models = {tuple(label for label, _ in panel) for _, panel in panels}
    if len(panels) > 1 and len(models) == 1:
        for axes in figure.axes:
            axes.get_legend().remove()
        drawn = axes.get_legend_handles_labels()
        figure.legend(*drawn, loc="outside lower center", ncols=len(panel))
    if axes.get_ylim()[0] < FAR_BELOW:
        axes.set_yscale("log")
    return figure


def _panels(study):
    """[(title, [(variant in words, outcome)])]; the title may be empty."""
    by = study.protocol["panels"]
    return [
        (words.label([(by, value)] if by else []), panel)
        for value, panel in tables.panels(study)
    ]
