"""What recurrent layers read, wherever they are in a model."""

import keras
import numpy as np
import pytest
from references import Around
from references import to_numpy

from keras_rin.diagnostics._layer_inputs import first_inputs
from keras_rin.layers import RIN

pytestmark = pytest.mark.one_backend


def doubling():
    return keras.layers.Rescaling(2.0)


def sequential(*layers, shape=(6, 2)):
    return keras.Sequential([keras.Input(shape), *layers])


@pytest.fixture
def x(rng):
    return rng.normal(size=(4, 6, 2)).astype("float32")


def assert_reads(model, x, expected):
    """`expected` has (layer, x, mask) in the order of the model."""
    calls = [(layer, *read()) for layer, read in first_inputs(model, x)]
    assert [layer for layer, *_ in calls] == [layer for layer, *_ in expected]
    for (_, x, mask), (_, expected_x, expected_mask) in zip(
        calls, expected, strict=True
    ):
        np.testing.assert_allclose(x, expected_x, rtol=1e-5)
        np.testing.assert_array_equal(mask, expected_mask)


def test_layers_and_those_of_wrappers_and_models_inside(x):
    first = keras.layers.GRU(2, return_sequences=True)
    both_ways = keras.layers.Bidirectional(RIN(3))
    model = sequential(doubling(), first, sequential(doubling(), both_ways))
    steps = np.ones((4, 6), bool)
    layer_inputs = 2 * to_numpy(first(2 * x))
    directions = both_ways.forward_layer, both_ways.backward_layer
    expected = [(layer, layer_inputs, steps) for layer in directions]
    assert_reads(model, x, [(first, 2 * x, steps), *expected])


def test_a_model_inside_with_two_inputs(x):
    inputs, rins = [keras.Input((6, 2)) for _ in "ab"], [RIN(2), RIN(3)]
    outputs = [rin(x) for rin, x in zip(rins, inputs, strict=True)]
    inside = keras.Model(inputs, keras.layers.Concatenate()(outputs))
    outer = keras.Input((6, 2))
    model = keras.Model(outer, inside([outer, doubling()(outer)]))
    steps = np.ones((4, 6), bool)
    assert_reads(model, x, [(rins[0], x, steps), (rins[1], 2 * x, steps)])


@pytest.mark.parametrize("first", ["layer", "model"])
@pytest.mark.parametrize("second", ["layer", "model"])
def test_of_two_calls_the_first(first, second, x):
    rin, inputs = RIN(2), keras.Input((6, 2))
    callees = {"layer": rin, "model": sequential(rin)}
    outputs = [callees[first](inputs), callees[second](doubling()(inputs))]
    model = keras.Model(inputs, keras.layers.Add()(outputs))
    assert_reads(model, x, [(rin, x, np.ones((4, 6), bool))])


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("inside", [False, True])
def test_the_slices_of_time_distributed(masked, inside, x):
    documents = np.stack([x, x + 1, x - 1], axis=1)
    documents[:2, :, 3:] = 0
    rin = RIN(3)
    masking = [keras.layers.Masking()] * masked
    words = sequential(rin) if inside else rin
    outer = keras.layers.TimeDistributed(words)
    model = sequential(*masking, outer, shape=(3, 6, 2))
    sentences = documents.reshape(12, 6, 2)
    steps = (sentences != 0).any(axis=-1) | (not masked)
    assert_reads(model, documents, [(rin, sentences, steps)])


@pytest.mark.each_backend
def test_a_mask_reaches_a_model_inside(x):
    x[:2, 3:] = 0
    rin = RIN(3)
    inside = sequential(rin)
    inside.supports_masking = True
    model = sequential(keras.layers.Masking(), inside)
    assert_reads(model, x, [(rin, x, (x != 0).any(axis=-1))])


@pytest.mark.each_backend
@pytest.mark.parametrize("by_hand", [False, True])
def test_a_mask_is_that_of_the_embedding_or_given_by_hand(by_hand, rng):
    tokens = rng.integers(0, 4, (5, 6))
    inputs = keras.Input((None,), dtype="int32")
    embedding = keras.layers.Embedding(4, 3, mask_zero=not by_hand)
    rin, embedded = RIN(5), embedding(inputs)
    options = {"mask": keras.ops.not_equal(inputs, 0)} if by_hand else {}
    model = keras.Model(inputs, rin(embedded, **options))
    expected = to_numpy(embedding(tokens))
    assert_reads(model, tokens, [(rin, expected, tokens > 0)])


def test_a_mask_given_beside_the_inputs_of_the_model(x):
    x[:2, 3:] = 0
    rin, inputs = RIN(2), keras.Input((6, 2))
    mask = keras.ops.any(keras.ops.not_equal(inputs, 0), axis=-1)
    model = keras.Model(inputs, rin(inputs, mask=mask))
    assert_reads(model, x, [(rin, x, (x != 0).any(axis=-1))])


@pytest.mark.filterwarnings("error:.*does not support masking")
def test_a_model_inside_gets_no_mask_where_there_is_none(x):
    rin = RIN(2)
    unmasked = keras.layers.Lambda(lambda x: 2 * x)
    model = sequential(doubling(), sequential(unmasked, rin))
    assert_reads(model, x, [(rin, 4 * x, np.ones((4, 6), bool))])


@pytest.mark.each_backend
@pytest.mark.parametrize("backwards", [False, True])
def test_a_cell_of_a_stack_reads_the_outputs_of_those_before(backwards, x):
    cells = [keras.layers.GRUCell(3), keras.layers.SimpleRNNCell(2)]
    stack = keras.layers.RNN(cells, go_backwards=backwards)
    steps = np.arange(6)[None] < [[6], [4], [3], [1]]
    x[~steps] = 0
    model = sequential(keras.layers.Masking(), stack)
    order = np.s_[:, ::-1] if backwards else np.s_[:]
    below = keras.layers.RNN(cells[0], return_sequences=True)
    x, steps = x[order], steps[order]
    states = to_numpy(below(x.copy(), mask=keras.ops.array(steps.copy())))
    assert_reads(
        model, x[order], [(cells[0], x, steps), (cells[1], states, steps)]
    )


def test_those_of_a_layer_of_ones_own_are_unknown(x):
    model = sequential(Around(keras.layers.SimpleRNN(1)))
    assert first_inputs(model, x) == []
