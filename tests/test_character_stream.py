import collections

import numpy as np
import pytest
from scipy import stats

from keras_rin.tasks import character_stream

pytestmark = pytest.mark.one_backend

TEXT = "It is a truth universally acknowledged, that a rose is a rose.\n" * 3


def test_the_alphabet_has_each_character_once():
    found = character_stream.alphabet(TEXT)
    assert list(found) == sorted(set(TEXT))


@pytest.mark.parametrize("streams, length", [(1, 5), (3, 7), (4, 46), (2, 1)])
def test_batches_in_order_spell_the_text(streams, length):
    characters = character_stream.alphabet(TEXT)
    x, y = character_stream.generate(TEXT, characters, streams, length)
    assert x.dtype == y.dtype == np.int32
    part = len(TEXT) // streams
    for stream in range(streams):
        read = "".join(characters[c] for c in x[stream::streams].ravel())
        said = "".join(characters[c] for c in y[stream::streams].ravel())
        start = stream * part
        assert TEXT[start:].startswith(read)
        assert TEXT[start + 1 :].startswith(said)
        assert part - len(read) <= length


def test_the_baseline_is_the_entropy_of_scipy():
    counts = list(collections.Counter(TEXT).values())
    expected = stats.entropy(counts)
    np.testing.assert_allclose(character_stream.baseline_loss(TEXT), expected)


def test_a_text_too_short_is_refused():
    with pytest.raises(ValueError, match="at least 12 characters.*text of 11"):
        character_stream.generate("a" * 11, "a", streams=2, length=5)
    assert character_stream.generate("a" * 12, "a", 2, 5)[0].shape == (2, 5)


def test_unknown_characters_are_named():
    with pytest.raises(ValueError, match="Missing: 'xy'"):
        character_stream.generate("abxyab", "ab", 1, 2)


def test_repeated_characters_are_refused():
    with pytest.raises(ValueError, match="each character only once"):
        character_stream.generate("abab", "aba", 1, 2)


@pytest.mark.parametrize("text", ["", b"abc", None, ["a"]])
def test_other_texts_are_refused(text):
    for function in (character_stream.alphabet, character_stream.baseline_loss):
        with pytest.raises(ValueError, match="`text` must be a string"):
            function(text)


@pytest.mark.parametrize("streams, length", [(0, 3), (1, 0), (1.5, 3)])
def test_sizes_must_be_positive(streams, length):
    with pytest.raises(ValueError, match="must be an integer of at least 1"):
        character_stream.generate("abcabc", "abc", streams, length)
