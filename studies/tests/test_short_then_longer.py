"""The study measures the program of the page on long sequences."""

import pathlib
import re

import keras
import pytest
from short_then_longer.ladder import LONGER
from short_then_longer.ladder import SMALLEST
from short_then_longer.ladder import train

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "long_sequences.md"


def test_the_page_climbs_the_ladder_of_the_study():
    rungs = re.findall(
        r"^    \((\d+), (\d+), (\d+), (\de-\d)\),$", PAGE.read_text(), re.M
    )
    ladder = [tuple(map(float, rung)) for rung in rungs]
    assert tuple(ladder) == LONGER


@pytest.mark.exhaustive
def test_a_trained_network_is_saved_for_the_demonstration(tmp_path):
    ladder, tests = SMALLEST["ladder"], SMALLEST["tests"]
    file = tmp_path / "rin.keras"
    train("RIN", 0, ladder, tests, file)
    model = keras.saving.load_model(file, compile=False)
    assert model.input_shape == (None, None, 2)
