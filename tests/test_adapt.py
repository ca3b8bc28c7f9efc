"""After `adapt` the drive x W + b has mean zero, and nothing else changed."""

import itertools

import keras
import numpy as np
import pytest
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


def simple_cell(layer):
    cell = layer
    while not isinstance(cell, keras.layers.SimpleRNNCell):
        cell = cell.cell
    return cell


def assert_centered(cell, x, counts=None, within=1e-6):
    """The drive x W + b of the steps that count has mean zero, in float64."""
    x = to_numpy(x).astype("float64")
    x = x.reshape(-1, x.shape[-1]) if counts is None else x[counts]
    kernel, bias = (
        to_numpy(w).astype("float64") for w in (cell.kernel, cell.bias)
    )
    drive = x @ kernel + bias
    assert np.abs(drive.mean(axis=0)).max() < within * np.abs(drive).max()


def assert_stack_centered(cells, x, counts=None):
    """Each cell reads what the cells below make of the data."""
    assert_centered(cells[0], x, counts)
    for below, cell in itertools.pairwise(cells):
        x = RNN(below, return_sequences=True)(
            x, mask=None if counts is None else keras.ops.array(counts)
        )
        assert_centered(cell, to_numpy(x), counts, within=1e-5)


def sequential(*layers):
    return keras.Sequential([keras.Input((None, 2)), *layers])


def some_steps(rng):
    """Which of the steps of `x` count."""
    return rng.random((40, 30)) < 0.6


@pytest.mark.parametrize("kind", KINDS)
def test_the_drive_has_mean_zero(kind, x):
    layer = built(KINDS[kind]())
    keras_rin.adapt(layer, x)
    assert_centered(simple_cell(layer), x)


@pytest.mark.one_backend
def test_the_policy_of_a_stack_is_that_of_its_cells(x):
    cells = [keras.layers.SimpleRNNCell(4), keras.layers.SimpleRNNCell(3)]
    stack = built(RNN(cells))
    keras.config.set_dtype_policy("mixed_float16")
    try:
        keras_rin.adapt(stack, 1e5 * x)  # beyond float16
    finally:
        keras.config.set_dtype_policy("float32")
    assert_stack_centered(cells, 1e5 * x)


@pytest.mark.parametrize("masked_backwards", [False, True])
def test_a_stacked_cell_reads_what_the_cells_below_make_of_the_data(
    masked_backwards, x, rng
):
    cells = [RINCell(4), DeepTransitionRINCell(5), RINCell(3)]
    stack = built(RNN(cells, go_backwards=masked_backwards))
    counts = some_steps(rng) if masked_backwards else None
    keras_rin.adapt(stack, x, mask=counts)
    if masked_backwards:
        x, counts = x[:, ::-1].copy(), counts[:, ::-1].copy()
    assert_stack_centered(cells, x, counts)


@pytest.mark.one_backend
def test_the_second_layer_of_a_model_reads_the_first_one_adapted(x):
    first, second = RIN(5, return_sequences=True), RIN(4)
    dropout, dense = keras.layers.Dropout(0.5), keras.layers.Dense(1)
    model = sequential(first, dropout, second, dense)
    keras_rin.adapt(model, x, batch_size=16)
    assert_centered(first.cell, x)
    assert_centered(second.cell, first(x), within=1e-5)


class Twice(keras.layers.Layer):
    """One that cannot be saved, and has no masks."""

    def __init__(self, function):
        super().__init__()
        self.call = function


class OfOwnArguments(keras.Model):
    """A functional model that Keras cannot make again from its config."""

    def __init__(self, rin):
        inputs = keras.Input((None, 2), name="x")
        twice = Twice(lambda x: 2 * x)(inputs)
        super().__init__(inputs=inputs, outputs=rin(twice))


@pytest.mark.one_backend
def test_a_model_that_cannot_be_saved_is_adapted(x):
    rin = RIN(4)
    data = {"x": x, "of another layer": x**2}
    keras_rin.adapt(OfOwnArguments(rin), data)
    assert_centered(rin.cell, 2 * x)


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
    assert "not adapted: forward_inside, backward_inside," in message
    assert "keras_rin.adapt(layer, its_inputs)" in message
    assert_same(block.weights, before, 0, 0)
    assert_centered(rin.cell, Around(lstm)(block(x)), within=1e-5)


