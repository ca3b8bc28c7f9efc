"""The pictures of a study: contenders at their best, and all settings."""

import numpy as np
from matplotlib.figure import Figure

from benchmarks.claims import tables


def draw(record):
    """{file: picture}: the contenders, and two tuned settings as a map.

    Nothing where no contender has all its runs yet.
    """
    if not tables.outcomes(record):
        return {}
    pictures = {"contenders.png": _contenders(record)}
    if len(record["protocol"]["tuned"]) == 2:
        pictures["settings.png"] = _settings(record)
    return pictures


def _contenders(record):
    """Medians of the test scores and their intervals, best on top."""
    outcomes = tables.outcomes(record)
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


def _settings(record):
    """Medians of the scores on validation data over two tuned settings."""
    one, other = record["protocol"]["tuned"]
    outcomes = tables.outcomes(record).items()
    both = [
        (c, o)
        for c, o in outcomes
        if len({r[one] for r in o.runs}) > 1
        and len({r[other] for r in o.runs}) > 1
    ]
    figure = Figure(figsize=(4.5 * len(both), 4), layout="constrained")
    for axes, (contender, outcome) in zip(
        figure.subplots(1, len(both), squeeze=False)[0], both, strict=True
    ):
        across = sorted({run[one] for run in outcome.runs})
        up = sorted({run[other] for run in outcome.runs})
        medians = [[outcome.validation[x, y] for x in across] for y in up]
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
