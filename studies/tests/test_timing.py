"""Memory of calls."""

import sys

import numpy as np
import pytest

from engine import timing


def allocate(mebibytes):
    np.ones(mebibytes * 2**20, "uint8")


@pytest.mark.skipif(sys.platform != "linux", reason="Linux tells the memory")
def test_an_earlier_peak_does_not_hide_the_memory_that_calls_need():
    allocate(300)
    growth = timing.peak_growth(lambda: [allocate(100) for _ in range(3)])
    assert growth == pytest.approx(100, abs=2)
