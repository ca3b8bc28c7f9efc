"""The layer through the fused loop, against itself through Keras's."""

import keras
import pytest
import witnesses
from cases import table
from witnesses import MASKS
from witnesses import assert_same

from keras_rin.layers import RIN

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


def pair(options, shape):
    """The same RIN fused and not, with the same weights."""
    start = keras.initializers.RandomNormal(stddev=0.2, seed=1)
    layers = []
    for fused in (True, False):
        layer = RIN(5, fused=fused, recurrent_initializer=start, **options)
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
    for one, two in zip(fused, other, strict=True):
        assert_same(one, two)


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
        witnesses.gradients(layer, x, y, **kwargs)
        for layer in pair(options, x.shape)
    )
    for one, two in zip(fused, other, strict=True):
        assert_same(one, two)


def test_the_fused_layer_keeps_its_state_like_the_other(rng):
    x = rng.normal(size=(4, 6, 3)).astype("float32")
    fused, other = pair({"stateful": True}, x.shape)
    for _ in range(3):
        assert_same(fused(x, training=True), other(x, training=True))


@pytest.mark.skipif(BACKEND != "tensorflow", reason="reads TensorFlow's graph")
@pytest.mark.parametrize("training, loops", [(True, 1), (False, 0)])
def test_only_training_compiles_by_itself(training, loops):
    import tensorflow as tf

    layer = RIN(3)
    x = tf.ones((2, 5, 1))
    graph = tf.function(lambda: layer(x, training=training))
    layer(x)
    functions = graph.get_concrete_function().graph.as_graph_def().library
    compiled = [f for f in functions.function if f.attr["_XlaMustCompile"].b]
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
