import keras
import numpy as np
import pytest
from references import assert_same
from references import to_numpy

from keras_rin.initializers import SmallVarianceNormal
from keras_rin.layers import ResidualConv2D

pytestmark = pytest.mark.one_backend


@pytest.mark.parametrize(
    "shape, sigma",
    [
        ((3, 3, 64, 128), 1 / (9 * 128)),
        ((1, 1, 200, 64), 1 / 64),
        ((3, 5, 40, 32), 1 / (15 * 32)),
        ((7, 50, 64), 1 / (7 * 64)),
        ((300, 100), 1 / 100),
    ],
)
def test_small_variance_normal_has_the_sigma_of_the_paper(shape, sigma):
    kernel = to_numpy(SmallVarianceNormal(seed=0)(shape))
    np.testing.assert_allclose(kernel.std(), sigma, rtol=0.03)
    assert abs(kernel.mean()) < 0.03 * sigma
    assert np.abs(kernel).max() > 3 * sigma  # a normal one, not cut off


def growth(initializer, blocks=27, filters=32):
    """How many times the input's the deviation is after so many blocks."""
    x = keras.random.normal((4, 8, 8, filters), seed=0)
    y = x
    for _ in range(blocks):
        # A string, or the initializer would repeat its numbers.
        start = {
            "kernel_initializer": initializer.clone(),
            "output_initializer": initializer.clone(),
        }
        y = ResidualConv2D(filters, use_bias=False, **start)(y)
    return to_numpy(y).std() / to_numpy(x).std()


def test_small_variance_keeps_a_deep_stack_where_it_starts():
    assert abs(growth(SmallVarianceNormal()) - 1) < 0.01
    # sigma = 1 / (k sqrt(c)); the borders see less than three halves a block
    usual = keras.initializers.RandomNormal(stddev=1 / (3 * 32**0.5))
    assert 1.3 ** (27 / 2) < growth(usual) < 1.5 ** (27 / 2) * 2


def test_small_variance_draws_anew_unless_it_has_a_seed():
    free, seeded = SmallVarianceNormal(), SmallVarianceNormal(seed=1)
    shape = (3, 3, 2, 2)
    assert not np.array_equal(to_numpy(free(shape)), to_numpy(free(shape)))
    assert_same(seeded(shape), SmallVarianceNormal(seed=1)(shape))
    config = keras.initializers.serialize(seeded)
    assert_same(keras.initializers.deserialize(config)(shape), seeded(shape))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64", None])
def test_small_variance_has_the_dtype_asked_for(dtype):
    made = SmallVarianceNormal()((3, 3), dtype=dtype)
    wanted = dtype or keras.config.floatx()
    assert keras.backend.standardize_dtype(made.dtype) == wanted


@pytest.mark.parametrize("seed", [-1, 0.5, "1", True])
def test_a_seed_is_an_integer(seed):
    with pytest.raises(ValueError, match="`seed` must.*Received: seed="):
        SmallVarianceNormal(seed)


@pytest.mark.parametrize("shape", [(), (3,)])
def test_small_variance_refuses_what_is_no_kernel(shape):
    with pytest.raises(
        ValueError, match="initializes kernels.*Received: shape="
    ):
        SmallVarianceNormal()(shape)
