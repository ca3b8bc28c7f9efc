"""A RIN is a SimpleRNN of U + I in both loops, in values and gradients."""

import keras
import numpy as np
import pytest
import references
from cases import first_of
from cases import table
from derivatives import BACKEND
from derivatives import outputs_and_gradients
from keras import ops
from references import MASKS
from references import Power
from references import assert_same
from references import to_numpy

from keras_rin._recurrence import fused
from keras_rin.layers import RIN
from keras_rin.layers import RINCell

ACTIVATIONS = [*references.ACTIVATIONS]
if BACKEND == "jax":
    ACTIVATIONS.remove("tanh")  # Keras makes it float32 of float64 there
# TensorFlow takes seconds to compile, so one in four cases by default is.
COMPILED = [False, False, False, True][: 4 if BACKEND == "tensorflow" else 1]
TIMES = [7, 40, 48]  # in one, two and three pieces
# Of these numbers, 7 has to be padded.
RECOMPUTE = [True, False, False, True]


def new_rin(units=5, features=2, fused=True, dtype="float64", **options):
    """A layer with random weights, which keep its states small."""
    rng, identity = np.random.default_rng(0), np.eye(units)
    layer = RIN(units, fused=fused, dtype=dtype, **options)
    layer.build((None, None, features))
    kernel, _, *bias = layer.get_weights()
    offset = 0.2 * rng.normal(size=(units, units)) - 0.6 * identity
    others = [rng.normal(size=weight.shape) for weight in (kernel, *bias)]
    layer.set_weights([others[0], offset, *others[1:]])
    return layer


def drawn(layer, time=7, batch=3):
    """Inputs, initial state, and the weights of a layer."""
    rng = np.random.default_rng(0)
    features, units = layer.cell.kernel.shape
    x, h = rng.normal(size=(batch, time, features)), rng.random((batch, units))
    weights = [ops.copy(weight) for weight in layer.trainable_variables]
    return [*(ops.cast(a, layer.compute_dtype) for a in (x, h)), *weights]


def masked(name, time=7, batch=3):
    mask = MASKS[name](time, batch)
    return {} if mask is None else {"mask": ops.convert_to_tensor(mask.T)}


def run(layer, x, h, *weights, training=True, **kwargs):
    """The outputs as a function of tensors, which a derivative needs."""
    others = layer.non_trainable_variables
    outputs, _ = layer.stateless_call(
        weights, others, x, initial_state=h, training=training, **kwargs
    )
    return outputs


def squared(function):
    """A function of outputs, with the sum of their squares before them."""

    def loss_and_outputs(*arguments):
        outputs = keras.tree.flatten(function(*arguments))
        return sum(ops.sum(output**2) for output in outputs), outputs

    return loss_and_outputs


def assert_is_simple_rnn(layer, time=7, batch=3, compiled=False, **kwargs):
    """Outputs and gradients are those of the SimpleRNN with V = U + I."""
    actual, expected = (
        outputs_and_gradients(
            squared(lambda *a, layer=layer: run(layer, *a, **kwargs)),
            drawn(layer, time, batch),
            compiled,
        )
        for layer in (layer, references.simple_rnn_of(layer))
    )
    tolerance = 1e-5 if BACKEND == "torch" else 1e-9  # float32 products there
    for value, reference in zip(
        keras.tree.flatten(actual), keras.tree.flatten(expected), strict=True
    ):
        scale = np.abs(to_numpy(reference)).max(initial=1.0)
        assert_same(value, reference, tolerance, tolerance * scale)


@pytest.mark.parametrize(
    "activation, mask, time, return_sequences, compiled, recompute",
    table(ACTIVATIONS, MASKS, TIMES, [True, False], COMPILED, RECOMPUTE),
)
def test_the_fused_recurrence_is_simple_rnn(
    activation, mask, time, return_sequences, compiled, recompute
):
    layer = new_rin(
        activation=activation,
        return_sequences=return_sequences,
        recompute=recompute,
    )
    assert_is_simple_rnn(layer, time, compiled=compiled, **masked(mask, time))


OPTIONS = {
    "backwards": {"return_sequences": True, "go_backwards": True},
    "zeros where masked": {
        "return_sequences": True,
        "zero_output_for_mask": True,
    },
    "last output, zeros where masked": {"zero_output_for_mask": True},
    "dropout": {"dropout": 0.5, "seed": 1},
    "no bias": {"use_bias": False},
    "more features": {"features": 7, "units": 3},
    "state": {"return_sequences": True, "return_state": True},
}


