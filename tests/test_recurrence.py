"""The fused loop against a float64 loop, autodiff and finite differences."""

import re

import keras
import numpy as np
import pytest
import references
import scripts
from cases import diagonal
from cases import first_of
from cases import table
from keras import ops
from references import MASKS
from references import assert_same
from references import to_numpy

from keras_rin import _recurrence
from keras_rin._recurrence import PULLBACKS
from keras_rin._recurrence import identity_recurrence

BACKEND = keras.backend.backend()
PHIS = {phi.__name__: phi for phi in PULLBACKS}
if BACKEND == "jax":
    del PHIS["tanh"]  # Keras makes it float32 of float64 there
COMPILED = [False, True] if BACKEND == "tensorflow" else [False]
CASES = table(PHIS, MASKS, [False])
if BACKEND == "tensorflow":  # XLA compiles the operations tried without it
    CASES += first_of(diagonal(PHIS, MASKS, [True]))


def case(time=7, batch=3, units=5, dtype="float64", seed=0):
    rng = np.random.default_rng(seed)
    sizes = (time, batch, units), (batch, units), (units, units)
    return [(0.5 * rng.normal(size=size)).astype(dtype) for size in sizes]


def tensor(array):
    return None if array is None else ops.convert_to_tensor(array)


def step_by_step(z, h, u, name, mask=None):
    """The witness: with z as the input, W = I and b = 0."""
    weights = np.eye(len(u)), u, np.zeros(len(u))
    mask = None if mask is None else mask.T
    states = references.numpy_rin(
        z.swapaxes(0, 1), weights, name, h.astype("float64"), mask
    )
    return states.swapaxes(0, 1)


def traced(function, compiled=False):
    """In a graph, because an eager TensorFlow compiles nothing."""
    if not compiled:
        return function
    import tensorflow as tf

    return tf.function(function, autograph=False)


def of_projected(z, h, u, phi, mask=None, return_sequences=True, **kwargs):
    """The recurrence of z itself, time first: with W = I and b = 0."""
    eye, zero = ops.eye(u.shape[0], dtype=z.dtype), ops.zeros_like(u[0])
    mask = None if mask is None else ops.transpose(mask)
    x = ops.swapaxes(z, 0, 1)
    states = traced(
        lambda *args: identity_recurrence(
            *args, phi, mask, return_sequences, **kwargs
        ),
        **kwargs,
    )(x, eye, zero, h, u)
    return ops.swapaxes(states, 0, 1) if return_sequences else states


def run(args, name, mask=None, **kwargs):
    tensors = [tensor(array) for array in args]
    return to_numpy(of_projected(*tensors, PHIS[name], tensor(mask), **kwargs))


def by_autodiff(z, h, u, phi, mask):
    states = []
    for t in range(z.shape[0]):
        new = phi(z[t] + h + h @ u)
        h = new if mask is None else ops.where(mask[t][:, None], new, h)
        states.append(h)
    return ops.stack(states)


def gradients(loss, args, unrolled=False):
    """JAX takes longer to compile an unrolled loop than to go through it."""
    tensors = [tensor(array) for array in args]
    if BACKEND == "tensorflow":
        import tensorflow as tf

        with tf.GradientTape() as tape:
            tape.watch(tensors)
            value = loss(*tensors)
        return [to_numpy(g) for g in tape.gradient(value, tensors)]
    if BACKEND == "jax":
        import jax

        slopes = jax.grad(loss, argnums=range(len(args)))
        return (slopes if unrolled else jax.jit(slopes))(*tensors)
    leaves = [t.detach().requires_grad_() for t in tensors]
    loss(*leaves).backward()
    return [leaf.grad.numpy() for leaf in leaves]


def assert_same_gradients(fused, plain, args, *tolerances):
    """Those of the fused loop and those of autodiff through a plain one."""
    for actual, reference in zip(
        gradients(fused, args),
        gradients(plain, args, unrolled=True),
        strict=True,
    ):
        assert_same(actual, reference, *tolerances)


@pytest.mark.parametrize("name, mask, compiled", CASES)
def test_states_are_those_of_the_float64_loop(name, mask, compiled):
    args, mask = case(), MASKS[mask](7, 3)
    expected = step_by_step(*args, name, mask)
    # TensorFlow and NumPy round the slope of leaky_relu to float32.
    assert_same(run(args, name, mask, compiled=compiled), expected, 1e-6, 1e-8)


@pytest.mark.parametrize("return_sequences", [False, True])
@pytest.mark.parametrize("name, mask, compiled", CASES)
def test_gradients_are_those_of_autodiff(
    name, mask, compiled, return_sequences
):
    phi, mask = PHIS[name], tensor(MASKS[mask](7, 3))
    weight = tensor(case(seed=1)[0])

    def fused(*args):
        states = of_projected(
            *args, phi, mask, return_sequences, compiled=compiled
        )
        return ops.sum(states * (weight if return_sequences else weight[-1]))

    def plain(*args):
        states = by_autodiff(*args, phi, mask) * weight
        return ops.sum(states if return_sequences else states[-1])

    assert_same_gradients(fused, plain, case(), 1e-12, 1e-12)


