"""Findings of the study of residual networks."""

import numpy as np

from engine import findings
from engine import verdicts


def does_not_overfit(study, where):
    """Whether the validation error rises again before training ends."""
    within = study.protocol.source["within"]

    def rise(trial):
        runs = [run for run in trial.runs if run.curve is not None]
        rises = [run.curve[-1] - min(run.curve) for run in runs]
        low, high = verdicts.mean_interval(rises)
        training = np.median([run.training_curve[-1] for run in runs])
        summary = (
            f"validation error at the end {verdicts.mean_of(rises)} above its "
            f"lowest; training error {training:.2g}, test error "
            f"{np.median([run.test for run in runs]):.2g}"
        )
        return summary, verdicts.answer(yes=high < within, no=low > within)

    return findings.of_each_variant(study, where, rise)
