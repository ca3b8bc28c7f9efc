"""Findings of the study of bAbI."""

import numpy as np

from engine import verdicts


def lower_over_tasks(study, where):
    """How much lower the errors of the first layer are, task by task.

    Each at its best learning rate, or at that which `where` names for it.
    """
    rates = where.get("learning_rate", [None, None])
    tasks = {setting["number"] for setting in study.protocol.settings}
    first, second = (
        {
            outcome.variant["number"]: outcome.best
            if rate is None
            else next(t for t in outcome.trials if t.values == (rate,))
            for outcome in study.outcomes
            if outcome.variant["layer"] == layer
        }
        for layer, rate in zip(where["layer"], rates, strict=True)
    )
    if not first.keys() & second.keys() >= tasks:
        return []
    accuracies = " vs. ".join(
        f"{np.concatenate([outcome[t].accuracies for t in tasks]).mean():.1%}"
        for outcome in (first, second)
    )
    part = verdicts.difference(
        [second[task].median_test_loss for task in tasks],
        [first[task].median_test_loss for task in tasks],
        f"{len(tasks)} tasks, mean accuracy {accuracies}",
    )
    return [part]
