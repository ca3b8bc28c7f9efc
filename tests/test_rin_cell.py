import keras
import numpy as np
import pytest
import references
from references import assert_same
from references import to_numpy

from keras_rin.layers import RINCell


def built_cell(units, features=3, scale=0.3, **kwargs):
    cell = RINCell(
        units,
        recurrent_initializer=keras.initializers.RandomNormal(stddev=scale),
        bias_initializer=keras.initializers.RandomNormal(stddev=0.5),
        **kwargs,
    )
    cell.build((None, features))
    return cell


@pytest.mark.parametrize("activation", references.ACTIVATIONS)
def test_one_step_is_the_formula(rng, activation):
    cell = built_cell(5, activation=activation)
    x, h = rng.normal(size=(4, 3)), rng.normal(size=(4, 5))
    output, _ = cell(x.astype("float32"), [h.astype("float32")])
    expected = references.numpy_rin(
        x[:, None], cell.get_weights(), activation, h
    )
    assert_same(output, expected[:, 0])


def test_effective_kernel_is_the_offset_plus_the_identity():
    cell = built_cell(4)
    offset = to_numpy(cell.recurrent_kernel)
    effective = to_numpy(cell.effective_recurrent_kernel)
    np.testing.assert_array_equal(effective, offset + np.eye(4, dtype="f4"))


def test_effective_kernel_before_build_says_so():
    with pytest.raises(ValueError, match="has no weights yet"):
        RINCell(4).effective_recurrent_kernel  # noqa: B018


def test_weights_stand_in_the_order_of_keras():
    names = [weight.name for weight in built_cell(4).weights]
    assert names == ["kernel", "recurrent_kernel", "bias"]


def test_the_offset_starts_small():
    cell = RINCell(200)
    cell.build((None, 1))
    offset = to_numpy(cell.recurrent_kernel)
    assert abs(offset.std() - 0.001) < 0.0001
    assert abs(offset.mean()) < 0.0001


def test_two_cells_start_differently():
    first, second = RINCell(4), RINCell(4)
    first.build((None, 2))
    second.build((None, 2))
    assert not np.array_equal(first.get_weights()[1], second.get_weights()[1])


def test_small_offsets_survive_bfloat16():
    small = keras.initializers.Constant(2.0**-8)
    cell = RINCell(2, None, recurrent_initializer=small, dtype="mixed_bfloat16")
    h, _ = cell(np.zeros((1, 1)), [np.ones((1, 2))])
    # 1 + 2^-8 is 1 in bfloat16: a rounded U + I would give 1 here.
    np.testing.assert_array_equal(to_numpy(h).astype("float32"), 1 + 2.0**-7)


def test_the_state_keeps_the_form_it_came_in(rng):
    cell = built_cell(4)
    x, h = rng.normal(size=(2, 3)), np.ones((2, 4), "float32")
    output, listed = cell(x, [h])
    _, bare = cell(x, h)
    assert_same(listed[0], output, rtol=0, atol=0)
    assert_same(bare, output, rtol=0, atol=0)


def test_units_may_be_a_numpy_integer():
    assert type(RINCell(np.int64(3)).get_config()["units"]) is int


@pytest.mark.parametrize("name", ["dropout", "recurrent_dropout"])
@pytest.mark.parametrize("rate", [-0.1, 1.5, float("nan"), "0.5"])
def test_dropout_must_be_a_share(name, rate):
    with pytest.raises(ValueError, match=f"`{name}` must"):
        RINCell(3, **{name: rate})
