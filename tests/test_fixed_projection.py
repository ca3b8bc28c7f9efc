import keras
import numpy as np
from references import assert_same
from references import to_numpy
from scipy import stats

from keras_rin.layers import FixedProjection


def test_it_is_a_product(rng):
    layer = FixedProjection(4)
    x = rng.normal(size=(2, 5, 3))
    y = layer(x.astype("float32"))
    assert_same(y, x @ to_numpy(layer.kernel).astype("float64"))


def test_an_output_has_the_mean_square_of_the_input(rng):
    layer = FixedProjection(2_000)
    x = rng.normal(size=(3, 500)).astype("float32")
    ratio = np.square(to_numpy(layer(x))).mean(1) / np.square(x).mean(1)
    np.testing.assert_allclose(ratio, 1, atol=0.1)


def test_it_is_not_trained_even_where_all_is_made_trainable():
    layer = FixedProjection(2)
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(3), layer])
    model.trainable = True
    before = to_numpy(layer.kernel)
    model.compile(keras.optimizers.SGD(1.0, weight_decay=0.5), "mse")
    model.fit(np.ones((4, 3)), np.ones((4, 2)), verbose=0)
    np.testing.assert_array_equal(to_numpy(layer.kernel), before)
    assert layer.trainable_weights == [] and len(layer.weights) == 1


def test_a_seed_draws_the_same_matrix_again():
    def kernel(seed):
        layer = FixedProjection(4, seed=seed)
        layer.build((None, 3))
        return to_numpy(layer.kernel)

    np.testing.assert_array_equal(kernel(1), kernel(1))
    assert not np.array_equal(kernel(1), kernel(2))
    assert not np.array_equal(kernel(None), kernel(None))


def test_its_numbers_have_a_normal_distribution():
    layer = FixedProjection(300, seed=1)
    layer.build((None, 300))
    numbers = to_numpy(layer.kernel).ravel() * np.sqrt(300)
    assert stats.kstest(numbers, "norm").pvalue > 1e-3
