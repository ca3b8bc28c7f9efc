"""A SimpleRNN becomes a RIN, and a RIN a SimpleRNN, of the same outputs."""

import keras
import numpy as np
import pytest
from references import assert_same
from references import to_numpy

from keras_rin.constraints import Orthogonal
from keras_rin.initializers import Offset
from keras_rin.layers import RIN
from keras_rin.layers import DeepTransitionRINCell
from keras_rin.layers import RINCell
from keras_rin.regularizers import IdentityOffsetL2

OPTIONS = {
    "plain": {},
    "without a bias": {"use_bias": False},
    "backwards": {"go_backwards": True, "return_sequences": True},
    "with its state": {"return_state": True, "return_sequences": True},
    "unrolled": {"unroll": True},
    "zeros where masked": {
        "zero_output_for_mask": True,
        "return_sequences": True,
    },
    "stateful": {"stateful": True},
    "float64": {"dtype": "float64"},
}
EXHAUSTIVE = [pytest.mark.exhaustive]
SOON = ("zeros where masked", "stateful")


def sine(z):
    return keras.ops.sin(z)


ACTIVATIONS = {
    "relu": [],
    sine: [],
    "elu": EXHAUSTIVE,
    "sigmoid": EXHAUSTIVE,
    None: EXHAUSTIVE,
}


def random_weights(rng, layer):
    cell = getattr(layer, "cell", layer)
    cell.set_weights([rng.normal(0, 0.4, w.shape) for w in cell.get_weights()])
    return layer


def built(rng, make, **options):
    layer = make(5, bias_initializer="ones", **options)
    layer.build((4 if options.get("stateful") else None, 6, 3))
    return random_weights(rng, layer)


def there(simple_rnn, **options):
    return RIN.from_simple_rnn(simple_rnn, **options)


def back(rin, **options):
    return rin.to_simple_rnn(**options)


BOTH_WAYS = pytest.mark.parametrize(
    ("make", "convert", "sign"),
    [(keras.layers.SimpleRNN, there, -1), (RIN, back, 1)],
    ids=["from", "to"],
)


def same_outputs(rng, one, other):
    x = rng.normal(size=(4, 6, 3)).astype("float32")
    mask = np.indices((4, 6)).sum(0) % 3 > 0
    for _ in range(2):  # the second time tells what a stateful one keeps
        pair = one(x, mask=mask), other(x, mask=mask)
        flat = [keras.tree.flatten(answer) for answer in pair]
        assert_same(*flat, atol=1e-4)


@BOTH_WAYS
@pytest.mark.parametrize(
    "options",
    [
        pytest.param(options, id=name, marks=[] if name in SOON else EXHAUSTIVE)
        for name, options in OPTIONS.items()
    ],
)
def test_the_outputs_are_those_of_the_original(
    rng, make, convert, sign, options
):
    layer = built(rng, make, activation="tanh", **options)
    if layer.stateful:
        layer(np.ones((4, 6, 3), "float32"))
    other = convert(layer)
    same_outputs(rng, layer, other)
    for name in options:
        if name != "dtype":
            assert getattr(other, name) == options[name]
    assert other.dtype_policy.name == layer.dtype_policy.name
    moved = to_numpy(layer.cell.recurrent_kernel) + sign * np.eye(5)
    assert_same(other.cell.recurrent_kernel, moved)


@pytest.mark.one_backend
@BOTH_WAYS
@pytest.mark.parametrize(
    "activation",
    [
        pytest.param(phi, id=getattr(phi, "__name__", str(phi)), marks=marks)
        for phi, marks in ACTIVATIONS.items()
    ],
)
def test_any_activation_is_kept(rng, make, convert, sign, activation):
    layer = built(rng, make, activation=activation)
    assert convert(layer).activation is layer.activation
    same_outputs(rng, layer, convert(layer))


@BOTH_WAYS
def test_what_means_the_same_is_carried_over(rng, make, convert, sign):
    options = {
        "kernel_regularizer": keras.regularizers.L1(0.1),
        "bias_regularizer": keras.regularizers.L2(0.1),
        "kernel_constraint": keras.constraints.MaxNorm(3),
        "bias_constraint": keras.constraints.NonNeg(),
        "kernel_initializer": keras.initializers.HeNormal(seed=1),
        "bias_initializer": keras.initializers.Constant(0.5),
        "dropout": 0.25,
        "seed": 3,
    }
    layer = make(5, trainable=False, **options)
    layer.build((None, 6, 3))
    other = convert(layer)
    for name, value in options.items():
        assert getattr(other.cell, name) == value
    assert not other.trainable
    layer.activity_regularizer = keras.regularizers.L2(0.2)
    other = convert(layer)
    assert other.activity_regularizer is layer.activity_regularizer


