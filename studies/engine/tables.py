"""The tables of a study: its variants, their hyperparameters, their runs."""

import statistics

from engine import record
from engine import words
from engine.study import count_diverged
from engine.study import count_solved
from engine.study import grouped


def _models(study):
    """Each variant at its best hyperparameters."""

    def cells(outcome):
        loss, runs = _spread(outcome.test_losses.values()), outcome.runs
        diverged = f"{count_diverged(runs)} of {len(runs)}"
        yield [loss, *_chosen(outcome), _solved(runs), diverged]

    header = ["normalized loss", *tuned(study), "solved", "diverged"]
    return _table(study, header, cells)


def _accuracies(study):
    """Test accuracy of each classifier at its best hyperparameters."""

    def cells(outcome):
        yield [_spread(outcome.best.accuracies, ".1%"), *_chosen(outcome)]

    return _table(study, ["accuracy", *tuned(study)], cells)


def _rates(study):
    """Each variant at each hyperparameter, on test data."""

    def cells(outcome):
        for trial in sorted(outcome.trials, key=lambda trial: trial.values):
            values = [f"{value:g}" for value in trial.values]
            counts = _solved(trial.runs), count_diverged(trial.runs)
            yield [*values, *counts, _spread(trial.test_losses.values())]

    header = [*tuned(study), "solved", "diverged", "normalized loss"]
    return _table(study, header, cells)


def _departures(study):
    """Henrici departure of each recurrent matrix, before and after."""

    def cells(outcome):
        yield from (map(_spread, d) for d in outcome.best.departures.values())

    return _table(study, ["before training", "after training"], cells)


SHOWN = {
    "models": _models,
    "accuracies": _accuracies,
    "departures": _departures,
    "rates": _rates,
}


def panels(study):
    """[(value of `panels`, if any, [(variant in words, outcome)])]"""
    by = study.protocol["panels"]
    names = sorted(name for name in telling(study) if name != by)

    def label(variant):
        return words.label((name, variant[name]) for name in names)

    pairs = [(label(outcome.variant), outcome) for outcome in study.outcomes]
    by_value = grouped(pairs, lambda pair: by and pair[1].variant[by])
    return list(by_value.items())


def telling(study):
    """The hyperparameters that tell the variants of a study apart."""
    variants = [outcome.variant for outcome in study.outcomes]
    return words.telling_names(variants, study.protocol.varied)


def tuned(study):
    return list(map(words.name, study.protocol["tuned"]))


def _table(study, header, cells):
    """Columns that tell the variants, and what `cells` says of an outcome."""
    names = telling(study)
    rows = [
        [*(words.cell(outcome.variant[name]) for name in names), *row]
        for outcome in study.outcomes
        for row in cells(outcome)
    ]
    header = [*map(words.name, names), *header]
    return record.markdown(header, rows, words=len(names))


def _solved(runs):
    return f"{count_solved(runs)} of {len(runs)}"


def _spread(values, form=".2g"):
    three = statistics.median(values), min(values), max(values)
    return "{:{form}} ({:{form}} to {:{form}})".format(*three, form=form)


def _chosen(outcome):
    """The hyperparameters; a star says that the best may lie beyond."""
    for value, tried in zip(outcome.best.values, outcome.tried, strict=True):
        edge = len(tried) > 1 and value in (tried[0], tried[-1])
        yield f"{value:g}{'*' if edge else ''}"