@pytest.mark.parametrize("name", PHIS)
def test_of_an_empty_batch_the_gradients_are_0(name):
    args = case(batch=0)
    all_gradients = gradients(
        lambda *a: ops.sum(of_projected(*a, PHIS[name])), args
    )
    for gradient, arg in zip(all_gradients, args, strict=True):
        np.testing.assert_array_equal(gradient, np.zeros_like(arg))


@pytest.mark.parametrize("name", PHIS)
def test_gradients_are_finite_differences(name):
    args, direction = case(seed=3), case(seed=4)

    def loss(*args):
        return np.sum(step_by_step(*args, name) ** 2)

    def along(epsilon):
        return loss(
            *(a + epsilon * d for a, d in zip(args, direction, strict=True))
        )

    all_gradients = gradients(
        lambda *args: ops.sum(of_projected(*args, PHIS[name]) ** 2), args
    )
    slope = sum(
        np.sum(to_numpy(g) * d)
        for g, d in zip(all_gradients, direction, strict=True)
    )
    assert_same(slope, (along(1e-6) - along(-1e-6)) / 2e-6, 1e-6, 1e-6)


@pytest.mark.parametrize(
    "time, compiled",
    first_of([(1, False), *((4096, compiled) for compiled in COMPILED)]),
)
def test_sequences_may_be_short_and_long(time, compiled):
    args = case(time=time, batch=2, units=3)
    args[2] -= 0.6 * np.eye(3)
    expected = step_by_step(*args, "sigmoid")
    assert_same(run(args, "sigmoid", compiled=compiled), expected, 1e-9, 1e-9)


@pytest.mark.parametrize(
    "name, bad, compiled",
    table(["linear", "relu", "leaky_relu", "elu"], [np.nan, np.inf], COMPILED),
)
def test_nan_and_infinity_reach_the_output(name, bad, compiled):
    z, h, u = case(dtype="float32")
    z[2, 1, 3] = bad
    states = run((z, h, 0 * u), name, compiled=compiled)
    assert not np.isfinite(states[2:, 1, 3]).any()
    assert np.isfinite(states[:, [0, 2]]).all()


@pytest.mark.parametrize("compiled", COMPILED)
@pytest.mark.parametrize(
    "dtype, tolerance",
    [("float32", 1e-5), ("float16", 2e-2), ("bfloat16", 1e-1)],
)
def test_it_computes_in_the_dtype_it_gets(dtype, tolerance, compiled):
    args = [ops.cast(tensor(array), dtype) for array in case()]
    states = of_projected(*args, keras.activations.tanh, compiled=compiled)
    exact = [to_numpy(ops.cast(array, "float32")) for array in args]
    assert keras.backend.standardize_dtype(states.dtype) == dtype
    expected = step_by_step(*exact, "tanh")
    assert_same(ops.cast(states, "float32"), expected, 0, tolerance)


# 5, 4 and 1 pieces
@pytest.mark.parametrize("time, compiled", table([10, 8, 7], COMPILED))
@pytest.mark.parametrize(
    "mask, return_sequences", diagonal(["none", "alternating"], [True, False])
)
def test_pieces_make_the_whole(
    monkeypatch, time, mask, return_sequences, compiled
):
    monkeypatch.setattr(_recurrence, "FEWEST_STEPS", 2)
    phi, mask = keras.activations.sigmoid, tensor(MASKS[mask](time, 3))

    def fused(*args):
        states = of_projected(
            *args, phi, mask, return_sequences, compiled=compiled
        )
        return ops.sum(states**2)

    def plain(*args):
        states = by_autodiff(*args, phi, mask)
        return ops.sum((states if return_sequences else states[-1]) ** 2)

    args = case(time=time)
    args[2] -= 0.6 * np.eye(5)
    assert_same_gradients(fused, plain, args, 1e-6, 1e-8)


@pytest.mark.skipif(BACKEND != "jax", reason="only JAX takes several steps")
@pytest.mark.parametrize("time", [5, 19])  # 0 and 2 iterations, and a rest
def test_steps_taken_at_once_on_a_gpu_are_those_of_the_loop(monkeypatch, time):
    import jax

    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    mask = tensor(MASKS["alternating"](time, 3))

    def fused(*args):
        states = of_projected(*args, keras.activations.sigmoid, mask)
        return ops.sum(states**2)

    def plain(*args):
        states = by_autodiff(*args, keras.activations.sigmoid, mask)
        return ops.sum(states**2)

    args = case(time=time)
    args[2] -= 0.6 * np.eye(5)
    assert_same_gradients(fused, plain, args, 1e-6, 1e-8)


