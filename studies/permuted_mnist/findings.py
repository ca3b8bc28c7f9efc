"""Findings of the study of permuted MNIST."""

from engine import findings
from engine import verdicts


def reaches_95_percent(study, where):
    """Mean test accuracy at the best learning rate."""

    def accuracy(trial):
        low, high = verdicts.mean_interval(trial.accuracies)
        summary = verdicts.mean_of(trial.accuracies, ".1%", ".1%")
        return summary, verdicts.answer(yes=low >= 0.95, no=high < 0.95)

    return findings.of_each_variant(study, where, accuracy)
