"""The fused recurrence of RIN against NumPy, Keras's loop and differences."""

import dataclasses

import keras
import numpy as np
import pytest
import references
from cases import first_of
from cases import table
from keras import ops
from references import MASKS
from references import assert_same
from references import to_numpy

from keras_rin.layers import RIN
from keras_rin.layers import RINCell

BACKEND = keras.backend.backend()
ACTIVATIONS = [*references.ACTIVATIONS]
if BACKEND == "jax":
    ACTIVATIONS.remove("tanh")  # Keras makes it float32 of float64 there
COMPILED = [False, True] if BACKEND == "tensorflow" else [False]
TIMES = [7, 40, 48]  # in one, two and three pieces


def made(units=5, features=2, fused=True, dtype="float64", **options):
    """A layer with random weights, which keep its states small."""
    rng, identity = np.random.default_rng(0), np.eye(units)
    layer = RIN(units, fused=fused, dtype=dtype, **options)
    layer.build((None, None, features))
    kernel, _, *bias = layer.get_weights()
    offset = 0.2 * rng.normal(size=(units, units)) - 0.6 * identity
    others = [rng.normal(size=weight.shape) for weight in (kernel, *bias)]
    layer.set_weights([others[0], offset, *others[1:]])
    return layer


def drawn(layer, time=7, batch=3, seed=0):
    """Inputs, initial state, and the weights of a layer."""
    rng = np.random.default_rng(seed)
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


def gradients(loss, arguments, compiled=False):
    """The gradients by all arguments; in a graph RIN compiles its loops."""
    if BACKEND == "tensorflow":
        import tensorflow as tf

        def by_tape(*arguments):
            with tf.GradientTape() as tape:
                tape.watch(arguments)
                value = loss(*arguments)
            return tape.gradient(value, arguments)

        by_tape = tf.function(by_tape, autograph=False) if compiled else by_tape
        return by_tape(*arguments)
    if BACKEND == "jax":
        import jax

        return jax.jit(jax.grad(loss, range(len(arguments))))(*arguments)
    leaves = [tensor.detach().requires_grad_() for tensor in arguments]
    loss(*leaves).backward()
    return [leaf.grad for leaf in leaves]


def assert_same_gradients(layers, time, batch=3, compiled=False, **kwargs):
    """The gradients of a weighted sum of outputs, by all that it reads."""
    actual, expected = (
        gradients(
            lambda *a, layer=layer: ops.sum(run(layer, *a, **kwargs) ** 2),
            drawn(layer, time, batch),
            compiled and layer is layers[0],
        )
        for layer in layers
    )
    tolerance = 1e-5 if BACKEND == "torch" else 1e-9  # float32 products there
    for gradient, reference in zip(actual, expected, strict=True):
        scale = max(1.0, np.abs(to_numpy(reference)).max())
        assert_same(gradient, reference, tolerance, tolerance * scale)


def states_in_float64(arguments, activation, mask=None):
    x, h, *weights = (np.asarray(to_numpy(a), "float64") for a in arguments)
    mask = to_numpy(mask) if mask is not None else None
    return references.numpy_rin(x, weights, activation, h, mask)


def in_graph(function, compiled):
    """A function where TensorFlow compiles: in a graph, under a tape."""
    if not compiled:
        return function
    import tensorflow as tf

    @tf.function(autograph=False)
    def traced(*arguments):
        with tf.GradientTape() as tape:
            tape.watch(arguments)
            return function(*arguments)

    return traced


@pytest.mark.parametrize(
    "activation, mask, time, compiled",
    table(ACTIVATIONS, MASKS, TIMES, COMPILED),
)
def test_states_are_those_of_numpy(activation, mask, time, compiled):
    layer = made(activation=activation, return_sequences=True)
    arguments, kwargs = drawn(layer, time), masked(mask, time)
    states = in_graph(lambda *a: run(layer, *a, **kwargs), compiled)(*arguments)
    expected = states_in_float64(arguments, activation, **kwargs)
    # Before the first step that is not masked, Keras returns zeros.
    steps = MASKS[mask](time, 3)
    seen = np.cumsum(np.ones((time, 3)) if steps is None else steps, 0).T > 0
    states, expected = to_numpy(states)[seen], expected[seen]
    # TensorFlow and NumPy round the slope of leaky_relu to float32.
    assert_same(states, expected, 1e-6, 1e-7)


