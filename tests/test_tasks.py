import collections
import os
import pathlib

import keras
import numpy as np
import pytest
from references import to_numpy
from scipy import stats

from keras_rin.tasks import adding
from keras_rin.tasks import babi
from keras_rin.tasks import character_stream
from keras_rin.tasks import copying
from keras_rin.tasks import flip_flop
from keras_rin.tasks import sequential_pixels

pytestmark = pytest.mark.one_backend


@pytest.mark.parametrize("length", [2, 3, 100])
def test_the_answer_is_the_sum_of_the_two_marked_numbers(rng, length):
    x, y = adding.generate(rng, samples=50, length=length)
    assert x.shape == (50, length, 2) and y.shape == (50, 1)
    assert x.dtype == y.dtype == np.float32
    for (values, marks), answer in zip(x.transpose(0, 2, 1), y, strict=True):
        (marked,) = np.nonzero(marks)
        assert len(marked) == 2
        assert answer == np.float32(values[marked[0]] + values[marked[1]])


def test_numbers_are_even_between_0_and_1(rng):
    values = adding.generate(rng, samples=2000, length=50)[0][..., 0]
    assert 0 <= values.min() and values.max() < 1
    counts = np.histogram(values, bins=10, range=(0, 1))[0]
    np.testing.assert_allclose(counts / values.size, 0.1, atol=0.005)


def test_every_pair_of_places_is_equally_likely(rng):
    marks = adding.generate(rng, samples=12000, length=4)[0][..., 1]
    pairs, counts = np.unique(marks, axis=0, return_counts=True)
    assert len(pairs) == 6
    np.testing.assert_allclose(counts / 12000, 1 / 6, atol=0.015)


# name: (a task, arguments of its generator of data)
GENERATED = {
    "adding": (adding, {"samples": 5, "length": 7}),
    "copying": (copying, {"samples": 5, "length": 30}),
    "flip_flop": (flip_flop, {"samples": 5, "length": 30}),
}


@pytest.mark.parametrize("task, arguments", GENERATED.values(), ids=GENERATED)
def test_data_depend_on_the_generator_alone(task, arguments):
    first, again, of_another_seed = (
        task.generate(np.random.default_rng(seed), **arguments)[0]
        for seed in (3, 3, 4)
    )
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, of_another_seed)
    for rng in (0, None, np.random.RandomState(0)):
        with pytest.raises(TypeError, match="`rng` must be a numpy.random.Gen"):
            task.generate(rng, **arguments)


@pytest.mark.parametrize(
    "task, name, value",
    [
        (adding, "samples", 0),
        (adding, "length", 1),
        (adding, "samples", 2.5),
        (adding, "length", "9"),
        (copying, "samples", 0),
        (copying, "length", 20),
        (copying, "copied", 0),
        (copying, "symbols", 0),
        (copying, "length", 50.5),
        (flip_flop, "samples", 0),
        (flip_flop, "length", 0),
        (flip_flop, "bits", 1.5),
        (flip_flop, "pulse_probability", 1.1),
    ],
)
def test_sizes_that_do_not_fit_are_named(rng, task, name, value):
    arguments = {"samples": 1, "length": 50, name: value}
    message = f"`{name}` must be (an integer of at least|a finite)"
    with pytest.raises(ValueError, match=message):
        task.generate(rng, **arguments)
    if task is copying and name != "samples":
        del arguments["samples"]
        with pytest.raises(ValueError, match=message):
            copying.baseline_loss(**arguments)


ORDERS = [0, 1, 2], [0, 1, 2, 2], [1, 2, 3, 4], [[0, 1], [2, 3]], [0.0] * 4


