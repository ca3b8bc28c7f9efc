import keras
import numpy as np
import pytest
from references import ACTIVATIONS
from references import MASKS
from references import assert_same
from references import to_numpy

from keras_rin.initializers import Offset
from keras_rin.layers import DeepTransitionRINCell
from keras_rin.layers import RINCell


def layer_of(cell, **kwargs):
    layer = keras.layers.RNN(cell, return_sequences=True, **kwargs)
    layer.build((None, None, 3))
    return layer


def built(*args, **kwargs):
    cell = DeepTransitionRINCell(*args, **kwargs)
    cell.build((None, 3))
    return cell


@pytest.fixture
def x(rng):
    return rng.normal(size=(4, 6, 3)).astype("float32")


def random_cell(units, **kwargs):
    return DeepTransitionRINCell(
        units,
        recurrent_initializer=keras.initializers.RandomNormal(stddev=0.3),
        bias_initializer=keras.initializers.RandomNormal(stddev=0.5),
        **kwargs,
    )


def numpy_states(x, weights, activation, mask=None):
    """The states (batch, time, units), step by step in float64."""
    kernel, first, b_1, second, b_2 = (w.astype("float64") for w in weights)
    phi, identity = ACTIVATIONS[activation], np.eye(len(first))
    h, states = np.zeros((len(x), len(first))), []
    for t in range(x.shape[1]):
        a = phi(x[:, t] @ kernel + h @ (first + identity) + b_1)
        new = phi(a @ (second + identity) + b_2)
        h = new if mask is None else np.where(mask[:, t, None], new, h)
        states.append(h)
    return np.stack(states, axis=1)


@pytest.mark.one_backend
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_a_sequence_is_the_formula(x, activation):
    layer = layer_of(random_cell(5, activation=activation))
    expected = numpy_states(x, layer.get_weights(), activation)
    assert_same(layer(x), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", ["trailing", "rows", "alternating"])
def test_masked_steps_leave_the_state(x, name):
    layer = layer_of(random_cell(5), return_state=True)
    mask = MASKS[name](6, 4).T
    _, state = layer(x, mask=keras.ops.convert_to_tensor(mask))
    expected = numpy_states(x, layer.get_weights(), "relu", mask)
    assert_same(state, expected[:, -1], rtol=1e-4, atol=1e-4)


def test_without_a_second_offset_and_bias_it_is_a_rin_cell(x):
    deep = layer_of(random_cell(5))
    kernel, first, bias, second, bias_2 = deep.get_weights()
    deep.set_weights([kernel, first, bias, 0 * second, 0 * bias_2])
    plain = layer_of(RINCell(5))
    plain.set_weights([kernel, first, bias])
    assert_same(deep(x), plain(x), rtol=0, atol=0)


def test_weights_have_their_order_and_number():
    cell = built(4)
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
    cell = built(4, recurrent_initializer=wrap(normal), bias_initializer=normal)
    _, first, bias, second, bias_2 = cell.get_weights()
    assert (first != second).all() and (bias != bias_2).all()


def test_both_offsets_start_small():
    for offset in built(200).get_weights()[1::2]:
        assert abs(offset.std() - 0.001) < 0.0001
        assert abs(offset.mean()) < 0.0001


def test_a_start_that_draws_nothing_starts_both():
    cell = built(4, recurrent_initializer="zeros")
    for matrix in (
        cell.effective_recurrent_kernel,
        cell.effective_transition_kernel,
    ):
        np.testing.assert_array_equal(to_numpy(matrix), np.eye(4))


def test_the_penalty_counts_both_offsets():
    penalty = keras.regularizers.L2(0.1)
    cell = random_cell(4, recurrent_regularizer=penalty)
    cell.build((None, 3))
    _, first, _, second, _ = cell.get_weights()
    expected = 0.1 * (np.sum(first**2) + np.sum(second**2))
    assert_same(sum(cell.losses), expected)


def test_a_small_second_offset_survives_bfloat16():
    cell = built(2, None, dtype="mixed_bfloat16")
    kernel, first, bias, second, bias_2 = cell.get_weights()
    second = np.full_like(second, 2.0**-8)
    cell.set_weights([kernel, 0 * first, bias, second, bias_2])
    h, _ = cell(np.zeros((1, 3)), [np.ones((1, 2))])
    # 1 + 2^-8 is 1 in bfloat16: a rounded U + I would give 1 here.
    np.testing.assert_array_equal(to_numpy(h).astype("float32"), 1 + 2.0**-7)


def test_recurrent_dropout_acts_on_the_first_offset_alone(x):
    layer = layer_of(random_cell(5, recurrent_dropout=0.5))
    dropped = to_numpy(layer(x, training=True))
    assert not np.allclose(dropped, to_numpy(layer(x)), atol=1e-3)
    kernel, first, *others = layer.get_weights()
    layer.set_weights([kernel, 0 * first, *others])
    expected = numpy_states(x, layer.get_weights(), "relu")
    assert_same(layer(x, training=True), expected, rtol=1e-4, atol=1e-4)


def test_the_state_keeps_the_form_it_came_in(rng):
    cell = random_cell(4)
    x, h = rng.normal(size=(2, 3)), np.ones((2, 4), "float32")
    output, listed = cell(x, [h])
    _, bare = cell(x, h)
    assert_same(listed[0], output, rtol=0, atol=0)
    assert_same(bare, output, rtol=0, atol=0)


def test_effective_kernel_before_build_says_so():
    with pytest.raises(ValueError, match="`effective_transition_kernel`"):
        DeepTransitionRINCell(4).effective_transition_kernel  # noqa: B018


def test_options_of_the_bias_are_those_of_both_biases():
    cell = built(
        4,
        bias_initializer="ones",
        bias_regularizer=keras.regularizers.L2(0.1),
        bias_constraint="non_neg",
    )
    assert_same(sum(cell.losses), 0.1 * (4 + 4))
    for bias in (cell.bias, cell.transition_bias):
        assert_same(bias.constraint(-np.ones(4, "float32")), np.zeros(4))
