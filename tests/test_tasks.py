import keras
import numpy as np
import pytest
from references import to_numpy
from scipy import stats

from keras_rin.tasks import adding
from keras_rin.tasks import copying
from keras_rin.tasks import delayed_match
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


def test_numbers_and_pairs_of_places_are_equally_likely(rng):
    values, marks = adding.generate(rng, 24_000, length=4)[0].transpose(2, 0, 1)
    assert 0 <= values.min() and values.max() < 1
    counts = np.histogram(values, bins=10, range=(0, 1))[0]
    np.testing.assert_allclose(counts / values.size, 0.1, atol=0.005)
    pairs, counts = np.unique(marks, axis=0, return_counts=True)
    assert len(pairs) == 6
    np.testing.assert_allclose(counts / len(marks), 1 / 6, atol=0.015)


# name: (a task, arguments of its generator of data)
GENERATED = {
    "adding": (adding, {"samples": 5, "length": 7}),
    "copying": (copying, {"samples": 5, "length": 30}),
    "delayed_match": (delayed_match, {"samples": 20, "length": 30}),
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


@pytest.mark.parametrize("shape", [(3, 4), (1, 2, 3, 4, 5)])
def test_images_and_labels_that_do_not_fit_are_named(shape):
    with pytest.raises(ValueError, match="the shape"):
        sequential_pixels.generate(np.ones(shape))
    with pytest.raises(ValueError, match="must not be empty"):
        sequential_pixels.baseline_loss([])


@pytest.mark.parametrize(
    "task, constant, length", [(adding, 1, 2), (flip_flop, 0, 50)]
)
def test_the_baseline_is_the_loss_of_a_constant(rng, task, constant, length):
    y = task.generate(rng, 100_000 // length, length)[1].astype("float64")
    loss = np.mean((y - constant) ** 2)
    assert loss == pytest.approx(task.baseline_loss(), abs=0.002)
    assert y.mean() == pytest.approx(constant, abs=0.01)


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


@pytest.mark.parametrize(
    "length, stimuli, period, shortest",
    [(30, 3, 4, 5), (9, 2, 2, None), (60, 4, 1, 50)],
)
def test_a_trial_matches_if_the_sample_is_shown_again(
    rng, length, stimuli, period, shortest
):
    arguments = length, stimuli, period, shortest
    x, y = delayed_match.generate(rng, 3000, *arguments)
    assert x.shape == (3000, length, 1 + stimuli) and x.dtype == np.float32
    assert y.shape == (3000, length) and y.dtype == np.int32
    delays, stimulus_pairs = [], []
    for trial, answer in zip(x, y, strict=True):
        cue, (steps, stimulus) = trial[:, 0], np.nonzero(trial[:, 1:])
        assert list(cue) == [1] * (length - period) + [0] * period
        sample, test = np.split(steps, 2)
        assert [*sample] == [*range(sample[0], sample[0] + period)]
        assert [*test] == [*range(length - 2 * period, length - period)]
        before, after = np.split(stimulus, 2)
        assert len({*before}) == len({*after}) == 1
        target = 1 if before[0] == after[0] else 2
        assert list(answer) == [0] * (length - period) + [target] * period
        delays.append(test[0] - sample[-1] - 1)
        stimulus_pairs.append((before[0], after[0]))
    shortest, longest = shortest or length - 4 * period, length - 4 * period
    first, second = np.transpose(stimulus_pairs)
    for values, ratio in (
        (np.subtract(delays, shortest), [1] * (longest + 1 - shortest)),
        (first, [1] * stimuli),
        ((second - first) % stimuli, [stimuli - 1] + [1] * (stimuli - 1)),
    ):
        shares = np.bincount(values, minlength=len(ratio)) / 3000
        expected = np.divide(ratio, np.sum(ratio))
        np.testing.assert_allclose(shares, expected, atol=0.03)


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


def test_the_baselines_of_classes_are_those_of_their_frequencies():
    labels = [3, 1, 3, 2, 3, 1]
    entropy = stats.entropy([3, 2, 1])
    assert sequential_pixels.baseline_loss(labels) == pytest.approx(entropy)
    assert sequential_pixels.chance_accuracy(labels) == 0.5


def test_pixels_come_row_by_row_with_their_colors_and_bytes_scaled(rng):
    for shape in ((2, 3, 4, 3), (2, 3, 4), (0, 3, 4)):
        images = rng.random(shape).astype("float32")
        x = sequential_pixels.generate(images)
        assert x.shape == (shape[0], 12, *(shape[3:] or (1,)))
        np.testing.assert_array_equal(x.reshape(shape), images)
    x = sequential_pixels.generate(np.array([[[0, 255]]], "uint8"))
    np.testing.assert_array_equal(x.ravel(), [0, 1])
    assert x.dtype == np.float32


def test_one_order_permutes_every_image_alike(rng):
    images = rng.random((2, 3, 4)).astype("float32")
    order = rng.permutation(12)
    x = sequential_pixels.generate(images, order)
    back = np.empty_like(x)
    back[:, order] = x
    np.testing.assert_array_equal(back, sequential_pixels.generate(images))
    assert not np.array_equal(x, back)
