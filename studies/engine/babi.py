"""The bAbI question-answering tasks (Weston et al. 2015, arXiv 1502.05698)."""

import pathlib
import re

import keras

WORD = re.compile(r"\w+|[^\w\s]")


def read(folder, task):
    """(training set, test set, words) of one task, from its files.

    A set is (stories, questions, answers), int32 arrays of the indices of
    words, padded at the end with 0. The story of a question is all statements
    before it. Punctuation marks are words, an answer is one word.
    """
    train, test = (
        _samples(*pathlib.Path(folder).glob(f"qa{task}_*_{kind}.txt"))
        for kind in ("train", "test")
    )
    samples, cut = train + test, len(train)
    vocabulary = {word for parts in samples for part in parts for word in part}
    words = ["", *sorted(vocabulary)]
    index = {word: number for number, word in enumerate(words)}
    stories, questions, answers = (
        keras.utils.pad_sequences(
            [[index[word] for word in part] for part in parts], padding="post"
        )
        for parts in zip(*samples, strict=True)
    )
    arrays = stories, questions, answers[:, 0]
    return [a[:cut] for a in arrays], [a[cut:] for a in arrays], words


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