def test_texts_images_and_labels_that_do_not_fit_are_named():
    for text, characters, streams, length, message in (
        ("a" * 11, "a", 2, 5, "at least 12 characters.*text of 11"),
        ("abxyab", "ab", 1, 2, "Missing: 'xy'"),
        ("abab", "aba", 1, 2, "each character only once"),
        ("abcabc", "abc", 0, 3, "must be an integer of at least 1"),
        ("abcabc", "abc", 1, 0, "must be an integer of at least 1"),
        ("abcabc", "abc", 1.5, 3, "must be an integer of at least 1"),
    ):
        with pytest.raises(ValueError, match=message):
            character_stream.generate(text, characters, streams, length)
    assert character_stream.generate("a" * 12, "a", 2, 5)[0].shape == (2, 5)
    for text in ("", b"abc", None, ["a"]):
        with pytest.raises(ValueError, match="`text` must be a string"):
            character_stream.alphabet(text)
        with pytest.raises(ValueError, match="`text` must be a string"):
            character_stream.baseline_loss(text)
    for shape in ((3,), (3, 4), (1, 2, 3, 4, 5)):
        with pytest.raises(ValueError, match="`images` must have the shape"):
            sequential_pixels.generate(np.ones(shape))
    for order in ORDERS:
        with pytest.raises(ValueError, match="permutation of the 4 pixels"):
            sequential_pixels.generate(np.ones((1, 2, 2)), order)
    for task, name in ((sequential_pixels, "labels"), (babi, "answers")):
        with pytest.raises(ValueError, match=f"`{name}` must not be empty"):
            task.baseline_loss([])


def test_the_baseline_is_the_loss_of_answering_one(rng):
    y = adding.generate(rng, samples=100_000, length=2)[1]
    assert abs(np.mean((y - 1) ** 2) - adding.baseline_loss()) < 0.002


@pytest.mark.parametrize(
    "length, copied, symbols", [(500, 10, 8), (21, 10, 8), (3, 1, 1), (9, 3, 5)]
)
def test_the_answer_repeats_what_was_shown(rng, length, copied, symbols):
    x, y = copying.generate(rng, 20, length, copied, symbols)
    assert x.shape == (20, length, symbols + 2) and x.dtype == np.float32
    assert y.shape == (20, length) and y.dtype == np.int32
    assert (x.sum(axis=2) == 1).all()
    for sequence, answer in zip(x.argmax(axis=2), y, strict=True):
        blanks = length - 2 * copied - 1
        word = list(sequence[:copied])
        assert all(1 <= symbol <= symbols for symbol in word)
        cue = [symbols + 1]
        assert list(sequence) == word + [0] * blanks + cue + [0] * copied
        assert list(answer) == [0] * (length - copied) + word


def test_every_symbol_is_equally_likely(rng):
    y = copying.generate(rng, 4000, 21)[1][:, -10:]
    counts = np.bincount(y.ravel(), minlength=9)[1:]
    np.testing.assert_allclose(counts / y.size, 1 / 8, atol=0.01)


def test_the_baseline_is_what_keras_says_of_the_even_answer(rng):
    y = copying.generate(rng, 5, 50, copied=4, symbols=3)[1]
    answer = np.zeros((5, 50, 4), "float32")
    answer[:, :-4, 0] = 1
    answer[:, -4:, 1:] = 1 / 3
    loss = keras.losses.SparseCategoricalCrossentropy()(y, answer)
    expected = copying.baseline_loss(50, copied=4, symbols=3)
    np.testing.assert_allclose(to_numpy(loss), expected, rtol=1e-5)


def test_the_target_is_the_sign_of_the_latest_pulse(rng):
    x, y = flip_flop.generate(rng, 20, 30, bits=4, pulse_probability=0.2)
    assert x.shape == y.shape == (20, 30, 4)
    assert x.dtype == y.dtype == np.float32
    held = np.zeros((20, 4))
    for t in range(30):
        held = np.where(x[:, t] != 0, x[:, t], held)
        np.testing.assert_array_equal(y[:, t], held)


