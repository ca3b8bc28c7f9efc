import keras
import numpy as np
import pytest
from references import ACTIVATIONS
from references import assert_same
from references import to_numpy

from keras_rin.initializers import Offset
from keras_rin.layers import DeepTransitionRINCell
from keras_rin.layers import RINCell


def built(cell):
    cell.build((None, 3))
    return cell


def random_cell(units, **kwargs):
    cell = DeepTransitionRINCell(
        units,
        recurrent_initializer=keras.initializers.RandomNormal(stddev=0.3),
        bias_initializer=keras.initializers.RandomNormal(stddev=0.5),
        **kwargs,
    )
    return built(cell)


def numpy_step(x, h, weights, activation):
    """The formula in float64."""
    kernel, first, b_1, second, b_2 = (w.astype("float64") for w in weights)
    phi, identity = ACTIVATIONS[activation], np.eye(len(first))
    a = phi(x @ kernel + h @ (first + identity) + b_1)
    return phi(a @ (second + identity) + b_2)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_one_step_is_the_formula(rng, activation):
    cell = random_cell(5, activation=activation)
    x, h = rng.normal(size=(4, 3)), rng.normal(size=(4, 5)).astype("float32")
    expected = numpy_step(x, h, cell.get_weights(), activation)
    output, (listed,) = cell(x, [h])
    _, bare = cell(x, h)
    for value in (output, listed, bare):
        assert_same(value, expected)


def test_without_a_second_offset_and_bias_it_is_a_rin_cell(rng):
    cell = random_cell(5)
    kernel, first, bias, second, bias_2 = cell.get_weights()
    cell.set_weights([kernel, first, bias, 0 * second, 0 * bias_2])
    deep, plain = (
        keras.layers.RNN(c, return_sequences=True)
        for c in (cell, built(RINCell(5)))
    )
    plain.cell.set_weights([kernel, first, bias])
    x = rng.normal(size=(4, 6, 3)).astype("float32")
    assert_same(deep(x), plain(x), rtol=0, atol=0)


def test_weights_have_their_order_and_number():
    cell = built(DeepTransitionRINCell(4))
    assert [weight.name for weight in cell.weights] == [
        "kernel",
        "recurrent_kernel",
        "bias",
        "transition_kernel",
        "transition_bias",
    ]
    assert cell.count_params() == 3 * 4 + 4 * 4 + 4 + 4 * 4 + 4


@pytest.mark.parametrize("seed", [None, 7, keras.random.SeedGenerator(7)])
@pytest.mark.parametrize("wrap", [lambda start: start, Offset])
def test_the_two_offsets_and_biases_differ(wrap, seed):
    normal = keras.initializers.RandomNormal(seed=seed)
    options = {"recurrent_initializer": wrap(normal)}
    cell = DeepTransitionRINCell(4, bias_initializer=normal, **options)
    _, first, bias, second, bias_2 = built(cell).get_weights()
    assert (first != second).all() and (bias != bias_2).all()


def test_the_default_offsets_are_small():
    for offset in built(DeepTransitionRINCell(200)).get_weights()[1::2]:
        assert abs(offset.std() - 0.001) < 0.0001
        assert abs(offset.mean()) < 0.0001


def test_both_effective_matrices_are_the_identity_without_offsets():
    cell = built(DeepTransitionRINCell(4, recurrent_initializer="zeros"))
    for matrix in (
        cell.effective_recurrent_kernel,
        cell.effective_transition_kernel,
    ):
        np.testing.assert_array_equal(to_numpy(matrix), np.eye(4))


def test_options_act_on_both_offsets_and_on_both_biases():
    penalty = keras.regularizers.L2(0.1)
    cell = random_cell(
        4,
        recurrent_regularizer=penalty,
        bias_regularizer=penalty,
        recurrent_constraint="non_neg",
        bias_constraint="non_neg",
    )
    _, *others = cell.get_weights()
    expected = 0.1 * sum(np.sum(weight**2) for weight in others)
    assert_same(sum(cell.losses), expected)
    for weight in cell.weights[1:]:
        constrained = weight.constraint(-np.ones(weight.shape, "float32"))
        assert_same(constrained, np.zeros(weight.shape))


def test_a_small_second_offset_survives_bfloat16():
    cell = built(DeepTransitionRINCell(2, None, dtype="mixed_bfloat16"))
    kernel, first, bias, second, bias_2 = cell.get_weights()
    second = np.full_like(second, 2.0**-8)
    cell.set_weights([kernel, 0 * first, bias, second, bias_2])
    h, _ = cell(np.zeros((1, 3)), [np.ones((1, 2))])
    # 1 + 2^-8 is 1 in bfloat16: a rounded U + I would give 1 here.
    np.testing.assert_array_equal(to_numpy(h).astype("float32"), 1 + 2.0**-7)


def test_recurrent_dropout_acts_on_the_first_offset_alone(rng):
    cell = random_cell(5, recurrent_dropout=0.5)
    x, h = rng.normal(size=(4, 3)), rng.random((4, 5)).astype("float32")
    dropped = to_numpy(cell(x, h, training=True)[0])
    assert not np.allclose(dropped, to_numpy(cell(x, h)[0]), atol=1e-3)
    kernel, first, *others = cell.get_weights()
    cell.set_weights([kernel, 0 * first, *others])
    expected = numpy_step(x, h, cell.get_weights(), "relu")
    assert_same(cell(x, h, training=True)[0], expected)
