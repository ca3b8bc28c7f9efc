"""What the study of the archive chooses from its counts."""

import itertools

import numpy as np
import pytest
from archive import layers as archive

from engine.recordings import Recordings
from engine.recordings import framed

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
    sizes = {"test": 10, "weights": {"GRU": 3}}
    return {"data": "A", "models": {"GRU": counts}, "sizes": sizes}


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


def test_a_frame_has_the_time_steps_in_their_order():
    x = np.zeros((2, 5, 2), "float32")
    x[0], x[1, :3] = np.arange(10).reshape(5, 2), 7
    recordings = Recordings(x, np.array([5, 3]), np.array([0, 1]))
    frames = framed(recordings, 2)
    np.testing.assert_array_equal(frames.lengths, [3, 2])
    np.testing.assert_array_equal(
        frames.x[0], [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 0, 0]]
    )
    np.testing.assert_array_equal(
        frames.x[1], [[7, 7, 7, 7], [7, 7, 0, 0], [0, 0, 0, 0]]
    )
    for array, same in zip(framed(recordings, 1), recordings, strict=True):
        np.testing.assert_array_equal(array, same)
