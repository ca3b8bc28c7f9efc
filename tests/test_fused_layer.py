"""The layer through the fused loop, against itself through Keras's."""

import contextlib
import dataclasses

import keras
import numpy as np
import pytest
import references
from cases import first_of
from cases import table
from references import MASKS
from references import assert_same

from keras_rin.initializers import Offset
from keras_rin.layers import RIN
from keras_rin.layers import RINCell

BACKEND = keras.backend.backend()
OPTIONS = {
    "last output": {},
    "sequences": {"return_sequences": True},
    "backwards": {"return_sequences": True, "go_backwards": True},
    "zeros where masked": {
        "return_sequences": True,
        "zero_output_for_mask": True,
    },
    "last output, zeros where masked": {"zero_output_for_mask": True},
    "dropout": {"dropout": 0.5, "seed": 1},
    "no bias": {"use_bias": False},
    "state": {"return_state": True, "return_sequences": True},
}


def pair(options, shape, units=5):
    """The same RIN fused and not, with the same weights."""
    start = Offset(keras.initializers.Orthogonal(seed=1))
    layers = []
    for fused in (True, False):
        layer = RIN(units, fused=fused, recurrent_initializer=start, **options)
        layer.build(shape)
        layers.append(layer)
    layers[1].set_weights(layers[0].get_weights())
    return layers


@pytest.mark.parametrize(
    "option, mask, start_at", table(OPTIONS, MASKS, ["zeros", "a state"])
)
def test_the_fused_layer_is_the_other_one(rng, option, mask, start_at):
    x = rng.normal(size=(4, 6, 3)).astype("float32")
    mask = MASKS[mask](6, 4)
    kwargs = {
        "mask": None if mask is None else mask.T,
        "training": option == "dropout",
    }
    if start_at == "a state":
        kwargs["initial_state"] = rng.normal(size=(4, 5)).astype("float32")
    fused, other = (
        keras.tree.flatten(layer(x, **kwargs))
        for layer in pair(OPTIONS[option], x.shape)
    )
    assert_same(fused, other)


@pytest.mark.parametrize(
    "option, mask",
    table(
        ["last output", "sequences", "backwards", "zeros where masked"],
        ["alternating", "leading", "none"],
    ),
)
def test_the_fused_layer_has_the_gradients_of_the_other(rng, option, mask):
    x = rng.normal(size=(4, 6, 3)).astype("float32")
    mask = MASKS[mask](6, 4)
    kwargs = {} if mask is None else {"mask": mask.T}
    options = OPTIONS[option]
    shape = (4, 6, 5) if "return_sequences" in options else (4, 5)
    y = rng.normal(size=shape).astype("float32")
    fused, other = (
        references.gradients(layer, x, y, **kwargs)
        for layer in pair(options, x.shape)
    )
    assert_same(fused, other)


@pytest.mark.parametrize("seed", first_of([(n,) for n in range(4)]))
def test_random_layers_are_the_same_fused_and_not(seed, float64):
    rng = np.random.default_rng(seed)
    units, time, batch, features = rng.integers(1, [71, 151, 7, 5])
    flags = "return_sequences", "go_backwards", "zero_output_for_mask"
    options = {flag: bool(rng.integers(2)) for flag in flags}
    phis = ["relu", "leaky_relu", "elu", "sigmoid", "linear"]
    options["activation"] = str(rng.choice(phis))
    x = rng.normal(size=(batch, time, features))
    kwargs = {"initial_state": rng.normal(size=(batch, units))}
    if rng.integers(2):
        kwargs["mask"] = rng.random((batch, time)) < 0.7
        kwargs["mask"][rng.integers(batch)] = False
    layers = pair(options, x.shape, int(units))
    y = rng.normal(size=layers[0].compute_output_shape(x.shape))
    close = 1e-5 if BACKEND == "torch" else 1e-9  # float32 products of Keras
    fused, reference = (layer(x, **kwargs) for layer in layers)
    assert_same(fused, reference, close, close)
    fused, reference = (
        references.gradients(layer, x, y, **kwargs) for layer in layers
    )
    assert_same(fused, reference, close, close)


