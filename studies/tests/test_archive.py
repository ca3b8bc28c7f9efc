"""What the study of long recordings chooses from the parts left out."""

import pytest
from archive.long import best_choice


@pytest.mark.parametrize(
    ("folds", "chosen"),
    [
        ([[0.6, 0.78], [0.61, 0.8], [0.7, 0.9]], 1),  # 0.1 below 0.8
        ([[0.5, 0.7], [0.6, 0.7], [0.7, 0.9]], 2),
        ([[0.0, 0.0], [0.8, 0.8], [0.8, 0.8]], 1),
    ],
)
def test_the_smallest_rate_within_a_standard_error_is_chosen(folds, chosen):
    """Of the best one, and of scales at this rate the one with more right."""
    rates = 0.001, 0.003, 0.01
    choices = [
        {"rate": rate, "rolled": False, "folds": fold}
        for rate, fold in zip(rates, folds, strict=True)
    ]
    worse = [
        {**choice, "folds": [0.99 * n for n in choice["folds"]]}
        for choice in choices
    ]
    parts = {"own": worse, "set": choices[::-1]}
    best = best_choice(
        [{"part": name, "choices": rows} for name, rows in parts.items()]
    )
    expected = {"scale": "set", **choices[chosen]}
    assert best == expected
