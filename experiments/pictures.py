"""The pictures of a study: models at their best, in training, and all rates."""

import itertools

import numpy as np
from matplotlib.figure import Figure

from experiments import protocols
from experiments import tables
from experiments import verdicts
from keras_rin import plots

FAR_BELOW = 0.1  # of the baseline


def of(study):
    """{file: function that draws it}, once the runs of a model are complete.

    There are the models, two hyperparameters as a map, and the learning curves
    if the protocol asks for them.
    """
    if not study.outcomes:
        return {}
    rows = "panels" in study.protocol.get("tables", ())
    found = {"models.png": _rows if rows else _models}
    if len(study.protocol["tuned"]) == 2:
        found["settings.png"] = _settings
    if study.protocol.get("curves"):
        found["curves.png"] = _curves
    return found


def _models(study):
    """Test losses of the seeds and their medians, best on top.

    The baseline is drawn where a loss comes near it.
    """
    panels, outcomes = _panels(study), study.outcomes.values()
    sizes = [len(panel) for panel in panels.values()]
    highest = max(max(outcome.losses.values()) for outcome in outcomes)
    height = 0.6 + 0.4 * len(panels) + 0.3 * sum(sizes)
    figure = Figure(figsize=(7, height), layout="constrained")
    rows = figure.subplots(
        len(panels), sharex=True, squeeze=False, height_ratios=sizes
    )[:, 0]
    for axes, (title, panel) in zip(rows, panels.items(), strict=True):
        for label, outcome in sorted(
            panel.items(), key=lambda item: item[1].median
        ):
            losses = list(outcome.losses.values())
            axes.plot(losses, [label] * len(losses), "|", color="grey")
            axes.plot(outcome.median, label, "o", color="C0")
        if highest > verdicts.SOLVED:
            axes.axvline(1, color="grey", linewidth=1)
        axes.set_title(title, loc="left")
        axes.margins(y=0.5 / len(panel))
        axes.invert_yaxis()
    # All have one x axis: its end is known once all is drawn.
    rows[-1].set(xlabel="normalized loss (baseline = 1)", xlim=(0, None))
    return figure


def _rows(study):
    """Median test losses: a row for each panel, a marker for each model."""
    figure = Figure(layout="constrained")
    axes, panels = figure.subplots(), _panels(study)
    figure.set_size_inches(7, 1.2 + 0.25 * len(panels))
    models = dict.fromkeys(itertools.chain(*panels.values()))
    for model, marker in zip(models, itertools.cycle("os^Dvx")):
        medians = {
            title: panel[model].median
            for title, panel in panels.items()
            if model in panel
        }
        axes.plot(
            [*medians.values()], [*medians], marker, label=model, alpha=0.7
        )
    axes.axvline(1, color="grey", linewidth=1)
    axes.grid(axis="y", linewidth=0.5)
    axes.set_ylim(len(panels) - 0.5, -0.5)  # from the first row down
    axes.set(xlabel="normalized loss (baseline = 1)", xlim=(0, None))
    figure.legend(loc="outside upper center", ncols=len(models))
    return figure


def _curves(study):
    """Normalized validation loss after each epoch, best hyperparameters.

    The axis is logarithmic where a loss is far below the baseline. Panels of
    the same models share one legend.
    """
    panels = _panels(study)
    figure = Figure(figsize=(6, 0.8 + 2.4 * len(panels)), layout="constrained")
    rows = figure.subplots(len(panels), sharex=True, sharey=True, squeeze=False)
    for axes, (title, panel) in zip(rows[:, 0], panels.items(), strict=True):
        curves = {
            label: list(outcome.curves.values())
            for label, outcome in panel.items()
        }
        plots.plot_learning_curves(
            curves, ylabel="normalized loss", baseline=1, ax=axes
        )
        axes.set_title(title, loc="left")
        axes.label_outer()
    if (
        len(panels) > 1
        and len({tuple(panel) for panel in panels.values()}) == 1
    ):
        for axes in figure.axes:
            axes.get_legend().remove()
        drawn = axes.get_legend_handles_labels()
        figure.legend(*drawn, loc="outside lower center", ncols=len(panel))
    if axes.get_ylim()[0] < FAR_BELOW:
        axes.set_yscale("log")
    return figure


def _panels(study):
    """{title: {model in words: Outcome}}; the title may be empty."""
    by = study.protocol.get("panels")
    return {
        tables.label([(by, value)] if by else []): panel
        for value, panel in tables.panels(study).items()
    }


def _names(study):
    """The settings that tell the models."""
    return tables.told_by(study.outcomes, protocols.of_models(study.protocol))


def _settings(study):
    """Medians of the validation losses over two hyperparameters."""
    maps = {
        model: outcome
        for model, outcome in study.outcomes.items()
        if all(len(values) > 1 for values in outcome.tried.values())
    }
    figure = Figure(figsize=(4.5 * len(maps), 4), layout="constrained")
    for axes, (model, outcome) in zip(
        figure.subplots(1, len(maps), squeeze=False)[0],
        maps.items(),
        strict=True,
    ):
        (one, across), (other, up) = outcome.tried.items()
        medians = [
            [
                np.median(verdicts.validation_losses(outcome.groups[x, y]))
                for x in across
            ]
            for y in up
        ]
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
        axes.set(
            xlabel=tables.said(one),
            ylabel=tables.said(other),
            title=tables.label((n, v) for n, v in model if n in _names(study)),
        )
    figure.colorbar(image, label="normalized validation loss (baseline = 1)")
    return figure
