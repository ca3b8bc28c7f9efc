"""The readers of files: stories and characters, as they stand there."""

import os
import pathlib

import numpy as np
import pytest
from scipy import stats

from engine import babi
from engine import characters

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
    alphabet = "".join(sorted(set(TEXT)))
    x, y = characters.windows(TEXT, alphabet, length)
    inputs, targets = (
        "".join(alphabet[code] for code in codes.ravel()) for codes in (x, y)
    )
    assert TEXT.startswith(inputs) and TEXT[1:].startswith(targets)
    assert len(TEXT) - len(inputs) <= length


def test_the_baseline_of_a_text_is_the_entropy_of_its_characters():
    counts = np.bincount(list(TEXT.encode()))
    assert characters.baseline_loss(TEXT) == pytest.approx(
        stats.entropy(counts)
    )


def spelled(words, numbers):
    return " ".join(words[number] for number in numbers if number)


def test_a_question_has_the_statements_before_it(tmp_path):
    (tmp_path / "qa7_any-name_train.txt").write_text(STORIES)
    (tmp_path / "qa7_any-name_test.txt").write_text(STORIES[:60])
    train, test, words = babi.read(tmp_path, 7)
    first = "mary moved to the bathroom ."
    second = first + " john took mary ' s apple ."
    assert [[spelled(words, row) for row in part] for part in train[:2]] == [
        [first, second, "the hall is empty ."],
        ["where is mary ?", "what does john hold ?", "is it ?"],
    ]
    assert [words[n] for n in train[2]] == ["bathroom", "apple,milk", "yes"]
    assert spelled(words, test[0][0]) == first
    assert [array.shape[1:] for array in train] == [(13,), (5,), ()]
    assert words == ["", *sorted(set(words[1:]))]


def test_chance_is_the_share_of_the_answer_most_frequent_in_training():
    assert babi.chance_accuracy([4, 4, 2, 4, 3], np.array([2, 4, 2, 2])) == 0.25


@pytest.mark.skipif("BABI_DIR" not in os.environ, reason="needs BABI_DIR")
@pytest.mark.parametrize("task", range(1, 21))
def test_the_real_tasks_are_read_whole(task):
    folder = os.environ["BABI_DIR"]
    train, test, words = babi.read(folder, task)
    for kind, (stories, questions, answers) in ("train", train), ("test", test):
        (file,) = pathlib.Path(folder).glob(f"qa{task}_*_{kind}.txt")
        rows = [line.split("\t") for line in file.read_text().splitlines()]
        expected = [row[1].lower() for row in rows if len(row) > 1]
        assert [words[n] for n in answers] == expected
        assert len(stories) == len(questions) == len(expected) == 1_000
        assert (stories[:, 0] != 0).all() and (questions[:, 0] != 0).all()
