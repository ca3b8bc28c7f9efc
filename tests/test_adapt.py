"""After `adapt` the drive x W + b has mean zero, and nothing else changed."""

import functools

import keras
import numpy as np
import pytest
from cases import one_backend_after
from references import Around
from references import Averaging
from references import assert_same
from references import built
from references import to_numpy
from references import warning_of

import keras_rin
from keras_rin.layers import RIN
from keras_rin.layers import DeepTransitionRINCell
from keras_rin.layers import NoisyRNN
from keras_rin.layers import RINCell

RNN = keras.layers.RNN
KINDS = {
    "RIN": lambda: RIN(5),
    "RNN(RINCell)": lambda: RNN(RINCell(5)),
    "RIN-DT": lambda: RNN(DeepTransitionRINCell(5)),
    "NoisyRNN": lambda: NoisyRNN(RINCell(5)),
    "IRNN": lambda: keras.layers.SimpleRNN(5, recurrent_initializer="identity"),
    "a cell by itself": lambda: RINCell(5),
    "frozen": lambda: RIN(5, trainable=False),
    "mixed_float16": lambda: RIN(5, dtype="mixed_float16"),
    "mixed_bfloat16": lambda: RIN(5, dtype="mixed_bfloat16"),
}


@pytest.fixture
def x(rng):
    x = rng.random((40, 30, 2)).astype("float32")
    x[..., 1] *= 3
    return x


def assert_centered(layer, x, counts=None, within=1e-6):
    """The drive x W + b of the steps that count has mean zero, in float64."""
    while hasattr(layer, "cell"):
        layer = layer.cell
    x = to_numpy(x).astype("float64")
    x = x.reshape(-1, x.shape[-1]) if counts is None else x[counts]
    kernel, bias = (
        to_numpy(w).astype("float64") for w in (layer.kernel, layer.bias)
    )
    drive = x @ kernel + bias
    assert np.abs(drive.mean(axis=0)).max() < within * np.abs(drive).max()


def sequential(*layers, shape=(None, 2)):
    return keras.Sequential([keras.Input(shape), *layers])


@pytest.mark.one_backend
def test_the_policy_of_a_stack_is_that_of_its_cells(x):
    cells = [keras.layers.SimpleRNNCell(4), keras.layers.SimpleRNNCell(3)]
    stack = built(RNN(cells))
    keras.config.set_dtype_policy("mixed_float16")
    try:
        keras_rin.adapt(stack, 1e5 * x)  # beyond float16
    finally:
        keras.config.set_dtype_policy("float32")
    states = RNN(cells[0], return_sequences=True)(1e5 * x)
    assert_centered(cells[1], states, within=1e-5)


def model_of_two_inputs(layers):
    inputs = [keras.Input((None, 2)) for _ in range(2)]
    outputs = [layer(x) for layer, x in zip(layers, inputs, strict=True)]
    return keras.Model(inputs, keras.layers.Concatenate()(outputs))


@pytest.mark.one_backend
def test_a_layer_whose_inputs_are_unknown_is_named(x):
    inside, rin = RIN(2, return_sequences=True, name="inside"), RIN(4)
    block = Around(keras.layers.Bidirectional(inside))
    lstm = keras.layers.LSTM(2, return_sequences=True)
    model = sequential(block, Around(lstm), rin)
    before = [weight.numpy() for weight in block.weights]
    with pytest.warns(UserWarning) as caught:
        keras_rin.adapt(model, x)
    message = warning_of(caught)
    assert __file__ in [warning.filename for warning in caught]
    assert "['forward_inside', 'backward_inside']" in message
    assert "keras_rin.adapt(layer, its_inputs)" in message
    assert_same(block.weights, before, 0, 0)
    assert_centered(rin, Around(lstm)(block(x)), within=1e-5)


