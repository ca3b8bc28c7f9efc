"""The bAbI question-answering tasks (Weston et al. 2015, arXiv 1502.05698)."""

import pathlib
import re

import numpy as np

WORD = re.compile(r"\w+|[^\w\s]")


def read(folder, task):
    """(training set, test set, words) of one task, from its files.

    A set is (stories, questions, answers), int32 arrays of the indices of
    words, padded at the end with 0. The story of a question is all statements
    before it. Punctuation marks are words, an answer is one word.
    """
    splits = [
        _samples(*pathlib.Path(folder).glob(f"qa{task}_*_{kind}.txt"))
        for kind in ("train", "test")
    ]
    samples = splits[0] + splits[1]
    vocabulary = {word for parts in samples for part in parts for word in part}
    words = ["", *sorted(vocabulary)]
    index = {word: number for number, word in enumerate(words)}
    sizes = [max(map(len, parts)) for parts in zip(*samples, strict=True)]
    train, test = (_arrays(split, index, sizes) for split in splits)
    return train, test, words


def chance_accuracy(train_answers, test_answers):
    """Accuracy of the answer that is most frequent in training."""
    answers, counts = np.unique(train_answers, return_counts=True)
    return float(np.mean(test_answers == answers[counts.argmax()]))


def _samples(path):
    """Lists of (story, question, answer), each a list of words."""
    samples, story = [], []
    for line in path.read_text(encoding="utf-8").splitlines():
        number, _, content = line.partition(" ")
        text, *answer = (field.strip() for field in content.split("\t"))
        words = WORD.findall(text.lower())
        if number == "1":
            story = []
        if answer:
            samples.append((story.copy(), words, [answer[0].lower()]))
        else:
            story += words
    return samples


def _arrays(samples, index, sizes):
    arrays = [np.zeros((len(samples), size), "int32") for size in sizes]
    for row, parts in enumerate(samples):
        for array, part in zip(arrays, parts, strict=True):
            array[row, : len(part)] = [index[word] for word in part]
    stories, questions, answers = arrays
    return stories, questions, answers[:, 0]
