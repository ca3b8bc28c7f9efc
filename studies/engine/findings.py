"""What claims say that are no comparison, for any study.

Those of one study are in findings.py beside its protocol. Each is a function of
a study and the `where` of a claim that returns the parts of the claim, none
where runs are missing.
"""

import numpy as np

from engine import verdicts
from engine.study import count_diverged
from engine.study import grouped


def becomes_nonnormal(study, where):
    """Henrici departures of each layer, over all tasks and seeds."""
    by_layer = grouped(study.outcomes, lambda outcome: outcome.variant["layer"])
    parts = []
    for layer, outcomes in by_layer.items():
        departures = (o.best.departures["recurrent"] for o in outcomes)
        before, after = map(np.concatenate, zip(*departures, strict=True))
        parts.append(verdicts.difference(after, before, layer))
    return parts


def never_diverges(study, where):
    """Diverged runs of a model, over all hyperparameters and seeds."""
    runs = [run for run in study.runs if run.setting.matches(where)]
    by_length, parts = grouped(runs, lambda run: run.setting["length"]), []
    for length, runs in by_length.items():
        count = count_diverged(runs)
        summary = f"{count} of {len(runs)} runs diverged"
        answer = verdicts.answer(yes=not count, no=count)
        parts.append(verdicts.Part(f"{length:,} steps", summary, answer))
    return parts


def of_each_variant(study, where, judge):
    """A part for each variant, of what `judge` says of its best trial."""
    parts = []
    for outcome in study.outcomes:
        variant = outcome.variant
        if variant.matches(where):
            name = variant["layer"] or ""
            if "permuted" in study.protocol.varied and variant["permuted"]:
                name += ", permuted"
            parts.append(verdicts.Part(name, *judge(outcome.best)))
    return parts
