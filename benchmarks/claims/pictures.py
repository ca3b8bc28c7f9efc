"""The pictures of a study: contenders at their best, and all settings."""

import numpy as np
from matplotlib.figure import Figure

from benchmarks.claims import tables


def draw(record):
    """{file: picture}: the contenders, and two tuned settings as a map.

    Nothing where no contender has all its runs yet.
    """
    outcomes = tables.outcomes(record)
    if not outcomes:
        return {}
    pictures = {"contenders.png": _contenders(outcomes)}
    if len(record["protocol"]["tuned"]) == 2:
        pictures["settings.png"] = _settings(outcomes)
    return pictures


def _contenders(outcomes):
    """Medians of the test scores and their intervals, best on top."""
    ranked = sorted(outcomes.items(), key=lambda item: item[1].median)
    figure = Figure(figsize=(7, 1 + 0.3 * len(ranked)), layout="constrained")
    axes = figure.subplots()
    for contender, outcome in ranked:
        low, high = outcome.interval
        spread = [[outcome.median - low], [high - outcome.median]]
        label = tables.label(contender)
        axes.errorbar(
            outcome.median, label, xerr=spread, fmt="o", color="C0", capsize=3
        )
        dots = list(outcome.scores.values())
        axes.plot(dots, [label] * len(dots), "|", color="grey")
    axes.axvline(1, color="grey", linewidth=1)
    axes.set(xlabel="score over that of knowing nothing", xlim=(0, None))
    axes.invert_yaxis()
    return figure


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
        found = outcome.validation
        medians = [[found[x, y] for x in across] for y in up]
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
            xlabel=one.replace("_", " "),
            ylabel=other.replace("_", " "),
            title=tables.label(contender),
        )
    figure.colorbar(image, label="score over that of knowing nothing")
    return figure
