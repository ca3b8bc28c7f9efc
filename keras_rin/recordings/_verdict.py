"""Scores of recordings and streams, and the sentences that compare them."""

import numpy as np
from scipy import stats

RECURRENT = "RIN", "GRU", "LSTM"
SETTLED = 20  # right answers in a row


def score(outputs, data, rows):
    """The score of each recording, whose mean is accuracy or R^2.

    They are NaN if an output is not finite.
    """
    y = data.y[rows]
    if not np.isfinite(outputs).all():
        return np.full(len(y), np.nan)
    if data.classes:
        return (outputs.argmax(axis=-1) == y).astype(float)
    return 1 - (outputs.reshape(len(y)) - y) ** 2 / (y.var() or 1.0)


def stream_score(answers, y):
    """Accuracy, and steps to settle after a change of the class."""
    right = answers == y
    changes = np.flatnonzero(np.diff(y)) + 1
    steps = []
    for of in np.split(right, changes)[1:]:
        runs = np.convolve(of, np.ones(SETTLED, int), "valid") == SETTLED
        steps.append(runs.argmax() if runs.any() else np.inf)
    return {
        "accuracy": float(right.mean()),
        "steps to settle": float(np.median(steps)) if steps else np.nan,
        "never": float(np.isinf(steps).mean()) if steps else np.nan,
    }


def interval(differences):
    """Mean and 95 % limits of differences (seeds, recordings).

    Both are samples: the squares of the half widths of both means add up.
    """
    means = [differences.mean(axis=axis) for axis in (0, 1)]
    halves = [
        stats.sem(of) * stats.t.ppf(0.975, len(of) - 1)
        for of in means
        if len(of) > 1
    ]
    return differences.mean() + np.linalg.norm(halves) * np.array([0, -1, 1])


def finite_scores(entries):
    """Entries without models that always diverged; the worst score for a run.

    A run that diverged has the accuracy 0, or the lowest R^2 of all runs.
    """
    runs = {
        name: np.array(of)
        for name, of in entries.items()
        if len(of) and np.isfinite(of).any()
    }
    worst = min([0, *(np.nanmin(of.mean(axis=1)) for of in runs.values())])
    return {
        name: np.where(np.isnan(of), worst, of) for name, of in runs.items()
    }


def verdict(entries, data):
    """Which layer is ahead, and whether one is needed, in sentences."""
    measure = "accuracy" if data.classes else "R^2"
    scores = finite_scores(entries)
    failed = [name for name, of in entries.items() if name not in scores]
    ranked = sorted(scores, key=lambda name: -scores[name].mean())
    layers = [name for name in ranked if name in RECURRENT]
    others = [name for name in ranked if name not in RECURRENT]
    sentences = []
    if len(layers) > 1:
        sentences.append(_among_layers(layers, scores, measure, data.classes))
    if layers and others:
        sentences.append(_with_others(layers[0], others[0], scores, measure))
    if failed:
        sentences.append(f"Without a finite score: {', '.join(failed)}.")
    return "\n".join(sentences)


def _among_layers(layers, scores, measure, is_classified):
    first, second = layers[:2]
    right = [name for name in layers if (scores[name] == 1).all()]
    if is_classified and len(right) > 1:
        names = f"{', '.join(right[:-1])} and {right[-1]}"
        return f"{names} are right on every test recording."
    mean, low, high = _difference(scores[first], scores[second])
    if mean == 0:
        return f"{first} and {second} have the same {measure}."
    text = (
        f"{first} is ahead of {second} by {mean:.3f} in {measure}, 95 % "
        f"interval {low:.3f} to {high:.3f} over seeds and recordings."
    )
    return text if low > 0 else f"No difference that these data show: {text}"


def _with_others(first, other, scores, measure):
    mean, low, high = _difference(scores[first], scores[other])
    means = (
        f"{other} has a mean {measure} of {scores[other].mean():.3f}, {first} "
        f"{scores[first].mean():.3f}"
    )
    if low > 0:
        return (
            f"A recurrent layer pays: {means}, 95 % interval of the "
            f"difference {low:.3f} to {high:.3f}."
        )
    if mean <= 0:
        return f"No recurrent layer is needed: {means}."
    return f"These data do not show that a recurrent layer is needed: {means}."


def _difference(first, second):
    """The interval; what has one run is compared with every run."""
    seeds = min(len(first), len(second))
    if seeds > 1:  # the training may have ended between two layers
        first, second = first[:seeds], second[:seeds]
    return interval(first - second)


def stream_verdict(networks, baselines):
    """Whether a network is needed, from rows of the table of a stream."""
    best = max(baselines, key=lambda row: row["accuracy"])
    finite = [row for row in networks if "accuracy" in row]
    of_seeds = [row["accuracy"] for row in finite]
    low, mean, high = min(of_seeds), np.mean(of_seeds), max(of_seeds)
    text = (
        f"it has an accuracy of {mean:.3f} ({low:.3f} to {high:.3f} over "
        f"seeds), {best['name']} {best['accuracy']:.3f}."
    )
    steps = np.median([row["steps to settle"] for row in finite])
    if np.isfinite([steps, best["steps to settle"]]).all():
        text += (
            f" After a change it settles in {steps:g} steps, {best['name']} in "
            f"{best['steps to settle']:g}."
        )
    if low > best["accuracy"]:
        return f"A network pays: {text}"
    if mean <= best["accuracy"]:
        return f"No network is needed for the accuracy: {text}"
    return f"These rows do not show that a network is needed: {text}"