def test_masked_time_steps_do_not_count(x, rng):
    counts = some_steps(rng)
    x[~counts] = np.nan  # padding may be anything
    layer = built(RIN(5))
    # A mask may be one of numbers; a larger number counts no more.
    numbers = counts * rng.integers(1, 4, counts.shape)
    keras_rin.adapt(layer, x, mask=numbers.tolist())
    assert_centered(layer.cell, x, counts)


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


@pytest.mark.parametrize("kind", DATA)
def test_it_takes_what_normalization_takes(kind, x):
    if kind == "tf.data" and keras.backend.backend() != "tensorflow":
        pytest.skip("tests a feature of TensorFlow")
    layer = built(RIN(5))
    keras_rin.adapt(layer, DATA[kind](x))
    assert_centered(layer.cell, x)


def test_after_some_steps_it_stops(x):
    layer = built(RIN(5))
    keras_rin.adapt(layer, [x[:10], x[10:20], x[20:] + 7], steps=2)
    assert_centered(layer.cell, x[:20])


@pytest.mark.one_backend
def test_the_batch_size_of_an_array_changes_nothing(x):
    model = sequential(RIN(4, return_sequences=True), RIN(3))
    biases = []
    for batch_size in (3, 40):
        keras_rin.adapt(model, x, batch_size=batch_size)
        biases.append(to_numpy(model.layers[1].cell.bias))
    np.testing.assert_allclose(*biases, rtol=1e-4)


def test_only_biases_change_and_a_second_time_not_at_all(x):
    noisy = NoisyRNN(RINCell(4), return_sequences=True)
    stateful = RIN(4, stateful=True, return_sequences=True)
    both = keras.layers.Bidirectional(
        keras.layers.LSTM(2, stateful=True, return_sequences=True)
    )
    model = keras.Sequential(
        [
            keras.Input(batch_shape=(20, 30, 2)),
            Averaging(),
            noisy,
            keras.Sequential([stateful, both]),
            RIN(4, dropout=0.3),
        ]
    )
    for state in (*stateful.states, *both.states):
        state.assign(np.ones(state.shape))

    def values():
        variables = (*model.variables, *model.metrics_variables)
        states = (*stateful.states, *both.states)
        return [to_numpy(value).copy() for value in (*variables, *states)]

    before = values()
    keras_rin.adapt(model, x, batch_size=20)
    once = values()
    assert len(model.metrics_variables) == 2
    changed = [
        variable.path
        for variable, old, new in zip(
            model.variables, before, once, strict=False
        )
        if (old != new).any()
    ]
    assert len(changed) == 3 and all(p.endswith("bias") for p in changed)
    keras_rin.adapt(model, x, batch_size=20)
    assert_same(once, values(), 0, 0)
    for state in (*stateful.states, *both.states):
        np.testing.assert_array_equal(to_numpy(state), np.ones(state.shape))


def with_nan(x):
    x = x.copy()
    x[3, 4, 1] = np.nan
    return x


UNFIT = {
    "rank": (lambda x: x[..., 0], r"\(batch, time, 2\).*Received"),
    "features": (lambda x: x[..., :1], r"\(batch, time, 2\).*\(40, 30, 1\)"),
    "integers": (lambda x: x.astype("int32"), "dtype int32"),
    "no sequence": (lambda x: x[:0], "no time step"),
    "no time step": (lambda x: x[:, :0], "no time step"),
    "no batch": (lambda x: [], "no time step"),
    "NaN": (with_nan, r"features \[1\]"),
    "not data": (lambda x: 3.0, "data=3.0"),
}


@pytest.mark.one_backend
@pytest.mark.parametrize("kind", UNFIT)
def test_data_that_do_not_fit_are_refused(kind, x):
    spoil, words = UNFIT[kind]
    layer = built(RIN(5, bias_initializer="ones"))
    with pytest.raises(ValueError, match=words):
        keras_rin.adapt(layer, spoil(x))
    np.testing.assert_array_equal(to_numpy(layer.cell.bias), 1)


