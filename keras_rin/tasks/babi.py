"""The bAbI question-answering tasks, read from their files."""

import os
import pathlib
import re

import numpy as np
from numpy.typing import ArrayLike

from keras_rin import _arguments

__all__ = ["baseline_loss", "chance_accuracy", "read"]


def __dir__():
    return __all__


WORD = re.compile(r"\w+|[^\w\s]")


def read(
    folder: str | os.PathLike, task: int
) -> tuple[tuple, tuple, list[str]]:
    r"""Reads the training set, the test set and the vocabulary of one task.

    The story of a question is the sequence of all statements before it, in
    order. Words are converted to lower case. Punctuation marks are words, and
    an answer of several words, such as "n,e", is a single word. Words are
    encoded as their index in the vocabulary. Index 0, the empty word, pads
    shorter sequences at the end.

    Args:
        folder: A path, the folder with the files of all tasks, such as `en`
            of version 1.2.
        task: Positive integer, number of the task. Its files are
            `qa{task}_*_train.txt` and `qa{task}_*_test.txt`.

    Returns:
        A tuple `(train, test, words)`. `train` and `test` are tuples of int32
        arrays: stories of shape `(samples, steps)`, questions of shape
        `(samples, question steps)` and answers of shape `(samples,)`, in the
        order of the file and padded to the same lengths in both sets.
        `words` is the list of the words of both sets, sorted, after the empty
        word.

    Raises:
        FileNotFoundError: If the folder does not contain exactly one training
            file and one test file of the task.
        ValueError: If `task` is not a positive integer, or if a file does not
            have the expected format. The message names the file and the line.

    Example:

    >>> text = "1 Ann is in the hall.\n2 Where is Ann?\thall\t1\n"
    >>> for kind in ("train", "test"):
    ...     file = path.with_name(f"qa1_example_{kind}.txt")
    ...     size = file.write_text(text)
    >>> train, test, words = keras_rin.tasks.babi.read(path.parent, task=1)
    >>> stories, questions, answers = train
    >>> [words[number] for number in stories[0]]
    ['ann', 'is', 'in', 'the', 'hall', '.']
    >>> words[answers[0]]
    'hall'

    Reference:
        Weston, Bordes, Chopra, Rush, van Merrienboer, Joulin and Mikolov,
        2015, Towards AI-complete question answering: a set of prerequisite
        toy tasks (arXiv 1502.05698).
    """
    task = _arguments.integer("task", task)
    splits = [_samples(_file(folder, task, kind)) for kind in ("train", "test")]
    all_samples = [sample for samples in splits for sample in samples]
    vocabulary = {
        word for parts in all_samples for part in parts for word in part
    }
    words = ["", *sorted(vocabulary)]
    index = {word: number for number, word in enumerate(words)}
    sizes = [max(map(len, parts)) for parts in zip(*all_samples, strict=True)]
    train, test = (_arrays(samples, index, sizes) for samples in splits)
    return train, test, words


def baseline_loss(answers: ArrayLike) -> float:
    """Cross-entropy, in nats, of predicting the frequencies of the answers.

    Args:
        answers: Integer array of shape `(samples,)`, as returned by `read`.

    Returns:
        A float, the entropy of the answers.

    Raises:
        ValueError: If `answers` is empty.

    Example:

    >>> round(keras_rin.tasks.babi.baseline_loss([3, 5, 3, 5]), 4)
    0.6931
    """
    _, counts = np.unique(
        _checked_answers("answers", answers), return_counts=True
    )
    shares = counts / counts.sum()
    return float(-(shares * np.log(shares)).sum())


def chance_accuracy(train_answers: ArrayLike, test_answers: ArrayLike) -> float:
    """Chance level: accuracy of the most frequent answer of the training set.

    Args:
        train_answers: Integer array of shape `(samples,)`.
        test_answers: Integer array of shape `(samples,)`.

    Returns:
        A float, the frequency of that answer in `test_answers`.

    Raises:
        ValueError: If one of the arrays is empty.

    Example:

    >>> keras_rin.tasks.babi.chance_accuracy([3, 5, 5], [5, 3, 3, 3])
    0.25
    """
    answers, counts = np.unique(
        _checked_answers("train_answers", train_answers), return_counts=True
    )
    test_answers = _checked_answers("test_answers", test_answers)
    return float(np.mean(test_answers == answers[counts.argmax()]))


def _checked_answers(name, answers):
    if not np.size(answers):
        raise ValueError(f"`{name}` must not be empty. Received: {name}=[]")
    return np.asarray(answers)


def _file(folder, task, kind):
    pattern = f"qa{task}_*_{kind}.txt"
    files = sorted(pathlib.Path(folder).glob(pattern))
    if len(files) != 1:
        raise FileNotFoundError(
            f"`folder` must contain exactly one file {pattern}. "
            f"Received: folder={str(folder)!r} with {len(files)} such files"
        )
    return files[0]


def _samples(path):
    """Lists of (story, question, answer), each a list of words."""
    samples: list[tuple] = []
    story: list[list[str]] = []
    last = 0
    lines = path.read_text(encoding="utf-8").splitlines()
    for line_number, line in enumerate(lines, start=1):
        number, _, content = line.partition(" ")
        text, *answer = (field.strip() for field in content.split("\t"))
        words = WORD.findall(text.lower())
        if number == "1":
            story, last = [], 0
        is_statement = words and not answer
        is_question = words and story and len(answer) == 2 and answer[0]
        if number != str(last + 1) or not (is_statement or is_question):
            raise ValueError(
                f"{path}, line {line_number}: expected the line number "
                f"{last + 1} or 1 and a statement or, after a statement, a "
                "question, its answer and its facts separated by tabs. "
                f"Received: {line!r}"
            )
        last += 1
        if is_question:
            samples.append((story.copy(), words, [answer[0].lower()]))
        else:
            story += words
    if not samples:
        raise ValueError(f"{path} does not contain any question.")
    return samples


def _arrays(samples, index, sizes):
    arrays = [np.zeros((len(samples), size), "int32") for size in sizes]
    for row, parts in enumerate(samples):
        for array, part in zip(arrays, parts, strict=True):
            array[row, : len(part)] = [index[word] for word in part]
    stories, questions, answers = arrays
    return stories, questions, answers[:, 0]
