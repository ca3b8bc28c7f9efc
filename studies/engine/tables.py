"""The tables of a study: its variants, their hyperparameters, their runs."""

import itertools
import statistics

from engine import record
from engine import words
from engine.study import count_diverged
from engine.study import count_solved
from engine.study import grouped


def _models(outcome):
    """Each variant at its best hyperparameters."""
    runs = outcome.runs
    counts = _solved(runs), f"{count_diverged(runs)} of {len(runs)}"
    yield [_spread(outcome.test_losses.values()), *_chosen(outcome), *counts]


def _accuracies(outcome):
    """Test accuracy of each classifier at its best hyperparameters."""
    yield [_spread(outcome.best.accuracies, ".1%"), *_chosen(outcome)]


def _rates(outcome):
    """Each variant at each hyperparameter, on test data."""
    for trial in sorted(outcome.trials, key=lambda trial: trial.values):
        values = [f"{value:g}" for value in trial.values]
        counts = _solved(trial.runs), count_diverged(trial.runs)
        yield [*values, *counts, _spread(trial.test_losses.values())]


def _departures(outcome):
    """Henrici departure of each recurrent matrix, before and after."""
    yield from (map(_spread, d) for d in outcome.best.departures.values())


TUNED = ""  # in a header: the tuned hyperparameters
TABLES = {
    "models": (["normalized loss", TUNED, "solved", "diverged"], _models),
    "accuracies": (["accuracy", TUNED], _accuracies),
    "rates": ([TUNED, "solved", "diverged", "normalized loss"], _rates),
    "departures": (["before training", "after training"], _departures),
}


def table(study, name):
    """Columns that tell the variants, and what a table says of an outcome."""
    names, (header, cells) = distinguishing_names(study), TABLES[name]
    rows = [
        [*(words.cell(outcome.variant[name]) for name in names), *row]
        for outcome in study.outcomes
        for row in cells(outcome)
    ]
    columns = [tuned(study) if name == TUNED else [name] for name in header]
    header = [*map(words.name, names), *itertools.chain(*columns)]
    return record.markdown(header, rows, words=len(names)).strip()


def panels(study):
    """[(value of `panels`, if any, [(variant in words, outcome)])]"""
    by = study.protocol["panels"]
    names = sorted(name for name in distinguishing_names(study) if name != by)

    def label(variant):
        return words.label((name, variant[name]) for name in names)

    pairs = [(label(outcome.variant), outcome) for outcome in study.outcomes]
    by_value = grouped(pairs, lambda pair: by and pair[1].variant[by])
    return list(by_value.items())


def distinguishing_names(study):
    """The hyperparameters that tell the variants of a study apart."""
    variants = [outcome.variant for outcome in study.outcomes]
    return words.distinguishing_names(variants, study.protocol.varied)


def tuned(study):
    return list(map(words.name, study.protocol["tuned"]))


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
