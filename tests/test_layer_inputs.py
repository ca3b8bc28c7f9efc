"""What recurrent layers read, wherever they are in a model: `adapt` tells."""

import keras
import numpy as np
import pytest
from cases import one_backend_after
from references import assert_same
from references import to_numpy

import keras_rin
from keras_rin.layers import RIN
from keras_rin.layers import RINCell

ALL = np.ones((4, 6), bool)
SOME = np.arange(6)[None] < [[6], [4], [3], [1]]


def doubling():
    return keras.layers.Rescaling(2.0)


def sequential(*layers, shape=(6, 2)):
    return keras.Sequential([keras.Input(shape), *layers])


# Each returns a model, its inputs, and a function of the weights of the moment:
# each layer with what it reads and the steps that count, all by default.
def masked_model_inside(x):
    x[~SOME] = 0
    inside = sequential(keras.layers.Dropout(0.5), rin := RIN(3))
    inside.supports_masking = True
    model = sequential(keras.layers.Masking(), inside)
    return model, x, lambda: [(rin, x, SOME)]


def mask_of_an_embedding(x):
    tokens = SOME * np.arange(1, 7)
    embedding, rin = keras.layers.Embedding(7, 3, mask_zero=True), RIN(5)
    model = sequential(embedding, rin, shape=(None,))
    return model, tokens, lambda: [(rin, to_numpy(embedding(tokens)), SOME)]


def masked_stack(x, backwards=False):
    cells = [keras.layers.GRUCell(3), RINCell(2), RINCell(4)]
    x[~SOME] = 0
    stack = keras.layers.RNN(cells, go_backwards=backwards)
    model = sequential(keras.layers.Masking(), stack)
    step = -1 if backwards else 1
    inputs, steps = x[:, ::step].copy(), SOME[:, ::step].copy()

    def outputs(cell, inputs):
        layer = keras.layers.RNN(cell, return_sequences=True)
        return to_numpy(layer(inputs, mask=keras.ops.array(steps)))

    def expected():
        first = outputs(cells[0], inputs)
        second = outputs(cells[1], first)
        return [(cells[1], first, steps), (cells[2], second, steps)]

    return model, x, expected


def masked_stack_backwards(x):
    return masked_stack(x, backwards=True)


def wrappers_and_models_inside(x):
    first = RIN(2, return_sequences=True)
    both_ways = keras.layers.Bidirectional(RIN(3))
    inside = sequential(keras.layers.Dropout(0.5), doubling(), both_ways)
    model = sequential(doubling(), first, inside)
    directions = both_ways.forward_layer, both_ways.backward_layer
    return (
        model,
        x,
        lambda: [
            (first, 2 * x),
            *((layer, 2 * to_numpy(first(2 * x))) for layer in directions),
        ],
    )


def model_inside_of_two_inputs(x):
    inputs, rins = [keras.Input((6, 2)) for _ in "ab"], [RIN(2), RIN(3)]
    outputs = [rin(x) for rin, x in zip(rins, inputs, strict=True)]
    inside = keras.Model(inputs, keras.layers.Concatenate()(outputs))
    outer = keras.Input((6, 2))
    model = keras.Model(outer, inside([outer, doubling()(outer)]))
    return model, x, lambda: [(rins[0], x), (rins[1], 2 * x)]


def slices(x, masking=()):
    documents = np.stack([x, x + 1, x - 1], axis=1)
    documents[:, 1:, 3:] = 0
    words = sequential(rin := RIN(3)) if masking else (rin := RIN(3))
    outer = keras.layers.TimeDistributed(words)
    model = sequential(*masking, outer, shape=(3, 6, 2))
    sentences = documents.reshape(12, 6, 2)
    steps = (sentences != 0).any(axis=-1) | (not masking)
    return model, documents, lambda: [(rin, sentences, steps)]


def masked_slices(x):
    return slices(x, [keras.layers.Masking()])


def mask_given_beside_the_inputs_of_the_model(x):
    x[~SOME] = 0
    rin, inputs = RIN(2), keras.Input((6, 2))
    mask = keras.ops.any(keras.ops.not_equal(inputs, 0), axis=-1)
    model = keras.Model(inputs, rin(inputs, mask=mask))
    return model, x, lambda: [(rin, x, SOME)]


def stateful_layers(x):
    first, second, third = rnns = [
        keras.layers.SimpleRNN(3, return_sequences=True, stateful=True)
        for _ in range(3)
    ]
    model = keras.Sequential([keras.Input(batch_shape=(4, 6, 2)), *rnns])

    def expected():
        below = to_numpy(first(x))
        return [(second, below), (third, to_numpy(second(below)))]

    return model, x, expected


def no_mask_for_a_layer_without_support(x):
    """Keras would warn of a mask that is lost."""
    unmasked, rin = keras.layers.Lambda(lambda x: 2 * x), RIN(2)
    model = sequential(doubling(), sequential(unmasked, rin))
    return model, x, lambda: [(rin, 4 * x)]


class OfOwnArguments(keras.Model):
    """A functional model that Keras cannot make again from its config."""

    def __init__(self, rin):
        inputs = keras.Input((None, 2), name="x")
        super().__init__(inputs=inputs, outputs=rin(doubling()(inputs)))


def model_that_keras_cannot_copy(x):
    rin, data = RIN(4), {"x": x, "of another layer": x**2}
    return OfOwnArguments(rin), data, lambda: [(rin, 2 * x)]


def inputs_in_a_dict(x, names="ab"):
    """Whose keys need not be their names."""
    inputs = {
        name: keras.Input((None, 2), name=f"the_{name}") for name in names
    }
    rins = {name: RIN(4) for name in names}
    model = keras.Model(inputs, {n: rins[n](inputs[n]) for n in names})
    data = dict(zip(names, (x, x**2), strict=False))
    return model, data, lambda: [(rins[name], data[name]) for name in names]


def one_input_in_a_dict(x):
    return inputs_in_a_dict(x, "a")


MODELS = [
    masked_model_inside,
    mask_of_an_embedding,
    masked_stack,
    masked_stack_backwards,
    wrappers_and_models_inside,
    model_inside_of_two_inputs,
    slices,
    masked_slices,
    mask_given_beside_the_inputs_of_the_model,
    stateful_layers,
    no_mask_for_a_layer_without_support,
    model_that_keras_cannot_copy,
    inputs_in_a_dict,
    one_input_in_a_dict,
]


@pytest.mark.filterwarnings("ignore:When providing `inputs` as a dict")
@pytest.mark.parametrize("make", one_backend_after(MODELS, first=4))
def test_each_layer_is_adapted_to_what_it_reads(make, rng):
    x = rng.normal(1, 1, size=(4, 6, 2)).astype("float32")
    model, data, expected = make(x)
    keras_rin.adapt(model, data)
    for layer, inputs, *steps in expected():
        cell = getattr(layer, "cell", layer)
        mean = inputs[steps[0] if steps else ALL].mean(axis=0)
        expected_bias = -mean @ to_numpy(cell.kernel)
        assert_same(cell.bias, expected_bias, 1e-4, 1e-6)