def test_pulses_are_as_rare_as_asked_and_of_both_signs(rng):
    x, _ = flip_flop.generate(rng, 400, 101, pulse_probability=0.25)
    assert (x[:, 0] != 0).all()
    assert (x[:, 1:] != 0).mean() == pytest.approx(0.25, abs=0.01)
    assert x[x != 0].mean() == pytest.approx(0, abs=0.02)
    for probability, share in ((0, 1 / 101), (1, 1)):
        x, _ = flip_flop.generate(rng, 2, 101, 1, probability)
        assert (x != 0).mean() == pytest.approx(share)


def test_the_baseline_is_the_loss_of_the_best_constant(rng):
    y = flip_flop.generate(rng, 2000, 50)[1].astype("float64")
    assert y.var() == pytest.approx(flip_flop.baseline_loss(), abs=0.01)


TEXT = "It is a truth universally acknowledged, that a rose is a rose.\n" * 3


def test_the_alphabet_has_each_character_once():
    characters = character_stream.alphabet(TEXT)
    assert list(characters) == sorted(set(TEXT))


@pytest.mark.parametrize("streams, length", [(1, 5), (3, 7), (4, 46), (2, 1)])
def test_batches_in_order_spell_the_text(streams, length):
    characters = character_stream.alphabet(TEXT)
    x, y = character_stream.generate(TEXT, characters, streams, length)
    assert x.dtype == y.dtype == np.int32
    part = len(TEXT) // streams
    for stream in range(streams):
        inputs = "".join(characters[c] for c in x[stream::streams].ravel())
        targets = "".join(characters[c] for c in y[stream::streams].ravel())
        start = stream * part
        assert TEXT[start:].startswith(inputs)
        assert TEXT[start + 1 :].startswith(targets)
        assert part - len(inputs) <= length


LABELS = [ord(character) for character in TEXT]


@pytest.mark.parametrize(
    "task, data",
    [(character_stream, TEXT), (sequential_pixels, LABELS), (babi, LABELS)],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_the_baseline_of_classes_is_the_entropy_of_their_frequencies(
    task, data
):
    counts = list(collections.Counter(data).values())
    assert task.baseline_loss(data) == pytest.approx(stats.entropy(counts))


def test_pixels_come_row_by_row_with_their_colors(rng):
    for shape in ((2, 3, 4, 3), (2, 3, 4), (0, 3, 4)):
        images = rng.random(shape).astype("float32")
        x = sequential_pixels.generate(images)
        assert x.shape == (shape[0], 12, *(shape[3:] or (1,)))
        np.testing.assert_array_equal(x.reshape(shape), images)


def test_bytes_are_scaled_to_one():
    x = sequential_pixels.generate(np.array([[[0, 255]]], "uint8"))
    np.testing.assert_array_equal(x.ravel(), [0, 1])
    assert x.dtype == np.float32


def test_one_order_permutes_every_image_alike(rng):
    images = rng.random((2, 3, 4)).astype("float32")
    order = sequential_pixels.permutation(rng, 12)
    x = sequential_pixels.generate(images, order)
    back = np.empty_like(x)
    back[:, order] = x
    np.testing.assert_array_equal(back, sequential_pixels.generate(images))
    assert not np.array_equal(x, back)


def test_chance_is_the_share_of_the_most_frequent_class():
    assert sequential_pixels.chance_accuracy([2, 0, 2, 2]) == 0.75


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
    spelled_stories = [spelled(words, story) for story in stories]
    assert spelled_stories == [first, second, "the hall is empty ."]
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


TASKS = adding, babi, character_stream, copying, flip_flop, sequential_pixels


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.__name__)
def test_every_task_has_a_baseline(task):
    assert "baseline_loss" in task.__all__


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
        lines = [
            line.split("\t")
            for line in file.read_text().splitlines()
            if "\t" in line
        ]
        assert len(stories) == len(questions) == len(lines) == 1_000
        assert [words[n] for n in answers] == [a.lower() for _, a, _ in lines]
        assert (stories[:, 0] != 0).all() and (questions[:, 0] != 0).all()
    train, test, _ = splits
    assert 0 < babi.chance_accuracy(train[2], test[2]) < 0.75