@pytest.mark.parametrize(
    "option, mask, training", table(OPTIONS, MASKS, [True, True, False])
)
def test_every_option_acts_as_on_simple_rnn(option, mask, training):
    layer = new_rin(**OPTIONS[option])
    assert_is_simple_rnn(layer, training=training, **masked(mask))


@pytest.mark.parametrize(
    "options",
    [{"unroll": True}, {"activation": "softplus"}, {"go_backwards": True}],
)
def test_so_is_the_loop_of_keras(options):
    layer = new_rin(fused="auto", **options)
    assert_is_simple_rnn(layer, training=False, **masked("leading"))


@pytest.mark.parametrize(
    "time, batch", first_of([(1, 2), (7, 0), (4096, 1)], 2)
)
@pytest.mark.parametrize("recompute", [False, True])
def test_sequences_may_be_short_long_and_none(time, batch, recompute):
    layer = new_rin(activation="sigmoid", recompute=recompute)
    assert_is_simple_rnn(layer, time, batch)


@pytest.mark.skipif(BACKEND != "jax", reason="JAX tells what a program needs")
def test_recomputation_divides_the_memory():
    import jax

    def temporary_bytes(recompute):
        layer = new_rin(units=16, recompute=recompute)
        arguments = drawn(layer, 10_007)  # a prime
        step = jax.grad(lambda *a: ops.sum(run(layer, *a)), range(5))
        program = jax.jit(step).lower(*arguments).compile()
        return program.memory_analysis().temp_size_in_bytes

    assert temporary_bytes(True) < temporary_bytes(False) / 4


SETUP = """
import keras, numpy, tensorflow
from keras_rin.layers import RIN

layer = RIN(64, recompute=True)
layer.build((None, None, 1))
weights = layer.trainable_variables

@tensorflow.function(
    input_signature=[tensorflow.TensorSpec((16, None, 1))], autograph=False
)
def step(x):
    with tensorflow.GradientTape() as tape:
        loss = keras.ops.sum(layer(x, training=True))
    return tape.gradient(loss, weights)
"""


@pytest.mark.exhaustive
@pytest.mark.skipif(BACKEND != "tensorflow", reason="others know the length")
def test_an_unknown_number_of_steps_is_recomputed_too(megabytes):
    few, many = (
        f"step(numpy.zeros((16, {n}, 1), 'float32'))" for n in (4, 20_000)
    )
    assert megabytes(SETUP, few, many) < 60  # all hidden states have 82 MB


@pytest.mark.parametrize(
    "activation, bad, compiled",
    table(["linear", "relu", "leaky_relu", "elu"], [np.nan, np.inf], COMPILED),
)
def test_nan_and_infinity_reach_the_output(activation, bad, compiled):
    layer = new_rin(
        units=3, features=3, activation=activation, return_sequences=1
    )
    arguments = [to_numpy(argument) for argument in drawn(layer)]
    arguments[0] = np.array(arguments[0])
    arguments[0][1, 2, 1] = bad
    arguments[2:4] = np.eye(3), np.zeros((3, 3))
    tensors = [ops.convert_to_tensor(argument) for argument in arguments]
    (states,), _ = outputs_and_gradients(
        squared(lambda *a: run(layer, *a)), tensors, compiled
    )
    states = to_numpy(states)
    assert not np.isfinite(states[1, 2:, 1]).any()
    assert np.isfinite(states[[0, 2]]).all()


TOLERANCES = {"float32": 1e-5, "mixed_float16": 2e-2, "mixed_bfloat16": 1e-1}


@pytest.mark.parametrize("dtype, compiled", table(TOLERANCES, COMPILED))
def test_it_computes_in_the_dtype_of_the_policy(dtype, compiled):
    layer = new_rin(activation="tanh", dtype=dtype, return_sequences=True)
    arguments = drawn(layer)
    (states,), _ = outputs_and_gradients(
        squared(lambda x, h: layer(x, initial_state=h, training=True)),
        arguments[:2],
        compiled,
    )
    assert layer.dtype_policy.name == layer.cell.dtype_policy.name == dtype
    computed = keras.backend.standardize_dtype(states.dtype)
    assert computed == layer.compute_dtype
    x, h, *weights = (to_numpy(ops.cast(a, "float32")) for a in arguments)
    expected = references.numpy_rin(x, weights, "tanh", h)
    assert_same(ops.cast(states, "float32"), expected, 0, TOLERANCES[dtype])