def second_derivative(loss, args, by):
    """Of the summed gradient by the first argument, by another."""
    if BACKEND == "jax":
        import jax

        slope = jax.grad(loss)
        return jax.grad(lambda *args: slope(*args).sum(), by)(*args)
    if BACKEND == "torch":
        import torch

        args = [arg.requires_grad_() for arg in args]
        (slope,) = torch.autograd.grad(loss(*args), args[0], create_graph=True)
        return torch.autograd.grad(slope.sum(), args[by])
    import tensorflow as tf

    with tf.GradientTape() as outer, tf.GradientTape() as inner:
        outer.watch(args)
        inner.watch(args)
        slope = inner.gradient(loss(*args), args[0])
    return outer.gradient(slope, args[by])


@pytest.mark.parametrize(
    "by, power, compiled", table(range(5), [1, 2], COMPILED)
)
def test_second_derivatives_are_refused(rng, by, power, compiled):
    shapes = (3, 7, 2), (2, 5), (5,), (3, 5), (5, 5)
    args = [tensor(rng.normal(size=shape)) for shape in shapes]

    def loss(*args):
        states = identity_recurrence(
            *args, keras.activations.relu, compiled=compiled
        )
        return ops.sum(states**power)

    error = LookupError if BACKEND == "tensorflow" else NotImplementedError
    with pytest.raises(error, match="first derivatives by backprop"):
        traced(second_derivative, compiled)(loss, args, by)


@pytest.mark.skipif(BACKEND == "torch", reason="has no forward mode here")
def test_forward_mode_is_refused(rng):
    shapes = (3, 7, 2), (2, 5), (5,), (3, 5), (5, 5)
    args = [tensor(rng.normal(size=shape)) for shape in shapes]

    def states(kernel):
        x, _, *others = args
        return identity_recurrence(x, kernel, *others, keras.activations.relu)

    if BACKEND == "jax":
        import jax

        with pytest.raises(NotImplementedError, match="`fused=False`"):
            jax.jvp(states, args[1:2], args[1:2])
        return
    import tensorflow as tf

    with pytest.raises(LookupError, match="`fused=False`"):
        with tf.autodiff.ForwardAccumulator(args[1], args[1]) as accumulator:
            accumulator.jvp(states(args[1]))


@pytest.mark.skipif(
    BACKEND != "tensorflow", reason="reads what XLA compiles for TensorFlow"
)
@pytest.mark.parametrize(
    "masked, pieces", first_of([(True, 2), (True, 1), (False, 2)])
)
def test_nothing_is_hidden_from_the_compiler(monkeypatch, masked, pieces):
    import tensorflow as tf

    monkeypatch.setattr(_recurrence, "MOST_PIECES", pieces)
    args = [tf.constant(array, "float32") for array in case(time=50)]
    mask = tf.constant(MASKS["leading"](50, 3)) if masked else None

    @tf.function(jit_compile=True)
    def training_step(*args):
        with tf.GradientTape() as tape:
            tape.watch(args)
            states = of_projected(
                *args, keras.activations.relu, mask, compiled=True
            )
        return tape.gradient(states, args)

    listing = training_step.experimental_get_compiler_ir(*args)
    hlo = listing(stage="optimized_hlo")
    loops = re.findall(r" while\(.*", hlo)
    trips = re.findall(r'known_trip_count":{"n":"(\d+)"}', "".join(loops))
    each_way = [50 // pieces] if pieces == 1 else [50 // pieces, pieces]
    assert sorted(map(int, trips)) == sorted(2 * each_way)
    assert len(loops) == len(trips)
    for copy_to_host in ("outfeed", "infeed", "send(", "recv("):
        assert copy_to_host not in hlo


COUNT_COMPILATIONS = """
import pathlib, sys
import keras, numpy
from keras_rin.layers import RIN

model = keras.Sequential([RIN(4), keras.layers.Dense(1)])
model.compile("sgd", "mse")
for way in ("fit", "train_on_batch", "call"):
    for time in (8, 8, 16, 12, 20, 8, 10):
        x, y = numpy.ones((3, time, 2)), numpy.ones((3, 1))
        if way == "fit":
            model.fit(x, y, verbose=0)
        elif way == "train_on_batch":
            model.train_on_batch(x, y)
        else:
            model(x, training=True)
        dumped = pathlib.Path(sys.argv[1]).glob("*after_optimizations.txt")
        print("compiled:", len(list(dumped)))
"""


@pytest.mark.exhaustive
@pytest.mark.skipif(BACKEND != "tensorflow", reason="reads what XLA dumps")
def test_lengths_that_vary_are_not_compiled_one_by_one(tmp_path):
    program = tmp_path / "count.py"
    program.write_text(COUNT_COMPILATIONS)
    flags = f"--xla_dump_to={tmp_path}"
    finished = scripts.Running(
        str(program), str(tmp_path), XLA_FLAGS=flags
    ).end()
    assert finished.returncode == 0, finished.stderr
    counts = [int(n) for n in re.findall(r"compiled: (\d+)", finished.stdout)]
    # The first length, forward and backward; Keras then leaves it undefined.
    assert counts == [2] * 21
