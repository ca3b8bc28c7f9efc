"""Findings of the study of MNIST."""

from engine import findings
from engine import verdicts


def changes_average_to_zero(study, where, within=0.05):
    """Mean change of the hidden states per step, over its root mean square."""

    def change(trial):
        errors = [run.estimation_error for run in trial.runs]
        means = [error["mean"] for error in errors if error is not None]
        low, high = verdicts.mean_interval(means)
        inside = -within < low and high < within
        no = low > within or high < -within
        return verdicts.mean_of(means), verdicts.answer(inside, no)

    return findings.of_each_variant(study, where, change)
