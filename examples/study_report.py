"""The table and the picture of a study, from the records of its runs."""

import numpy as np
import outputs
from matplotlib.figure import Figure
from scipy import stats


def tables(record):
    """Medians over the seeds, with 95 % bootstrap intervals."""
    rates = sorted({run["settings"]["learning_rate"] for run in record["runs"]})
    rows = [
        [f"{task}, {start}", *(_cell(groups.get(rate, [])) for rate in rates)]
        for (task, start), groups in _by_start(record["runs"]).items()
    ]
    header = ["task, start", *(f"rate {rate:g}" for rate in rates)]
    return {"table.md": outputs.markdown(header, rows)}


def _by_start(runs):
    """{(task, start): {rate: [run]}}"""
    groups = {}
    for run in runs:
        settings = run["settings"]
        key = settings["task"], settings["start"]
        rates = groups.setdefault(key, {})
        rates.setdefault(settings["learning_rate"], []).append(run)
    return groups


def _cell(runs):
    scores = [run["score"] for run in runs if "score" in run]
    failed = len(runs) - len(scores)
    words = [_interval(scores)] if scores else []
    return ", ".join(words + ([f"{failed} failed"] if failed else []))


def _interval(scores):
    median = f"{np.median(scores):.2g}"
    if len(scores) < 2:
        return median
    low, high = _bounds(scores)
    return f"{median} ({low:.2g} to {high:.2g})"


def _bounds(scores):
    found = stats.bootstrap(
        (scores,), np.median, method="percentile", rng=np.random.default_rng(0)
    )
    return found.confidence_interval


def draw(runs):
    """One panel a task: the median over the rate, in its interval."""
    groups = _by_start([run for run in runs if "score" in run])
    names = sorted({task for task, _ in groups})
    rates = sorted({run["settings"]["learning_rate"] for run in runs})
    if not names:  # all failed
        return Figure()
    figure = Figure(figsize=(9, 4), layout="constrained")
    panels = figure.subplots(1, len(names), squeeze=False)[0]
    for axes, name in zip(panels, names, strict=True):
        for (task, start), group in sorted(groups.items()):
            if task == name:
                _draw_line(axes, start, dict(sorted(group.items())))
        axes.axhline(1, color="grey", linewidth=1)
        axes.set(title=name, xscale="log", xlabel="learning rate")
        axes.set(ylabel="loss / knowing nothing", ylim=(0, None))
        axes.minorticks_off()
        axes.set_xticks(rates, [f"{rate:g}" for rate in rates])
    panels[-1].legend(fontsize="small")
    return figure


def _draw_line(axes, label, rates):
    scores = [[run["score"] for run in runs] for runs in rates.values()]
    medians = np.array([np.median(group) for group in scores])
    spread = [_bounds(s) if len(s) > 1 else (s[0], s[0]) for s in scores]
    low, high = np.array(spread).T
    errors = [medians - low, high - medians]
    axes.errorbar(list(rates), medians, errors, label=label, capsize=3)
