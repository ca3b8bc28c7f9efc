"""The picture of a study: each contender at its best."""

from matplotlib.figure import Figure

from benchmarks import claim_tables


def draw(record):
    """Medians of the test scores and their intervals, best on top."""
    outcomes = claim_tables.outcomes(record)
    ranked = sorted(outcomes.items(), key=lambda item: item[1].median)
    figure = Figure(figsize=(7, 1 + 0.3 * len(ranked)), layout="constrained")
    axes = figure.subplots()
    for contender, outcome in ranked:
        low, high = outcome.interval
        spread = [[outcome.median - low], [high - outcome.median]]
        label = claim_tables.label(contender)
        axes.errorbar(
            outcome.median, label, xerr=spread, fmt="o", color="C0", capsize=3
        )
        dots = list(outcome.scores.values())
        axes.plot(dots, [label] * len(dots), "|", color="grey")
    axes.axvline(1, color="grey", linewidth=1)
    axes.set(xlabel="score over that of knowing nothing", xlim=(0, None))
    axes.invert_yaxis()
    return figure
