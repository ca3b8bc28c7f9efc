"""Scores of recordings and of streams, and the sentences that compare them."""

import typing

import numpy as np
import pandas as pd
from scipy import stats

SETTLED = 20  # right answers in a row
EVIDENCE = 0, 1, 2, 4, 8, 16, 32, 64, 128  # in the units of logits
COST = 0.005  # of accuracy on the validation, that more evidence may take


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


def followed(outputs, *evidence):
    """Answers `(evidence, rows)`, each the class with the largest sum s.

    s = max(s, max(s) - evidence) + y of the outputs y `(rows, classes)`: a
    change of the answer needs that evidence. With 0 it is the largest output.
    Also by how much the largest sum leads.
    """
    least = -np.reshape(evidence, (-1, 1))
    sums = np.zeros((len(evidence), outputs.shape[1]))
    answers = np.empty((len(evidence), len(outputs)), int)
    leads = np.empty(answers.shape)
    for row, y in enumerate(outputs):
        sums = np.maximum(sums - sums.max(axis=1, keepdims=True), least) + y
        answers[:, row] = sums.argmax(axis=1)
        second, first = np.partition(sums, -2, axis=1)[:, -2:].T
        leads[:, row] = first - second
    return answers, leads


class Rule(typing.NamedTuple):
    """How outputs become answers, as the validation chooses it."""

    evidence: int
    lead: float  # below which an answer is unknown
    accuracy: float  # on the validation, of all answers


def choose_rule(outputs, y, unknown=0.0):
    """The most evidence whose accuracy is close to that of the best one."""
    answers, leads = followed(outputs, *EVIDENCE)
    accuracies = np.mean(answers == y, axis=1)
    place = np.flatnonzero(accuracies >= accuracies.max() - COST)[-1]
    lead = float(np.quantile(leads[place], unknown)) if unknown else 0.0
    return Rule(EVIDENCE[place], lead, accuracies[place])


def stream_scores(answers, y, rate=None):
    """Accuracy, how soon a change is followed, and how often answers change."""
    changes = np.flatnonzero(np.diff(y)) + 1
    steps = []
    for part in np.split(answers == y, changes)[1:]:
        runs = np.convolve(part, np.ones(SETTLED, int), "valid") == SETTLED
        steps.append(runs.argmax() if runs.any() else np.inf)
    follow, change = "s to follow", "changes an hour"
    if not rate:
        follow, change = "rows to follow", "changes in 1,000 rows"
    every = 3600 * rate if rate else 1000
    return {
        "accuracy": np.mean(answers == y),
        follow: np.median(steps) / (rate or 1) if steps else np.nan,
        "never": np.mean(np.isinf(steps)) if steps else np.nan,
        change: np.mean(np.diff(answers) != 0) * every,
    }


def _is_right(answers, data):
    return pd.Series(answers == np.concatenate(data.y))


def _groups(data):
    """The group of each row or, without groups, the number of its stretch."""
    if data.groups is None:
        return np.cumsum(np.diff(np.concatenate(data.y), prepend=-1) != 0)
    return np.repeat(data.groups, [*map(len, data.y)])


def unit_scores(answers, data):
    """Accuracy of each group or, without groups, of each stretch."""
    return _is_right(answers, data).groupby(_groups(data)).mean().to_numpy()


def recalls(answers, data):
    """A table: the share of right answers by class and by group."""
    columns = [np.array(data.classes)[np.concatenate(data.y)]]
    columns += [] if data.groups is None else [_groups(data)]
    frames = [
        _is_right(answers, data).groupby(column).agg(rows="size", right="mean")
        for column in columns
    ]
    return pd.concat(frames).rename_axis("class or group").reset_index()


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


def difference(first, second):
    """The interval of scores; one that diverged has the lowest of all."""
    worst = np.nanmin([0, *np.ravel(first), *np.ravel(second)])
    first, second = (
        np.nan_to_num(scores, nan=worst) for scores in (first, second)
    )
    seeds = min(len(first), len(second))
    if seeds > 1:  # what has one run is compared with every run
        first, second = first[:seeds], second[:seeds]
    return interval(first - second)


def verdict(what, network, other, scores, units, missing):
    """Whether a network pays, in a sentence that no clock can turn round."""
    first, second = (np.array(scores[name]) for name in (network, other))
    mean, low, high = difference(first, second)
    text = (
        f"{network} has a mean of {first.mean():.3f} on the test, {other} "
        f"{second.mean():.3f}; 95 % interval of the difference {low:.3f} to "
        f"{high:.3f} over {len(first)} seeds and {first.shape[1]} {units}."
    )
    if low > 0:
        return f"A {what} pays: {text}"
    if missing and second.mean() < 1:
        return f"Not decided in this time: {text} {missing}"
    if mean <= 0:
        return f"No {what} is needed: {text}"
    return f"These data do not show that a {what} is needed: {text}"
