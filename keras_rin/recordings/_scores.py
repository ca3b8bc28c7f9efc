"""Scores of recordings and of streams, and the sentences that compare them."""

import numpy as np
from scipy import stats

SETTLED = 20  # right answers in a row
HOLDS = 1, 2, 4, 8, 16, 32
COST = 0.005  # of accuracy on the validation, that a longer hold may take


def score(outputs, data):
    """The score of each recording, whose mean is accuracy or R^2.

    They are NaN if an output is not finite.
    """
    if not np.isfinite(outputs).all():
        return np.full(len(data.y), np.nan)
    if data.classes:
        return (outputs.argmax(axis=-1) == data.y).astype(float)
    residuals = outputs.reshape(len(data.y)) - data.y
    return 1 - residuals**2 / (data.y.var() or 1.0)


def held(answers, count):
    """The answers, each given after `count` equal ones in a row."""
    changes = np.append(True, answers[1:] != answers[:-1])
    firsts = np.flatnonzero(changes)
    lengths = np.diff(np.append(firsts, len(answers)))
    given = np.full(len(answers), -1)
    given[0] = 0
    places = (firsts + count - 1)[lengths >= count]
    given[places] = places
    rows = np.maximum.accumulate(given)
    return np.asarray(answers)[rows]


def choose_hold(answers, y):
    """The longest hold whose accuracy is close to that of the best one."""
    accuracies = {n: np.mean(held(answers, n) == y) for n in HOLDS}
    best = max(accuracies.values())
    return max(n for n in HOLDS if accuracies[n] >= best - COST)


def stream_scores(answers, y, rate=None):
    """Accuracy, how soon a change is followed, and how often answers change."""
    right = answers == y
    changes = np.flatnonzero(np.diff(y)) + 1
    steps = []
    for part in np.split(right, changes)[1:]:
        runs = np.convolve(part, np.ones(SETTLED, int), "valid") == SETTLED
        steps.append(runs.argmax() if runs.any() else np.inf)
    unit, per = ("s", 3600 * rate) if rate else ("rows", 1000)
    many = "an hour" if rate else "in 1,000 rows"
    return {
        "accuracy": float(right.mean()),
        f"{unit} to follow": float(np.median(steps)) / (rate or 1)
        if steps
        else np.nan,
        "never": float(np.isinf(steps).mean()) if steps else np.nan,
        f"changes {many}": float(
            np.sum(answers[1:] != answers[:-1]) * per / len(y)
        ),
    }


def recalls(answers, data):
    """Rows of a table: recall by class, and accuracy by group."""
    y = np.concatenate(data.y)
    rows = [
        {
            "class or group": name,
            "rows": int(np.sum(y == n)),
            "right": float(np.mean(answers[y == n] == n)),
        }
        for n, name in enumerate(data.classes)
        if np.any(y == n)
    ]
    units = unit_scores(answers, data)
    if data.groups is not None:
        lengths = np.array([*map(len, data.y)])
        for name, value in zip(np.unique(data.groups), units, strict=True):
            count = int(lengths[data.groups == name].sum())
            rows.append(
                {"class or group": name, "rows": count, "right": float(value)}
            )
    return rows


def unit_scores(answers, data):
    """Accuracy of each group or, without groups, between changes of the class."""
    y = np.concatenate(data.y)
    units = np.cumsum(np.diff(y, prepend=y[0]) != 0)
    if data.groups is not None:
        lengths = [*map(len, data.y)]
        units = np.repeat(
            np.unique(data.groups, return_inverse=True)[1], lengths
        )
    return np.bincount(units, answers == y) / np.bincount(units)


def interval(differences):
    """Mean and 95 % limits of differences (seeds, recordings).

    Both are samples: the squares of the half widths of both means add up.
    """
    means = [differences.mean(axis=axis) for axis in (0, 1)]
    halves = [
        stats.sem(mean) * stats.t.ppf(0.975, len(mean) - 1)
        for mean in means
        if len(mean) > 1
    ]
    return differences.mean() + np.linalg.norm(halves) * np.array([0, -1, 1])


def finite(scores):
    """Scores (seeds, recordings), of a run that diverged the worst one."""
    scores = np.array(scores, float)
    worst = min(0, np.nanmin(scores)) if np.isfinite(scores).any() else 0
    return np.where(np.isnan(scores), worst, scores)


def difference(first, second):
    """The interval; what has one run is compared with every run."""
    first, second = finite(first), finite(second)
    seeds = min(len(first), len(second))
    if seeds > 1:  # the time may have ended between two layers
        first, second = first[:seeds], second[:seeds]
    return interval(first - second)


def verdict(what, network, other, scores, units, missing):
    """Whether a network pays, in a sentence that no clock can turn round."""
    first, second = (finite(scores[name]) for name in (network, other))
    mean, low, high = difference(first, second)
    text = (
        f"{network} has a mean of {first.mean():.3f} on the test, {other} "
        f"{second.mean():.3f}; 95 % interval of the difference {low:.3f} to "
        f"{high:.3f} over {len(first)} seeds and {first.shape[1]} {units}."
    )
    if low > 0:
        return f"A {what} pays: {text}"
    if missing and second.mean() < 1:
        return f"Not decided in this time: {text} {missing}."
    if mean <= 0:
        return f"No {what} is needed: {text}"
    return f"These data do not show that a {what} is needed: {text}"