@pytest.mark.one_backend
def test_an_error_on_the_way_leaves_every_bias_as_it_was(x):
    layers = [RIN(4, bias_initializer="ones") for _ in range(2)]
    model = model_of_two_inputs(layers)
    for data in ([x, with_nan(x)], [with_nan(x), x]):
        with pytest.raises(ValueError, match="features"):
            keras_rin.adapt(model, tuple(data))
    for layer in layers:
        np.testing.assert_array_equal(to_numpy(layer.cell.bias), 1)


def rin_of_4():
    return built(RIN(4))


def called_twice():
    return model_of_two_inputs([RIN(4)] * 2)


def shared_cell():
    cell = RINCell(2)
    return sequential(RNN(cell, return_sequences=True), RNN(cell))


class Subclassed(keras.Model):
    def __init__(self):
        super().__init__()
        self.rin = built(RIN(4))
        self.built = True


def wrapped():
    layer = keras.layers.TimeDistributed(RIN(4))
    layer.build((None, 5, 30, 2))
    return layer


# name: (layer, words of the error, data made of x, further arguments)
ONES = {"mask": np.ones((40, 30), bool)}
REFUSED = {
    "not built, in a model": (
        lambda: keras.Sequential([RIN(4)]),
        "keras.Input",
    ),
    "not built": (lambda: RIN(4), "no weights yet"),
    "no bias": (lambda: built(RIN(4, use_bias=False)), "Normalization"),
    "gates": (lambda: built(keras.layers.LSTM(4)), "no RIN or SimpleRNN"),
    "called twice": (called_twice, "exactly once", lambda x: (x, x)),
    "shared cell": (shared_cell, "by several layers"),
    "subclassed": (Subclassed, "one by one"),
    "inside another layer": (
        lambda: sequential(Around(RIN(4))),
        "whose inputs are known: adapt rin.* one by one",
    ),
    "not a layer": (lambda: "RIN", "Received: layer='RIN'"),
    "an iterator for two cells": (
        lambda: built(keras.layers.Bidirectional(RIN(4))),
        "2 cells.*an iterator",
        lambda x: iter([x, x]),
    ),
    "mask of batches": (rin_of_4, "`mask`", lambda x: [x], ONES),
    "mask of a model": (lambda: sequential(RIN(4)), "`mask`", None, ONES),
    "mask of slices": (wrapped, "`mask`", None, ONES),
    "mask of another shape": (
        rin_of_4,
        r"\(40, 30\)",
        None,
        {"mask": np.ones((40, 29))},
    ),
}


@pytest.mark.one_backend
@pytest.mark.parametrize("kind", REFUSED)
def test_what_cannot_be_adapted_is_refused(kind, x):
    make, words, *rest = REFUSED[kind]
    make_data, kwargs = rest + [None, {}][len(rest) :]
    data = make_data(x) if make_data else x
    with pytest.raises(ValueError, match=words):
        keras_rin.adapt(make(), data, **kwargs)


@pytest.mark.one_backend
@pytest.mark.filterwarnings("ignore:When providing `inputs` as a dict")
@pytest.mark.parametrize("names", ["a", "ab"])
def test_the_keys_of_a_dict_of_inputs_need_not_be_their_names(names, x):
    inputs = {
        name: keras.Input((None, 2), name=f"the_{name}") for name in names
    }
    layers = {name: RIN(4) for name in names}
    outputs = {name: layers[name](inputs[name]) for name in names}
    model = keras.Model(inputs, outputs)
    data = dict(zip(names, (x, x**2), strict=False))
    keras_rin.adapt(model, data)
    for name, layer in layers.items():
        assert_centered(layer.cell, data[name])


@pytest.mark.one_backend
def test_a_stateful_stack_gets_the_biases_of_one_without_states(x):
    weights = []
    for stateful in (True, False):
        keras.utils.set_random_seed(1)
        layers = [
            keras.layers.SimpleRNN(3, return_sequences=True, stateful=stateful)
            for _ in range(3)
        ]
        inputs = keras.Input(batch_shape=(4, 30, 2))
        model = keras.Sequential([inputs, *layers])
        keras_rin.adapt(model, x[:4])
        weights.append(model.get_weights())
    assert_same(*weights, 1e-4, 1e-6)
