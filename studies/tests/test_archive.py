"""What the study of the archive chooses from its counts."""

import itertools

import numpy as np
import pytest
from archive import measure as archive

from engine.recordings import Recordings
from engine.recordings import framed


def run(fold, rates=archive.RATES, others=()):
    """Counts, of the left out part `fold[rate]`."""
    cases = itertools.product(rates, archive.READ_OUTS)
    counts = {
        f"{rate:g}, {how}": {"fold": [fold[rate]], "test": [number, number]}
        for number, (rate, how) in enumerate(cases)
    }
    return {
        "data": "A",
        "architecture": "gated",
        "models": {"GRU": counts} | {name: counts for name in others},
        "sizes": {"test": 10, "weights": {"GRU": 3, "LSTM": 3}},
    }


FIRST = run({0.001: 4, 0.003: 3, 0.01: 2, 0.03: -1}, others=["LSTM"])


@pytest.mark.parametrize(
    ("rate", "right", "chosen", "end"),
    [
        (0.0003, 5, 0.0003, True),
        (0.0003, 4, 0.0003, True),  # a tie
        (0.0003, 3, 0.001, False),
        (0.1, 5, 0.1, True),
        (0.1, 4, 0.001, True),  # a tie
    ],
)
def test_a_rate_beyond_an_end_is_one_more(
    rate, right, chosen, end, monkeypatch
):
    monkeypatch.setattr(archive, "first_runs", lambda: [FIRST])
    beyond = run({rate: right}, [rate])
    (of,) = archive.outcomes(archive.with_rates_beyond([beyond]))
    assert of["model"] == "GRU"
    assert (of["rate"], of["read_out"]) == (chosen, "last state")
    assert of["end"] == end
    assert len(of["by_case"]) == 2 * (len(archive.RATES) + 1)
    np.testing.assert_allclose(of["by_case"]["0.01, mean of states"], 0.5)


def test_a_run_that_diverged_has_no_right_answer():
    of, _ = archive.outcomes([FIRST])
    assert (of["rate"], of["diverged"]) == (0.001, 2)
    assert of["accuracies"] == pytest.approx([0, 0])
    assert of["end"]


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
