"""The tables of one study: its models, their hyperparameters, their runs.

A model is told by the settings in which the models of a study differ; what
all share, or what follows from another setting, is left out.
"""

import itertools
import statistics

from experiments import protocols
from experiments import results
from experiments import verdicts

SAID = {  # other words than in code
    "layer": "model",
    "number": "task",  # what readers of bAbI call it
    "recurrent_multiplier": "multiplier of U",
    "strength": "regularization strength",
    "clip": "clipping",
    "noise": "noise std",
    "train": "training samples",
    "train_length": "training length",
    "blocks": "blocks per stage",
    "depth": "residual units",
}


def of_models(study):
    """Each model at its best hyperparameters."""
    tuned = study.protocol["tuned"]
    return _table(
        study,
        ["normalized loss", *map(said, tuned), "solved", "diverged"],
        lambda outcome: [
            [
                _spread(outcome.losses.values()),
                *_chosen(outcome),
                _solved(outcome.runs),
                f"{verdicts.diverged(outcome.runs)} of {len(outcome.runs)}",
            ]
        ],
    )


def of_accuracies(study):
    """Test accuracy of each classifier at its best hyperparameters."""
    return _table(
        study,
        ["accuracy", *map(said, study.protocol["tuned"])],
        lambda outcome: [
            [_spread(outcome.accuracies, ".1%"), *_chosen(outcome)]
        ],
    )


def of_settings(study):
    """Median on validation data and solved runs, over a hyperparameter."""
    found = study.outcomes.values()
    tried = sorted({v for outcome in found for (v,) in outcome.groups})

    def cell(runs):
        median = statistics.median(verdicts.validation_losses(runs))
        return f"{median:.2g}, {_solved(runs)}"

    def cells(outcome):
        groups = outcome.groups
        return [[cell(groups[v,]) if (v,) in groups else "" for v in tried]]

    return _table(study, [f"{value:g}" for value in tried], cells)


def of_rates(study):
    """Each model at each hyperparameter, on test data."""
    tuned = study.protocol["tuned"]
    return _table(
        study,
        [*map(said, tuned), "solved", "diverged", "normalized loss"],
        lambda outcome: [
            [
                *(f"{value:g}" for value in values),
                _solved(runs),
                str(verdicts.diverged(runs)),
                _spread([verdicts.normalized(run, "test") for run in runs]),
            ]
            for values, runs in sorted(outcome.groups.items())
        ],
    )


def of_departures(study):
    """Henrici departure of each recurrent matrix, before and after."""
    return _table(
        study,
        ["before training", "after training"],
        lambda outcome: [
            list(map(_spread, before_and_after))
            for before_and_after in outcome.departures.values()
        ],
    )


def of_panels(study):
    """Medians on test data: a row for each panel, a column for each model."""
    rows = panels(study)
    columns = list(dict.fromkeys(itertools.chain(*rows.values())))

    def cell(outcome):
        if outcome is None:
            return ""
        return f"{outcome.median:.2g} ({', '.join(_chosen(outcome))})"

    return results.markdown(
        [said(study.protocol["panels"]), *columns],
        [
            [_cell(value), *(cell(row.get(column)) for column in columns)]
            for value, row in rows.items()
        ],
    )


def panels(study):
    """{value of the setting `panels`, if any: {model in words: Outcome}}"""
    by, found = study.protocol.get("panels"), {}
    names = told_by(study.outcomes, protocols.of_models(study.protocol))
    for model, outcome in study.outcomes.items():
        words = label((n, v) for n, v in model if n in names and n != by)
        found.setdefault(dict(model).get(by), {})[words] = outcome
    return found


SHOWN = {
    "models": of_models,
    "accuracies": of_accuracies,
    "panels": of_panels,
    "settings": of_settings,
    "departures": of_departures,
    "rates": of_rates,
}


def _table(study, header, cells):
    """Columns that tell the models, and what `cells` says of an outcome."""
    names = told_by(study.outcomes, protocols.of_models(study.protocol))
    rows = [
        [*(_cell(dict(model).get(name)) for name in names), *row]
        for model, outcome in study.outcomes.items()
        for row in cells(outcome)
    ]
    header = [*map(said, names), *header]
    return results.markdown(header, rows, words=len(names))


def told_by(models, order):
    """Names of the settings that tell models apart, as few as may be.

    Numbers that follow from another setting are left out before words are,
    the last before the first in `order`.
    """
    models = list(map(dict, models))
    names = [name for name in order if any(name in model for model in models)]

    def apart(names):
        return len({tuple(model.get(n) for n in names) for model in models})

    words = [
        name
        for name in names
        if any(isinstance(model.get(name), str) for model in models)
    ]
    numbers = [name for name in names if name not in words]
    kept = list(names)
    for name in [*reversed(numbers), *reversed(words)]:
        fewer = [other for other in kept if other != name]
        if fewer and apart(fewer) == apart(names):
            kept = fewer
    return kept


def _solved(runs):
    return f"{verdicts.solved(runs)} of {len(runs)}"


def _spread(values, form=".2g"):
    ends = interval((min(values), max(values)), form)
    return f"{statistics.median(values):{form}} ({ends})"


def interval(ends, form=".2g"):
    low, high = ends
    return f"{low:{form}} to {high:{form}}"


def _chosen(outcome):
    """The hyperparameters; a star says that the best may lie beyond."""
    for name, value in outcome.tuned.items():
        tried = outcome.tried[name]
        edge = len(tried) > 1 and value in (tried[0], tried[-1])
        yield f"{value:g}{'*' if edge else ''}"


def label(settings):
    """A model in words, of pairs of a setting and its value."""
    return ", ".join(_words(name, value) for name, value in settings)


def said(setting):
    """The name of a setting, in words."""
    return SAID.get(setting, setting.replace("_", " "))


def _words(name, value):
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return said(name) if value else f"not {said(name)}"
    return f"{said(name)} {value:g}"


def _cell(value):
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return value if isinstance(value, str) else f"{value:g}"
