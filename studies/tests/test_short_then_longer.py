"""The study measures the program of the README."""

import pathlib
import re

from short_then_longer.measure import LADDER

README = pathlib.Path(__file__).parents[2] / "README.md"


def test_the_readme_climbs_the_ladder_of_the_study():
    rungs = re.findall(
        r"^    \((\d+), (\d+), (\de-\d)\),$", README.read_text(), re.M
    )
    ladder = [(int(n), int(k), float(rate)) for n, k, rate in rungs]
    assert tuple(ladder) == LADDER
