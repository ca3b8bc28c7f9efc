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
# One style for each layer, in colors that are told apart without red or green.
STYLES = {
    "RIN": {"color": "#0072b2", "linestyle": "-"},
    "SimpleRNN": {"color": "#7f7f7f", "linestyle": ":"},
    "GRU": {"color": "#e69f00", "linestyle": "--"},
    "LSTM": {"color": "#000000", "linestyle": (0, (5, 1, 1, 1, 1, 1))},
}
POSITIVE, NEGATIVE = "#0072b2", "#d55e00"  # values, and their sign
CAPTIONS = {
    "models.png": "Normalized test loss of each model",
    "settings.png": "Normalized validation loss at each pair of "
    "hyperparameters",
    "curves.png": "Normalized validation loss after each epoch: median and "
    "range over seeds",
}


def ordered_colors(count):
    """Colors from dark to light, for lines that have an order."""
    return matplotlib.colormaps["viridis"](np.linspace(0, 0.8, count))


def plot_range(axes, x, values, label, color, **line):
    """Plots the median of rows of values, and their range as a band."""
    low, middle, high = np.quantile(values, [0, 0.5, 1], axis=0)
    axes.plot(x, middle, label=label, color=color, **line)
    axes.fill_between(x, low, high, color=color, alpha=0.15, linewidth=0)


def of(study):
    """{file: function that draws it}, once a variant has all its runs."""
    if not study.outcomes:
        return {}
    rows = "panels" in study.protocol.tables
    drawn = {"models.png": _rows if rows else _models}
    if len(study.protocol.tuned) == 2:
        drawn["settings.png"] = _settings
    if study.protocol.curves:
        drawn["curves.png"] = _curves
    return drawn


def _models(study):
    """Test losses of the seeds and their medians, best on top.

    The baseline is drawn where a loss comes near it.
    """
    panels = _panels(study)
    sizes = [len(panel) for _, panel in panels]
    highest = max(
        max(outcome.test_losses.values()) for outcome in study.outcomes
    )
    height = 0.6 + 0.4 * len(panels) + 0.3 * sum(sizes)
    figure = Figure(figsize=(7, height), layout="constrained")
    rows = figure.subplots(
        len(panels), sharex=True, squeeze=False, height_ratios=sizes
    )[:, 0]
    for axes, (title, panel) in zip(rows, panels, strict=True):
        panel = sorted(panel, key=lambda labelled: labelled[1].median_test_loss)
        for label, outcome in panel:
            losses = list(outcome.test_losses.values())
            axes.plot(losses, [label] * len(losses), "|", color="grey")
            axes.plot(outcome.median_test_loss, label, "o", color="C0")
        if highest > SOLVED:
            axes.axvline(1, color="grey", linewidth=1)
        axes.set_title(title, loc="left")
        axes.margins(y=0.5 / len(panel))
        axes.invert_yaxis()
    # All have one x axis: its end is known once all is drawn.
    rows[-1].set(xlabel="normalized loss (baseline = 1)", xlim=(0, None))
    return figure


def _rows(study):
    """Median test losses: a row for each panel, a marker for each variant."""
    figure = Figure(layout="constrained")
    axes, panels = figure.subplots(), _panels(study)
    figure.set_size_inches(7, 1.2 + 0.25 * len(panels))
    labels = dict.fromkeys(label for _, panel in panels for label, _ in panel)
    for label, marker in zip(labels, itertools.cycle("os^Dvx")):
        medians = [
            (outcome.median_test_loss, title)
            for title, panel in panels
            for of, outcome in panel
            if of == label
        ]
        axes.plot(*zip(*medians, strict=True), marker, label=label, alpha=0.7)
    axes.axvline(1, color="grey", linewidth=1)
    axes.grid(axis="y", linewidth=0.5)
    axes.set_ylim(len(panels) - 0.5, -0.5)  # from the first row down
    axes.set(xlabel="normalized loss (baseline = 1)", xlim=(0, None))
    figure.legend(loc="outside upper center", ncols=len(labels))
    return figure


def _curves(study):
    """Normalized validation loss after each epoch, best hyperparameters.

    The axis is logarithmic where a loss is far below the baseline. Panels of
    the same models share one legend.
    """
    panels = _panels(study)
    figure = Figure(figsize=(6, 0.8 + 2.4 * len(panels)), layout="constrained")
    rows = figure.subplots(len(panels), sharex=True, sharey=True, squeeze=False)
    for axes, (title, panel) in zip(rows[:, 0], panels, strict=True):
        curves = {
            label: list(outcome.best.validation_curves.values())
            for label, outcome in panel
        }
        plots.plot_learning_curves(
            curves, ylabel="normalized loss", baseline=1, ax=axes
        )
        axes.set_title(title, loc="left")
        axes.label_outer()
    labels = {tuple(label for label, _ in panel) for _, panel in panels}
    if len(panels) > 1 and len(labels) == 1:
        for axes in figure.axes:
            axes.get_legend().remove()
        drawn = axes.get_legend_handles_labels()
        figure.legend(*drawn, loc="outside lower center", ncols=len(panel))
    if axes.get_ylim()[0] < FAR_BELOW:
        axes.set_yscale("log")
    return figure


def _panels(study):
    """[(title, [(variant in words, outcome)])]; the title may be empty."""
    by = study.protocol.panels
    return [
        (words.label([(by, value)] if by else []), panel)
        for value, panel in tables.panels(study)
    ]


def _settings(study):
    """Medians of the validation losses over two hyperparameters."""
    maps = [
        outcome
        for outcome in study.outcomes
        if all(len(values) > 1 for values in outcome.tried)
    ]
    names = tables.telling(study)
    figure = Figure(figsize=(4.5 * len(maps), 4), layout="constrained")
    rows = figure.subplots(1, len(maps), squeeze=False)
    for axes, outcome in zip(rows[0], maps, strict=True):
        across, up = outcome.tried
        medians = np.empty((len(up), len(across)))
        for trial in outcome.trials:
            column, row = map(list.index, outcome.tried, trial.values)
            medians[row, column] = trial.median_validation_loss
        image = axes.imshow(medians, origin="lower", vmin=0, vmax=1)
        for (row, column), median in np.ndenumerate(medians):
            axes.text(
                column,
                row,
                f"{median:.2f}",
                ha="center",
                va="center",
                color="white" if median < 0.6 else "black",
            )
        axes.set_xticks(range(len(across)), map(str, across))
        axes.set_yticks(range(len(up)), map(str, up))
        xlabel, ylabel = tables.tuned(study)
        values = [(name, getattr(outcome.variant, name)) for name in names]
        axes.set(xlabel=xlabel, ylabel=ylabel, title=words.label(values))
    figure.colorbar(image, label="normalized validation loss (baseline = 1)")
    return figure
