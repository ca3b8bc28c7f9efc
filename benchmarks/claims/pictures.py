"""The pictures of a study: contenders at their best, and all settings."""

import numpy as np
from matplotlib.figure import Figure

from benchmarks.claims import tables
from benchmarks.claims import verdicts


def draw(record, by=None):
    """{file: picture}: the contenders, and two tuned settings as a map.

    Contenders that differ in the setting `by` stand below each other. Nothing
    is drawn where no contender has all its runs yet.
    """
    outcomes = tables.outcomes(record)
    if not outcomes:
        return {}
    pictures = {"contenders.png": _contenders(outcomes, by)}
    if len(record["protocol"]["tuned"]) == 2:
        pictures["settings.png"] = _settings(outcomes)
    return pictures


def _contenders(outcomes, by):
    """Medians of the test scores and their intervals, best on top.

    Where all are far from knowing nothing, that is left out of the picture.
    """
    panels = {}
    for contender, outcome in outcomes.items():
        title = tables.label(item for item in contender if item[0] == by)
        label = tables.label(item for item in contender if item[0] != by)
        panels.setdefault(title, []).append((label, outcome))
    sizes = [len(panel) for panel in panels.values()]
    highest = max(max(outcome.scores.values()) for outcome in outcomes.values())
    height = 0.6 + 0.4 * len(panels) + 0.3 * sum(sizes)
    figure = Figure(figsize=(7, height), layout="constrained")
    rows = figure.subplots(
        len(panels), sharex=True, squeeze=False, height_ratios=sizes
    )[:, 0]
    for axes, (title, panel) in zip(rows, panels.items(), strict=True):
        for label, outcome in sorted(panel, key=lambda item: item[1].median):
            _with_its_interval(axes, label, outcome)
        if highest > verdicts.HALF:
            axes.axvline(1, color="grey", linewidth=1)
        axes.set_title(title, loc="left")
        axes.margins(y=0.5 / len(panel))
        axes.invert_yaxis()
    # All have one x axis: its end is known once all is drawn.
    rows[-1].set(xlabel="score over that of knowing nothing", xlim=(0, None))
    return figure


def _with_its_interval(axes, label, outcome):
    low, high = outcome.interval
    spread = [[outcome.median - low], [high - outcome.median]]
    axes.errorbar(
        outcome.median, label, xerr=spread, fmt="o", color="C0", capsize=3
    )
    dots = list(outcome.scores.values())
    axes.plot(dots, [label] * len(dots), "|", color="grey")


def _settings(outcomes):
    """Medians of the scores on validation data over two tuned settings."""
    maps = {
        contender: outcome
        for contender, outcome in outcomes.items()
        if all(len(values) > 1 for values in outcome.tried.values())
    }
    figure = Figure(figsize=(4.5 * len(maps), 4), layout="constrained")
    for axes, (contender, outcome) in zip(
        figure.subplots(1, len(maps), squeeze=False)[0],
        maps.items(),
        strict=True,
    ):
        (one, across), (other, up) = outcome.tried.items()
        medians = [
            [verdicts.median(outcome.groups[x, y]) for x in across] for y in up
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
            title=tables.label(contender),
        )
    figure.colorbar(image, label="score over that of knowing nothing")
    return figure
