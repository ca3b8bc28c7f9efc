"""A SimpleRNN becomes a RIN, and a RIN a SimpleRNN, of the same outputs."""

import functools

import keras
import numpy as np
import pytest
import references
from cases import first_of
from references import assert_same
from references import to_numpy

from keras_rin.constraints import Orthogonal
from keras_rin.initializers import Offset
from keras_rin.layers import RIN
from keras_rin.layers import DeepTransitionRINCell
from keras_rin.layers import RINCell
from keras_rin.regularizers import IdentityOffsetL2

# The first two in the default tier.
OPTIONS = [
    {
        "stateful": True,
        "kernel_regularizer": keras.regularizers.L1(0.1),
        "bias_regularizer": keras.regularizers.L2(0.1),
        "kernel_constraint": keras.constraints.MaxNorm(3),
        "bias_constraint": keras.constraints.NonNeg(),
        "kernel_initializer": keras.initializers.HeNormal(seed=1),
        "dropout": 0.25,
        "seed": 3,
        "trainable": False,
    },
    {"zero_output_for_mask": True, "return_sequences": True},
    {"activation": keras.ops.sin},
    {"use_bias": False, "activation": keras.activations.linear},
    {"go_backwards": True, "return_sequences": True},
    {"return_state": True, "return_sequences": True},
    {"unroll": True},
    {"dtype": "float64"},
]


def random_weights(rng, layer):
    rng = rng or np.random.default_rng(0)
    cell = getattr(layer, "cell", layer)
    cell.set_weights([rng.normal(0, 0.4, w.shape) for w in cell.get_weights()])
    return layer


def built(rng, make, **options):
    layer = make(5, bias_initializer="ones", **options)
    layer.build((4 if options.get("stateful") else None, 6, 3))
    return random_weights(rng, layer)


there, back = RIN.from_simple_rnn, RIN.to_simple_rnn
BOTH_WAYS = pytest.mark.parametrize(
    ("make", "convert", "sign"),
    [(keras.layers.SimpleRNN, there, -1), (RIN, back, 1)],
    ids=["from", "to"],
)


def assert_same_outputs(rng, layer, converted):
    x = rng.normal(size=(4, 6, 3)).astype("float32")
    mask = np.indices((4, 6)).sum(0) % 3 > 0
    for _ in range(2):  # the second time tells what a stateful one keeps
        outputs, expected = (
            keras.tree.flatten(layer(x, mask=mask))
            for layer in (converted, layer)
        )
        assert_same(outputs, expected, atol=1e-4)


@BOTH_WAYS
@pytest.mark.parametrize("options", first_of([(o,) for o in OPTIONS], 2))
def test_outputs_and_options_are_those_of_the_original(
    rng, make, convert, sign, options
):
    layer = built(rng, make, **{"activation": "tanh", **options})
    layer.activity_regularizer = keras.regularizers.L2(0.2)
    if layer.stateful:
        layer(np.ones((4, 6, 3), "float32"))
    converted = convert(layer)
    assert_same_outputs(rng, layer, converted)
    for name in options.keys() - {"dtype", "seed"}:
        assert getattr(converted, name) == options[name]
    assert converted.cell.seed == layer.cell.seed
    assert converted.activity_regularizer is layer.activity_regularizer
    assert converted.bias_initializer is layer.bias_initializer
    assert converted.dtype_policy.name == layer.dtype_policy.name
    expected = to_numpy(layer.cell.recurrent_kernel) + sign * np.eye(5)
    assert_same(converted.cell.recurrent_kernel, expected)


def test_what_pulls_towards_the_identity_is_converted(rng):
    orthogonal = keras.initializers.Orthogonal(seed=1)
    layer = built(
        rng,
        keras.layers.SimpleRNN,
        recurrent_initializer=orthogonal,
        recurrent_regularizer=IdentityOffsetL2(0.3),
        recurrent_constraint=Orthogonal(),
    )
    rin = there(layer)
    assert isinstance(rin.recurrent_initializer, Offset)
    assert rin.recurrent_initializer.initializer is orthogonal
    assert isinstance(rin.recurrent_regularizer, keras.regularizers.L2)
    assert_same(sum(rin.losses), sum(layer.losses))
    assert rin.recurrent_constraint.get_config() == {"offset": True, "gates": 1}
    again = back(rin)
    assert again.recurrent_initializer is orthogonal
    assert isinstance(again.recurrent_regularizer, IdentityOffsetL2)
    assert_same(sum(again.losses), sum(layer.losses))
    assert again.recurrent_constraint.offset is False


@pytest.mark.one_backend
@BOTH_WAYS
@pytest.mark.parametrize(
    ("name", "value", "new"),
    [
        ("regularizer", keras.regularizers.L1(0.1), keras.regularizers.L2(1)),
        ("constraint", keras.constraints.MaxNorm(1), None),
        ("dropout", 0.5, 0),
    ],
)
def test_what_means_something_else_is_refused_unless_replaced(
    rng, make, convert, sign, name, value, new
):
    name = f"recurrent_{name}"
    layer = built(rng, make, **{name: value})
    with pytest.raises(ValueError, match=f"`{name}` .* no exact counterpart"):
        convert(layer)
    assert_same_outputs(rng, layer, convert(layer, **{name: new}))


def test_a_frozen_cell_stays_frozen(rng):
    layer = built(rng, keras.layers.SimpleRNN)
    layer.cell.trainable = False
    assert there(layer).trainable_weights == []


def test_cells_become_cells_of_the_same_step(rng):
    x, h = rng.normal(size=(4, 3)), rng.normal(size=(4, 5))
    simple = keras.layers.SimpleRNNCell(5)
    simple.build((None, 3))
    random_weights(rng, simple)
    cell = RINCell.from_simple_rnn_cell(simple)
    assert type(cell) is RINCell
    again = cell.to_simple_rnn_cell(name="mine")
    assert type(again) is keras.layers.SimpleRNNCell
    assert again.name == "mine"
    expected = simple(x, h)[0]
    assert_same(cell(x, h)[0], expected)
    assert_same(again(x, h)[0], expected)


SIMPLE_RNN, RNN_CELL = keras.layers.SimpleRNN, keras.layers.SimpleRNNCell
# The options of U in a SimpleRNN, and those of V in a RIN, have no counterpart.
REFUSED = [
    (there, lambda: SIMPLE_RNN(3), "has no weights yet"),
    (back, lambda: RIN(3), "has no weights yet"),
    (RINCell.to_simple_rnn_cell, lambda: RINCell(3), "has no weights yet"),
    (there, lambda: "simple_rnn", "must be .*Received: "),
    (RINCell.from_simple_rnn_cell, lambda: RINCell(3), "must be .*Received: "),
    (
        DeepTransitionRINCell.from_simple_rnn_cell,
        lambda: references.built(RNN_CELL(3)),
        "expecting 5 weights",
    ),
    (
        DeepTransitionRINCell.to_simple_rnn_cell,
        lambda: references.built(DeepTransitionRINCell(3)),
        "must be .*Received: ",
    ),
    *[
        (
            there,
            functools.partial(built, None, SIMPLE_RNN, **{name: value}),
            name,
        )
        for name, value in (
            ("recurrent_regularizer", "l2"),
            ("recurrent_constraint", Orthogonal(offset=True)),
        )
    ],
]


@pytest.mark.parametrize("convert, make, message", REFUSED)
def test_what_cannot_be_converted_is_refused(convert, make, message):
    with pytest.raises(ValueError, match=message):
        convert(make())
