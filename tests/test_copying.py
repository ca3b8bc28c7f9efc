import keras
import numpy as np
import pytest
from references import to_numpy

from keras_rin.tasks import copying

pytestmark = pytest.mark.one_backend


@pytest.mark.parametrize(
    "length, copied, symbols", [(500, 10, 8), (21, 10, 8), (3, 1, 1), (9, 3, 5)]
)
def test_the_answer_repeats_what_was_shown(rng, length, copied, symbols):
    x, y = copying.generate(rng, 20, length, copied, symbols)
    assert x.shape == (20, length, symbols + 2) and x.dtype == np.float32
    assert y.shape == (20, length) and y.dtype == np.int32
    assert (x.sum(axis=2) == 1).all()
    for shown, answer in zip(x.argmax(axis=2), y, strict=True):
        blanks = length - 2 * copied - 1
        word = list(shown[:copied])
        assert all(1 <= symbol <= symbols for symbol in word)
        cue = [symbols + 1]
        assert list(shown) == word + [0] * blanks + cue + [0] * copied
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


def test_the_same_generator_draws_the_same():
    draws = [
        copying.generate(np.random.default_rng(s), 5, 30)[1] for s in (3, 3, 4)
    ]
    np.testing.assert_array_equal(draws[0], draws[1])
    assert not np.array_equal(draws[0], draws[2])


@pytest.mark.parametrize(
    "sizes",
    [(0, 50, 10, 8), (1, 20, 10, 8), (1, 50, 0, 8), (1, 50, 10, 0), (1, 5.5)],
)
def test_sizes_must_fit(rng, sizes):
    with pytest.raises(ValueError, match="must be an integer of at least"):
        copying.generate(rng, *sizes)
    if len(sizes) == 4 and sizes[0]:
        with pytest.raises(ValueError, match="must be an integer of at least"):
            copying.baseline_loss(*sizes[1:])


def test_the_generator_must_be_one():
    with pytest.raises(TypeError, match="`rng` must be a numpy.random.Gener"):
        copying.generate(0, 5, 50)