def test_masked_time_steps_do_not_count(x, rng):
    counts = rng.random((40, 30)) < 0.6
    x[~counts] = np.nan  # padding may be anything
    layer = built(RIN(5))
    # A mask may be one of numbers; a larger number counts no more.
    numbers = counts * rng.integers(1, 4, counts.shape)
    keras_rin.adapt(layer, x, mask=numbers.tolist())
    assert_centered(layer, x, counts)


class Halves(keras.utils.PyDataset):
    def __init__(self, x):
        super().__init__()
        self.x = x

    def __len__(self):
        return 2

    def __getitem__(self, index):
        return self.x[20 * index : 20 * (index + 1)], np.zeros(20)


def as_dataset(x):
    import tensorflow as tf

    return tf.data.Dataset.from_tensor_slices((x, x[:, 0])).batch(7)


DATA = {
    "a tensor": keras.ops.convert_to_tensor,
    "batches": lambda x: [x[:30], x[30:]],
    "a generator": lambda x: (part for part in (x[:30], x[30:])),
    "x and y": lambda x: [(x[:5], x[:5, 0]), (x[5:], x[5:, 0])],
    "PyDataset": Halves,
    "tf.data": as_dataset,
}


@pytest.mark.parametrize("kind", [*KINDS, *DATA])
def test_the_drive_has_mean_zero(kind, x):
    """In all that it takes, which is what `Normalization` takes."""
    if kind == "tf.data" and keras.backend.backend() != "tensorflow":
        pytest.skip("tests a feature of TensorFlow")
    layer = built(KINDS.get(kind, rin)())
    keras_rin.adapt(layer, DATA[kind](x) if kind in DATA else x)
    assert_centered(layer, x)


@pytest.mark.one_backend
def test_neither_batches_nor_what_follows_the_steps_count(x):
    first, second = RIN(4, return_sequences=True), RIN(3)
    keras_rin.adapt(sequential(first, second), x, batch_size=3)
    assert_centered(first, x)
    assert_centered(second, first(x), within=1e-5)
    keras_rin.adapt(first, [x[:10], x[10:20], x[20:] + 7], steps=2)
    assert_centered(first, x[:20])


def test_only_biases_change_and_a_second_time_not_at_all(x):
    noisy = NoisyRNN(RINCell(4), return_sequences=True)
    stateful = RIN(4, stateful=True, return_sequences=True)
    lstm = keras.layers.LSTM(2, stateful=True, return_sequences=True)
    both = keras.layers.Bidirectional(lstm)
    inside = keras.Sequential([stateful, both])
    layers = Averaging(), noisy, inside, RIN(4, dropout=0.3)
    inputs = keras.Input(batch_shape=(20, 30, 2))
    model = keras.Sequential([inputs, *layers])
    states = (*stateful.states, *both.states)
    for state in states:
        state.assign(np.ones(state.shape))
    biases = [v for v in model.weights if v.path.endswith("bias")]
    biases = [v for v in biases if "lstm" not in v.path]
    variables = (*model.variables, *model.metrics_variables, *states)
    others = [v for v in variables if not any(v is bias for bias in biases)]
    assert len(biases) == 3 and len(model.metrics_variables) == 2
    before = [to_numpy(v).copy() for v in others]
    keras_rin.adapt(model, x, batch_size=20)
    once = [to_numpy(v).copy() for v in biases]
    assert np.all([bias.any() for bias in once])
    keras_rin.adapt(model, x, batch_size=20)
    assert_same([*others, *biases], [*before, *once], 0, 0)


def with_nan(x):
    x = x.copy()
    x[3, 4, 1] = np.nan
    return x


@pytest.mark.one_backend
def test_an_error_on_the_way_leaves_every_bias_as_it_was(x):
    layers = [RIN(4, bias_initializer="ones") for _ in range(2)]
    model = model_of_two_inputs(layers)
    for data in ([x, with_nan(x)], [with_nan(x), x]):
        with pytest.raises(ValueError, match="must be finite"):
            keras_rin.adapt(model, tuple(data))
    for layer in layers:
        np.testing.assert_array_equal(to_numpy(layer.cell.bias), 1)