@pytest.mark.parametrize(
    "activation, mask, time, return_sequences, compiled",
    table(ACTIVATIONS, MASKS, TIMES, [True, False], COMPILED),
)
def test_gradients_are_those_of_the_loop_of_keras(
    activation, mask, time, return_sequences, compiled
):
    options = {"activation": activation, "return_sequences": return_sequences}
    layers = [made(fused=fused, **options) for fused in (True, False)]
    kwargs = masked(mask, time)
    assert_same_gradients(layers, time, compiled=compiled, **kwargs)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_gradients_are_finite_differences(activation):
    layer = made(activation=activation, return_sequences=True)
    arguments = drawn(layer)
    rng = np.random.default_rng(4)
    directions = [rng.normal(size=argument.shape) for argument in arguments]

    def along(epsilon):
        moved = [
            to_numpy(argument) + epsilon * direction
            for argument, direction in zip(arguments, directions, strict=True)
        ]
        return np.sum(states_in_float64(moved, activation) ** 2)

    slope = sum(
        np.sum(to_numpy(gradient) * direction)
        for gradient, direction in zip(
            gradients(lambda *a: ops.sum(run(layer, *a) ** 2), arguments),
            directions,
            strict=True,
        )
    )
    assert_same(slope, (along(1e-6) - along(-1e-6)) / 2e-6, 1e-6, 1e-6)


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
}


@pytest.mark.parametrize(
    "option, mask, training", table(OPTIONS, MASKS, [True, False])
)
def test_every_option_acts_as_in_the_loop_of_keras(option, mask, training):
    layers = [made(fused=fused, **OPTIONS[option]) for fused in (True, False)]
    kwargs = {"training": training, **masked(mask)}
    outputs, expected = (
        run(layer, *drawn(layer), **kwargs) for layer in layers
    )
    assert_same(outputs, expected)
    assert_same_gradients(layers, 7, **kwargs)


def test_the_returned_state_is_that_of_the_loop_of_keras():
    options = {"return_state": True, "return_sequences": True}
    layers = [made(fused=fused, **options) for fused in (True, False)]
    outputs, expected = (run(layer, *drawn(layer)) for layer in layers)
    assert_same(list(outputs), list(expected))


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_the_gradients_of_an_empty_batch_are_0(activation):
    layer = made(activation=activation)
    arguments = drawn(layer, batch=0)
    for gradient in gradients(lambda *a: ops.sum(run(layer, *a)), arguments):
        np.testing.assert_array_equal(to_numpy(gradient), 0 * gradient)


@pytest.mark.parametrize("time", first_of([(1,), (4096,)]))
def test_sequences_may_be_short_and_long(time):
    layer = made(units=3, activation="sigmoid", return_sequences=True)
    arguments = drawn(layer, time, batch=2)
    expected = states_in_float64(arguments, "sigmoid")
    assert_same(run(layer, *arguments), expected, 1e-9, 1e-9)


@pytest.mark.parametrize(
    "activation, bad, compiled",
    table(["linear", "relu", "leaky_relu", "elu"], [np.nan, np.inf], COMPILED),
)
def test_nan_and_infinity_reach_the_output(activation, bad, compiled):
    layer = made(units=3, features=3, activation=activation, return_sequences=1)
    arguments = [to_numpy(argument) for argument in drawn(layer)]
    arguments[0] = np.array(arguments[0])
    arguments[0][1, 2, 1] = bad
    arguments[2:4] = np.eye(3), np.zeros((3, 3))
    tensors = [ops.convert_to_tensor(argument) for argument in arguments]
    states = to_numpy(in_graph(lambda *a: run(layer, *a), compiled)(*tensors))
    assert not np.isfinite(states[1, 2:, 1]).any()
    assert np.isfinite(states[[0, 2]]).all()


@pytest.mark.parametrize("compiled", COMPILED)
@pytest.mark.parametrize(
    "dtype, tolerance",
    [
        ("float32", 1e-5),
        ("mixed_float16", 2e-2),
        ("mixed_bfloat16", 1e-1),
    ],
)
def test_it_computes_in_the_dtype_of_the_policy(dtype, tolerance, compiled):
    layer = made(activation="tanh", dtype=dtype, return_sequences=True)
    arguments = drawn(layer)
    states = in_graph(
        lambda x, h: layer(x, initial_state=h, training=True), compiled
    )(*arguments[:2])
    assert layer.dtype_policy.name == layer.cell.dtype_policy.name == dtype
    computed = keras.backend.standardize_dtype(states.dtype)
    assert computed == layer.compute_dtype
    exact = [ops.cast(argument, "float32") for argument in arguments]
    expected = states_in_float64(exact, "tanh")
    assert_same(ops.cast(states, "float32"), expected, 0, tolerance)


@pytest.mark.skipif(BACKEND != "jax", reason="only JAX takes several steps")
@pytest.mark.parametrize("time", [5, 19])  # 0 and 2 iterations, and a rest
def test_steps_taken_at_once_on_a_gpu_are_those_of_the_loop(monkeypatch, time):
    import jax

    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    layers = [
        made(fused=fused, activation="sigmoid", return_sequences=True)
        for fused in (True, False)
    ]
    assert_same_gradients(layers, time, **masked("alternating", time))


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
    layer = made(return_sequences=True)
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
    layer = made()
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


@dataclasses.dataclass  # has no hash
class Power:
    exponent: int

    def __call__(self, z):
        return z**self.exponent


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
