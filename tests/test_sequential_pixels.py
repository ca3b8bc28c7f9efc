import numpy as np
import pytest

from keras_rin.tasks import sequential_pixels

pytestmark = pytest.mark.one_backend


def test_pixels_come_row_by_row():
    images = np.arange(12).reshape(1, 3, 4)
    x = sequential_pixels.generate(images)
    np.testing.assert_array_equal(x[0, :, 0], np.arange(12))


def test_bytes_are_scaled_to_one():
    x = sequential_pixels.generate(np.array([[[0, 255]]], "uint8"))
    np.testing.assert_array_equal(x.ravel(), [0, 1])
    assert x.dtype == np.float32


def test_colours_stay_together(rng):
    images = rng.random((2, 3, 4, 3))
    x = sequential_pixels.generate(images)
    assert x.shape == (2, 12, 3)
    np.testing.assert_allclose(x[1, 4 * 2 + 3], images[1, 2, 3], rtol=1e-6)


def test_one_order_permutes_every_image_alike(rng):
    images = rng.random((2, 3, 4)).astype("float32")
    order = sequential_pixels.permutation(rng, 12)
    x = sequential_pixels.generate(images, order)
    back = np.empty_like(x)
    back[:, order] = x
    np.testing.assert_array_equal(back, sequential_pixels.generate(images))
    assert not np.array_equal(x, back)


def test_the_baseline_is_the_entropy_of_the_labels():
    labels = np.repeat(np.arange(10), 7)
    assert np.isclose(sequential_pixels.baseline_loss(labels), np.log(10))
    assert np.isclose(
        sequential_pixels.baseline_loss([0, 0, 0, 1]),
        -0.75 * np.log(0.75) - 0.25 * np.log(0.25),
    )


def test_chance_is_the_share_of_the_most_frequent_class():
    assert sequential_pixels.chance_accuracy([2, 0, 2, 2]) == 0.75


@pytest.mark.parametrize("shape", [(3,), (3, 4), (1, 2, 3, 4, 5)])
def test_other_shapes_are_refused(shape):
    with pytest.raises(ValueError, match="`images` must have the shape"):
        sequential_pixels.generate(np.ones(shape))


@pytest.mark.parametrize(
    "order",
    [
        [0, 1, 2],
        [0, 1, 2, 2],
        [1, 2, 3, 4],
        [[0, 1], [2, 3]],
        [0.0, 1.0, 2.0, 3.0],
    ],
)
def test_an_order_must_name_every_pixel_once(order):
    with pytest.raises(ValueError, match="permutation of the 4 pixels"):
        sequential_pixels.generate(np.ones((1, 2, 2)), order)


def test_no_labels_have_no_baseline():
    with pytest.raises(ValueError, match="`labels` must not be empty"):
        sequential_pixels.baseline_loss([])


def test_no_images_are_no_sequences():
    made = sequential_pixels.generate(np.zeros((0, 4, 4)))
    assert made.shape == (0, 16, 1)