@pytest.mark.skipif(
    BACKEND != "tensorflow", reason="only TensorFlow has unknown shapes"
)
@pytest.mark.parametrize("masked", [False, True])
def test_the_number_of_steps_may_be_undefined(rng, masked):
    import tensorflow as tf

    layer = RIN(5, return_sequences=True)
    shapes = [tf.TensorSpec((None, None, 3)), tf.TensorSpec((None, None), bool)]

    @tf.function(input_signature=shapes)
    def traced(x, mask):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = layer(x, mask=mask if masked else None, training=True)
        return y, *tape.gradient(y, [x, *layer.trainable_weights])

    layer.build((None, None, 3))
    for time in (4, 9):
        x = tf.constant(rng.normal(size=(2, time, 3)), "float32")
        mask = rng.normal(size=(2, time)) > 0
        with tf.GradientTape() as tape:
            tape.watch(x)
            kwargs = {"mask": mask} if masked else {}
            y = layer(x, training=False, **kwargs)
        expected = y, *tape.gradient(y, [x, *layer.trainable_weights])
        assert_same(traced(x, mask), expected)


def test_the_fused_layer_drops_nothing_in_inference(rng):
    x = rng.normal(size=(4, 6, 3)).astype("float32")
    fused, other = pair({"dropout": 0.5, "seed": 1}, x.shape)
    assert_same(fused(x), other(x))


def test_the_fused_layer_keeps_its_state_like_the_other(rng):
    x = rng.normal(size=(4, 6, 3)).astype("float32")
    fused, other = pair({"stateful": True}, x.shape)
    for _ in range(3):
        assert_same(fused(x, training=True), other(x, training=True))


@pytest.mark.skipif(BACKEND != "tensorflow", reason="reads TensorFlow's graph")
@pytest.mark.parametrize(
    "training, differentiated, loops",
    [(True, True, 1), (True, False, 0), (False, True, 0)],
)
def test_only_training_compiles_by_itself(training, differentiated, loops):
    import tensorflow as tf

    layer = RIN(3)
    x = tf.ones((2, 5, 1))
    layer(x)

    def forward():
        with tf.GradientTape() if differentiated else contextlib.nullcontext():
            return layer(x, training=training)

    graph = tf.function(forward).get_concrete_function().graph
    functions = graph.as_graph_def().library.function
    compiled = [f for f in functions if f.attr["_XlaMustCompile"].b]
    assert len(compiled) == loops


@pytest.mark.parametrize(
    "options, reason",
    [
        ({"activation": "softplus"}, "activation='softplus'"),
        ({"unroll": True}, "unroll=True"),
        ({"recurrent_dropout": 0.1}, "recurrent_dropout=0.1"),
    ],
)
def test_what_prevents_the_fused_loop_is_named(options, reason):
    with pytest.raises(
        ValueError, match=f"`fused=True` does not support.*{reason}"
    ):
        RIN(3, fused=True, **options)
    RIN(3, fused="auto", **options)


@pytest.mark.parametrize("fused", ["yes", None, 1])
def test_fused_is_one_of_three(fused):
    with pytest.raises(ValueError, match='`fused` must be "auto", True or'):
        RIN(3, fused=fused)


def test_a_lambda_as_activation_runs_without_a_warning(rng):
    layer = RIN(3, lambda z: keras.ops.sin(z))
    x = rng.normal(size=(2, 5, 4)).astype("float32")
    assert_same(layer(x, training=True), layer(x))


class Halving(RINCell):
    def call(self, inputs, states, training=False):
        output, states = super().call(inputs, states, training)
        return output / 2, [state / 2 for state in states]


def test_a_cell_of_ones_own_is_not_fused(rng):
    layer = RIN(3)
    layer.cell = Halving(3)
    x = rng.normal(size=(2, 5, 4)).astype("float32")
    expected = keras.layers.RNN(layer.cell)(x)
    assert_same(layer(x, training=True), expected)


@dataclasses.dataclass  # has no hash
class Power:
    exponent: int

    def __call__(self, z):
        return z**self.exponent


def test_an_activation_needs_no_hash(rng):
    layer = RIN(3, Power(2))
    x = 0.1 * rng.normal(size=(2, 5, 4)).astype("float32")
    assert_same(layer(x, training=True), layer(x))
