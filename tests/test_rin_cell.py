"""One step of a RIN, and what the cell adds to SimpleRNNCell."""

import keras
import numpy as np
import pytest
import references
from references import assert_same
from references import to_numpy

from keras_rin.layers import RINCell


def built_cell(units, **kwargs):
    cell = RINCell(
        units,
        recurrent_initializer=keras.initializers.RandomNormal(stddev=0.3),
        bias_initializer=keras.initializers.RandomNormal(stddev=0.5),
        **kwargs,
    )
    cell.build((None, 3))
    return cell


@pytest.mark.parametrize("activation", references.ACTIVATIONS)
def test_one_step_is_the_formula(rng, activation):
    cell = built_cell(5, activation=activation)
    x, h = rng.normal(size=(4, 3)), rng.normal(size=(4, 5)).astype("float32")
    states = references.numpy_rin(x[:, None], cell.get_weights(), activation, h)
    output, (listed,) = cell(x, [h])
    _, bare = cell(x, h)
    for value in (output, listed, bare):
        assert_same(value, states[:, 0])


def test_the_effective_kernel_is_the_offset_plus_the_identity():
    cell = built_cell(4)
    effective = to_numpy(cell.effective_recurrent_kernel)
    expected = to_numpy(cell.recurrent_kernel) + np.eye(4, dtype="f4")
    np.testing.assert_array_equal(effective, expected)


def test_weights_stand_in_the_order_of_keras():
    names = [weight.name for weight in built_cell(4).weights]
    assert names == ["kernel", "recurrent_kernel", "bias"]


def test_the_default_offsets_are_small_and_differ_by_cell():
    offsets = []
    for cell in (RINCell(200), RINCell(200)):
        cell.build((None, 1))
        offsets.append(to_numpy(cell.recurrent_kernel))
    assert abs(offsets[0].std() - 0.001) < 0.0001
    assert abs(offsets[0].mean()) < 0.0001
    assert not np.array_equal(*offsets)


def test_small_offsets_survive_bfloat16():
    small = keras.initializers.Constant(2.0**-8)
    cell = RINCell(2, None, recurrent_initializer=small, dtype="mixed_bfloat16")
    h, _ = cell(np.zeros((1, 1)), [np.ones((1, 2))])
    # 1 + 2^-8 is 1 in bfloat16: a rounded U + I would give 1 here.
    np.testing.assert_array_equal(to_numpy(h).astype("float32"), 1 + 2.0**-7)


def test_units_may_be_a_numpy_integer():
    assert type(RINCell(np.int64(3)).get_config()["units"]) is int


@pytest.mark.parametrize("name", ["dropout", "recurrent_dropout"])
@pytest.mark.parametrize("rate", [-0.1, 1.5, float("nan"), "0.5"])
def test_dropout_must_be_a_fraction(name, rate):
    with pytest.raises(ValueError, match=f"`{name}` must"):
        RINCell(3, **{name: rate})


def test_the_effective_kernel_needs_weights():
    with pytest.raises(ValueError, match="has no weights yet"):
        RINCell(4).effective_recurrent_kernel  # noqa: B018
