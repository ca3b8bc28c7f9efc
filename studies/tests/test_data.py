"""The readers of files: stories and characters, as they stand there."""

import numpy as np
import pytest

from engine import babi
from engine import data

TEXT = "It is a truth universally acknowledged, that a rose is a rose.\n" * 3
STORIES = """\
1 Mary moved to the bathroom.
2 Where is Mary? \tbathroom\t1
3 John took Mary's apple.
4 What does John hold? \tapple,milk\t3 1
1 The hall is empty.
2 Is it?\tYes\t1
"""


@pytest.mark.parametrize("length", [5, 46, 1])
def test_windows_in_order_spell_the_text(length):
    inputs, targets = (
        "".join(codes.ravel())
        for codes in data.windows(np.array(list(TEXT)), length)
    )
    assert TEXT.startswith(inputs) and TEXT[1:].startswith(targets)
    assert len(TEXT) - len(inputs) <= length


def test_a_question_has_the_statements_before_it(tmp_path):
    def spelled(numbers):
        return " ".join(words[number] for number in numbers if number)

    (tmp_path / "qa7_any-name_train.txt").write_text(STORIES)
    (tmp_path / "qa7_any-name_test.txt").write_text(STORIES[:60])
    train, test, words = babi.read(tmp_path, 7)
    first = "mary moved to the bathroom ."
    second = first + " john took mary ' s apple ."
    assert [list(map(spelled, part)) for part in train[:2]] == [
        [first, second, "the hall is empty ."],
        ["where is mary ?", "what does john hold ?", "is it ?"],
    ]
    assert [words[n] for n in train[2]] == ["bathroom", "apple,milk", "yes"]
    assert spelled(test[0][0]) == first
    assert [array.shape[1:] for array in train] == [(13,), (5,), ()]
    assert words == ["", *sorted(set(words[1:]))]
