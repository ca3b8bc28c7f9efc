import os
import pathlib

import numpy as np
import pytest

from keras_rin.tasks import babi

pytestmark = pytest.mark.one_backend

REAL = os.environ.get("BABI_DIR")
TRAIN = """\
1 Mary moved to the bathroom.
2 Where is Mary? \tbathroom\t1
3 John took Mary's apple.
4 What does John hold? \tapple,milk\t3 1
1 The hall is empty.
2 Is it?\tYes\t1
"""
TEST = """\
1 John left.
2 Where is John?\tgarden\t1
"""


def write(folder, train=TRAIN, test=TEST, task=7):
    for kind, text in (("train", train), ("test", test)):
        file = folder / f"qa{task}_any-name_{kind}.txt"
        file.write_text(text, encoding="utf-8")


def spelled(words, numbers):
    return " ".join(words[number] for number in numbers if number)


def test_a_question_has_the_statements_before_it(tmp_path):
    write(tmp_path)
    train, test, words = babi.read(tmp_path, 7)
    first = "mary moved to the bathroom ."
    second = first + " john took mary ' s apple ."
    stories, questions, answers = train
    told = [spelled(words, story) for story in stories]
    assert told == [first, second, "the hall is empty ."]
    assert [spelled(words, question) for question in questions] == [
        "where is mary ?",
        "what does john hold ?",
        "is it ?",
    ]
    assert [words[n] for n in answers] == ["bathroom", "apple,milk", "yes"]
    assert spelled(words, test[0][0]) == "john left ."
    assert words[test[2][0]] == "garden"


def test_both_splits_are_filled_up_at_the_end_alike(tmp_path):
    write(tmp_path)
    train, test, words = babi.read(str(tmp_path), 7)
    assert [a.shape for a in train] == [(3, 13), (3, 5), (3,)]
    assert [a.shape for a in test] == [(1, 13), (1, 5), (1,)]
    assert all(array.dtype == np.int32 for array in (*train, *test))
    for array in (*train[:2], *test[:2]):
        ends = (array != 0).sum(axis=1)
        for row, end in zip(array, ends, strict=True):
            assert row[:end].all() and not row[end:].any()


def test_every_word_has_one_number_and_zero_is_none(tmp_path):
    write(tmp_path)
    train, test, words = babi.read(tmp_path, 7)
    assert words[0] == "" and words[1:] == sorted(set(words[1:]))
    used = np.concatenate([array.ravel() for array in (*train, *test)])
    assert set(used) == set(range(len(words)))


@pytest.mark.parametrize(
    "line",
    [
        "",
        "Mary moved.",
        "3 Mary moved.",
        "0 Mary moved.",
        "-1 Mary moved.",
        "2",
        "2 ",
        "2 Where is Mary?\tbathroom",
        "2 Where is Mary?\tbathroom\t1\t1",
        "2 Where is Mary?\t \t1",
        "2 \tbathroom\t1",
        "1 Where is Mary?\tbathroom\t1",
    ],
)
def test_a_malformed_line_is_named(tmp_path, line):
    write(tmp_path, train=f"1 Mary moved.\n{line}\n2 Is she?\tyes\t1\n")
    with pytest.raises(ValueError, match="train.txt, line 2: exp") as error:
        babi.read(tmp_path, 7)
    assert f"Received: {line!r}" in str(error.value)


@pytest.mark.parametrize("text", ["", "1 Mary moved.\n"])
def test_a_file_without_a_question_is_refused(tmp_path, text):
    write(tmp_path, test=text)
    with pytest.raises(ValueError, match="test.txt does not contain any"):
        babi.read(tmp_path, 7)


def test_a_missing_folder_or_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="one file qa7_.*nowhere"):
        babi.read(tmp_path / "nowhere", 7)
    write(tmp_path, task=17)
    with pytest.raises(FileNotFoundError, match="with 0 such files"):
        babi.read(tmp_path, 7)
    write(tmp_path)
    (tmp_path / "qa7_another_test.txt").write_text(TEST)
    with pytest.raises(
        FileNotFoundError, match="qa7_.*test.*with 2 such files"
    ):
        babi.read(tmp_path, 7)


@pytest.mark.parametrize("task", [0, -1, 1.5, "1", None])
def test_the_task_must_be_a_positive_integer(tmp_path, task):
    with pytest.raises(ValueError, match="`task` must be an integer"):
        babi.read(tmp_path, task)


def test_chance_is_the_share_of_the_answer_most_frequent_in_training():
    train, test = [4, 4, 2, 4, 3], [2, 4, 2, 2]
    assert babi.chance_accuracy(train, test) == 0.25
    assert babi.chance_accuracy(test, train) == 0.2


@pytest.mark.parametrize("name", ["train_answers", "test_answers"])
def test_no_answers_have_no_chance(name):
    answers = {"train_answers": [1], "test_answers": [1], name: []}
    with pytest.raises(ValueError, match=f"`{name}` must not be empty"):
        babi.chance_accuracy(**answers)


@pytest.mark.skipif(not REAL, reason="BABI_DIR names no folder of bAbI tasks")
@pytest.mark.parametrize("task", range(1, 21))
def test_the_real_tasks_are_read_whole(task):
    splits = *_, words = babi.read(REAL, task)
    for kind, (stories, questions, answers) in zip(
        ("train", "test"), splits[:2], strict=True
    ):
        (file,) = pathlib.Path(REAL).glob(f"qa{task}_*_{kind}.txt")
        asked = [
            line.split("\t")
            for line in file.read_text().splitlines()
            if "\t" in line
        ]
        assert len(stories) == len(questions) == len(asked) == 1_000
        assert [words[n] for n in answers] == [a.lower() for _, a, _ in asked]
        assert (stories[:, 0] != 0).all() and (questions[:, 0] != 0).all()
    train, test, _ = splits
    assert 0 < babi.chance_accuracy(train[2], test[2]) < 0.75