def rin():
    return built(RIN(4))


def shared_cell():
    cell = RINCell(2)
    return sequential(RNN(cell, return_sequences=True), RNN(cell))


def wrapped():
    layer = keras.layers.TimeDistributed(RIN(4))
    layer.build((None, 5, 30, 2))
    return layer


ONES = {"mask": np.ones((40, 30), bool)}
# name: (layer, data made of x, words of the error, further arguments)
REFUSED = {
    "rank": (rin, lambda x: x[..., 0], r"\(batch, time, 2\).*Received"),
    "features": (rin, lambda x: x[..., :1], r"time, 2\).*\(40, 30, 1\)"),
    "integers": (rin, lambda x: x.astype("int32"), "dtype int32"),
    "no sequence": (rin, lambda x: x[:0], " 0 time steps"),
    "no time step": (rin, lambda x: x[:, :0], " 0 time steps"),
    "no batch": (rin, lambda x: [], " 0 time steps"),
    "NaN": (rin, with_nan, r"sum is \[.* nan\]"),
    "unbuilt model": (lambda: keras.Sequential([RIN(4)]), None, "keras.Input"),
    "not built": (lambda: RIN(4), None, "no weights yet"),
    "no bias": (lambda: built(RIN(4, use_bias=False)), None, "Normalization"),
    "gates": (lambda: built(keras.layers.LSTM(4)), None, "no RIN or SimpleRNN"),
    "called twice": (
        lambda: model_of_two_inputs([RIN(4)] * 2),
        lambda x: (x, x),
        "exactly once",
    ),
    "shared cell": (shared_cell, None, "by several layers"),
    "unknown inputs": (
        lambda: built(Around(RIN(4))),
        None,
        r"Adapt each of \['rin\S*'\] by keras_rin.adapt",
    ),
    "an iterator for two cells": (
        lambda: built(keras.layers.Bidirectional(RIN(4))),
        lambda x: iter([x, x]),
        "an iterator.* 0 time steps",
    ),
    "mask of batches": (rin, lambda x: [x], "`mask`", ONES),
    "mask of a model": (lambda: sequential(RIN(4)), None, "`mask`", ONES),
    "mask of slices": (wrapped, None, "`mask`", ONES),
    "mask of another shape": (rin, lambda x: x[1:], r"\(39, 30\)", ONES),
}


@pytest.mark.one_backend
@pytest.mark.parametrize("kind", REFUSED)
def test_what_cannot_be_adapted_is_refused(kind, x):
    make, make_data, words, *kwargs = REFUSED[kind]
    data = make_data(x) if make_data else x
    with pytest.raises(ValueError, match=words):
        keras_rin.adapt(make(), data, **(kwargs[0] if kwargs else {}))


SOME = np.arange(6)[None] < [[6], [4], [3], [1]]


def doubling():
    return keras.layers.Rescaling(2.0)


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


MODELS = [
    masked_model_inside,
    mask_of_an_embedding,
    masked_stack,
    functools.partial(masked_stack, backwards=True),
    wrappers_and_models_inside,
    model_inside_of_two_inputs,
    slices,
    functools.partial(slices, masking=[keras.layers.Masking()]),
    mask_given_beside_the_inputs_of_the_model,
    stateful_layers,
    no_mask_for_a_layer_without_support,
    model_that_keras_cannot_copy,
    inputs_in_a_dict,
    functools.partial(inputs_in_a_dict, names="a"),
]


@pytest.mark.filterwarnings("ignore:When providing `inputs` as a dict")
@pytest.mark.parametrize("make", one_backend_after(MODELS, first=4))
def test_each_layer_is_adapted_to_what_it_reads(make, rng):
    x = rng.normal(1, 1, size=(4, 6, 2)).astype("float32")
    model, data, expected = make(x)
    keras_rin.adapt(model, data)
    for layer, inputs, *steps in expected():
        assert_centered(layer, inputs, *steps, within=1e-5)