@pytest.mark.skipif(BACKEND != "jax", reason="only JAX takes several steps")
@pytest.mark.parametrize("time", [5, 19])  # 0 and 2 iterations, and a rest
def test_steps_taken_at_once_on_a_gpu_are_those_of_the_loop(monkeypatch, time):
    import jax

    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    layer = new_rin(activation="sigmoid", return_sequences=True)
    assert_is_simple_rnn(layer, time, **masked("alternating", time))


@pytest.mark.skipif(BACKEND != "torch", reason="only Torch calls cuDNN")
@pytest.mark.parametrize(
    "activation, mask, calls",
    [("relu", "none", 1), ("tanh", "none", 1), ("relu", "rows", 0)],
)
@pytest.mark.parametrize("return_sequences", [False, True])
def test_on_a_gpu_torch_runs_its_own_loop(
    monkeypatch, activation, mask, calls, return_sequences
):
    """Here the same call runs on the CPU."""
    import torch

    names, loop = [], getattr(torch, f"rnn_{activation}")

    def recorded(*arguments, **options):
        names.append(activation)
        return loop(*arguments, **options)

    monkeypatch.setattr(torch, f"rnn_{activation}", recorded)
    monkeypatch.setattr(fused, "runs_cudnn", lambda x: True)
    layer = new_rin(activation=activation, return_sequences=return_sequences)
    assert_is_simple_rnn(layer, **masked(mask))
    assert names == [activation] * calls


def second_derivative(loss, arguments, by):
    """Of the summed gradient by the inputs, by another argument."""
    if BACKEND == "jax":
        import jax

        slope = jax.grad(loss)
        return jax.grad(lambda *a: slope(*a).sum(), by)(*arguments)
    if BACKEND == "torch":
        import torch

        arguments = [a.detach().requires_grad_() for a in arguments]
        value = loss(*arguments)
        (slope,) = torch.autograd.grad(value, arguments[0], create_graph=True)
        return torch.autograd.grad(slope.sum(), arguments[by])
    import tensorflow as tf

    with tf.GradientTape() as outer, tf.GradientTape() as inner:
        outer.watch(arguments)
        inner.watch(arguments)
        slope = inner.gradient(loss(*arguments), arguments[0])
    return outer.gradient(slope, arguments[by])


@pytest.mark.parametrize(
    "by, power, compiled", table(range(5), [1, 2], COMPILED)
)
def test_second_derivatives_are_refused(by, power, compiled):
    layer = new_rin(return_sequences=True)
    derivative = second_derivative
    if compiled:
        import tensorflow as tf

        derivative = tf.function(second_derivative, autograph=False)
    error = LookupError if BACKEND == "tensorflow" else NotImplementedError
    with pytest.raises(error, match="first derivatives by backprop"):
        derivative(
            lambda *a: ops.sum(run(layer, *a) ** power), drawn(layer), by
        )


@pytest.mark.skipif(BACKEND == "torch", reason="has no forward mode here")
def test_forward_mode_is_refused():
    layer = new_rin()
    x, *others = drawn(layer)
    if BACKEND == "jax":
        import jax

        with pytest.raises(NotImplementedError, match="`fused=False`"):
            jax.jvp(lambda x: run(layer, x, *others), [x], [x])
        return
    import tensorflow as tf

    with pytest.raises(LookupError, match="`fused=False`"):
        with tf.autodiff.ForwardAccumulator(x, x) as accumulator:
            accumulator.jvp(run(layer, x, *others))


class Halving(RINCell):
    def call(self, inputs, states, training=False):
        output, states = super().call(inputs, states, training)
        return output / 2, [state / 2 for state in states]


@pytest.mark.parametrize(
    "activation", ["relu", Power(2), lambda z: ops.sin(z)], ids=type
)
def test_what_cannot_be_fused_runs_in_the_loop_of_keras(rng, activation):
    layer = RIN(3, activation)
    layer.cell = Halving(3) if activation == "relu" else layer.cell
    x = 0.1 * rng.normal(size=(2, 5, 4)).astype("float32")
    expected = keras.layers.RNN(layer.cell)(x)
    assert_same(layer(x, training=True), expected)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"activation": "softplus"}, "support.* activation='softplus'"),
        ({"unroll": True}, "does not support unroll=True"),
        (
            {"recompute": True, "fused": False},
            "`recompute=True` .* fused=False",
        ),
        ({"recurrent_dropout": 0.1}, "support recurrent_dropout=0.1"),
        *[
            ({"fused": value}, '`fused` must be "auto", True or False')
            for value in ("yes", None, 1)
        ],
    ],
)
def test_options_that_cannot_be_fused_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        RIN(3, **{"fused": True, **options})