@pytest.mark.exhaustive
@BOTH_WAYS
def test_dropout_acts_alike_with_one_seed(rng, make, convert, sign):
    layer = built(rng, make, activation="tanh", dropout=0.5, seed=7)
    x = rng.normal(size=(4, 6, 3)).astype("float32")
    other = convert(layer)
    assert_same(layer(x, training=True), other(x, training=True), atol=1e-4)


def test_what_pulls_towards_the_identity_is_converted(rng):
    layer = built(
        rng,
        keras.layers.SimpleRNN,
        recurrent_regularizer=IdentityOffsetL2(0.3),
        recurrent_constraint=Orthogonal(),
    )
    rin = there(layer)
    assert isinstance(rin.recurrent_regularizer, keras.regularizers.L2)
    assert_same(sum(rin.losses), sum(layer.losses))
    assert rin.recurrent_constraint.get_config() == {"offset": True, "gates": 1}
    again = back(rin)
    assert isinstance(again.recurrent_regularizer, IdentityOffsetL2)
    assert_same(sum(again.losses), sum(layer.losses))
    assert again.recurrent_constraint.offset is False


def test_the_initializer_draws_the_same_effective_matrix(rng):
    orthogonal = keras.initializers.Orthogonal(seed=1)
    layer = built(rng, keras.layers.SimpleRNN, recurrent_initializer=orthogonal)
    rin = there(layer)
    assert isinstance(rin.recurrent_initializer, Offset)
    assert rin.recurrent_initializer.initializer is orthogonal
    assert back(rin).recurrent_initializer is orthogonal


@pytest.mark.one_backend
@BOTH_WAYS
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("recurrent_regularizer", keras.regularizers.L1(0.1)),
        ("recurrent_constraint", keras.constraints.MaxNorm(1)),
        ("recurrent_dropout", 0.5),
    ],
)
def test_what_means_something_else_is_refused_unless_replaced(
    rng, make, convert, sign, name, value
):
    layer = built(rng, make, **{name: value})
    with pytest.raises(ValueError, match=f"`{name}` .* no exact counterpart"):
        convert(layer)
    new = keras.regularizers.L2(1) if name.endswith("regularizer") else None
    other = convert(layer, **{name: new or 0 if "dropout" in name else new})
    same_outputs(rng, layer, other)


def test_l2_of_the_effective_matrix_is_refused(rng):
    layer = built(rng, keras.layers.SimpleRNN, recurrent_regularizer="l2")
    with pytest.raises(ValueError, match="`recurrent_regularizer`"):
        there(layer)


@BOTH_WAYS
def test_options_of_the_new_layer_can_be_named(rng, make, convert, sign):
    layer = built(rng, make)
    other = convert(layer, name="mine", return_sequences=True)
    assert (other.name, other.return_sequences) == ("mine", True)


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


def test_layers_that_are_not_built_are_refused():
    for convert in (
        lambda: there(keras.layers.SimpleRNN(3)),
        lambda: back(RIN(3)),
        lambda: RINCell.from_simple_rnn_cell(keras.layers.SimpleRNNCell(3)),
        lambda: RINCell(3).to_simple_rnn_cell(),
    ):
        with pytest.raises(ValueError, match="has no weights yet"):
            convert()


def test_other_layers_are_refused(rng):
    deep = DeepTransitionRINCell(3)
    deep.build((None, 2))
    simple = keras.layers.SimpleRNNCell(3)
    simple.build((None, 2))
    for convert in (
        lambda: there(keras.layers.GRU(3)),
        lambda: there(RIN(3)),
        lambda: there("simple_rnn"),
        lambda: RINCell.from_simple_rnn_cell(RINCell(3)),
        lambda: DeepTransitionRINCell.from_simple_rnn_cell(simple),
        lambda: deep.to_simple_rnn_cell(),
    ):
        with pytest.raises(ValueError, match="must be .*Received: "):
            convert()


@BOTH_WAYS
@pytest.mark.parametrize(
    "replaced", [{"units": 7}, {"use_bias": False}], ids=["units", "use_bias"]
)
def test_the_size_of_the_weights_cannot_be_replaced(
    rng, make, convert, sign, replaced
):
    with pytest.raises(ValueError, match=f"`{[*replaced][0]}` cannot be"):
        convert(built(rng, make), **replaced)
