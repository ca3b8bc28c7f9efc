"""Time and memory of calls, and what is made of them."""

import sys

import numpy as np
import pytest
from step_time import layers

from engine import timing


def allocate(mebibytes):
    np.ones(mebibytes * 2**20, "uint8")


@pytest.mark.skipif(sys.platform != "linux", reason="Linux tells the memory")
def test_an_earlier_peak_does_not_hide_the_memory_that_calls_need():
    allocate(300)
    growth = timing.peak_growth(lambda: [allocate(100) for _ in range(3)])
    assert growth == pytest.approx(100, abs=2)


def test_what_any_step_takes_longer_without_xla_is_subtracted():
    ms = {"RIN": 5, "RIN, XLA": 2, "SimpleRNN": 10, "SimpleRNN, XLA": 4}
    ms |= {"mean over time, Dense": 4, "mean over time, Dense, XLA": 2}
    table = layers.ratio_table([{name: [t] for name, t in ms.items()}])
    medians = [line.split("|")[2].strip() for line in table.splitlines()[2:]]
    assert medians == ["0.50", "1.25", "0.50", "2.50", "2.00", "1.50"]
