"""What the study of the archive chooses from its counts."""

import itertools

import pytest
from archive import layers as archive

CASES = [*itertools.product(archive.RATES, archive.READ_OUTS)]


def run(right):
    """Counts of a run, of the left out part `right[rate, read-out]`."""
    counts = {
        f"{rate:g}, {how}": {
            "fold": [right.get((rate, how), 3)],
            "test": [number, -1],
        }
        for number, (rate, how) in enumerate(CASES)
    }
    return {"data": "A", "models": {"GRU": counts}, "sizes": {"test": 10}}


@pytest.mark.parametrize(
    ("right", "chosen"),
    [
        ({}, 0),  # a tie
        ({(0.001, "mean of states"): 4}, 1),
        ({(0.01, "last state"): 4}, 4),
        ({(0.03, "last state"): 4, (0.003, "last state"): 4}, 2),
        ({case: -1 for case in CASES[:7]}, 7),
    ],
)
def test_the_rate_and_read_out_are_the_first_of_the_best(right, chosen):
    (of,) = archive.outcomes([run(right)])
    rate, how = CASES[chosen]
    assert of["chosen"] == f"{rate:g}, {how}"
    # A run that diverged has no right answer.
    assert of["accuracies"] == pytest.approx([chosen / 10, 0])
