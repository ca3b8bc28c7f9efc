import numpy as np
import pytest

from keras_rin.tasks import adding

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


def test_the_baseline_is_the_loss_of_answering_one(rng):
    y = adding.generate(rng, samples=100_000, length=2)[1]
    assert abs(np.mean((y - 1) ** 2) - adding.baseline_loss()) < 0.002


def test_the_same_generator_draws_the_same():
    x, y = adding.generate(np.random.default_rng(3), 5, 7)
    again, _ = adding.generate(np.random.default_rng(3), 5, 7)
    other, _ = adding.generate(np.random.default_rng(4), 5, 7)
    np.testing.assert_array_equal(x, again)
    assert not np.array_equal(x, other)


@pytest.mark.parametrize(
    "samples, length", [(0, 5), (5, 1), (2.5, 5), (5, "9")]
)
def test_sizes_must_be_whole(rng, samples, length):
    with pytest.raises(ValueError, match="must be an integer of at least"):
        adding.generate(rng, samples, length)


@pytest.mark.parametrize("rng", [0, None, np.random.RandomState(0)])
def test_the_generator_must_be_one(rng):
    with pytest.raises(TypeError, match="`rng` must be a numpy.random.Gener"):
        adding.generate(rng, 5, 5)
