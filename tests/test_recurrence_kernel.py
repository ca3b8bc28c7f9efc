"""The kernel of a GPU: its values by an interpreter, its place by lowering."""

import keras
import numpy as np
import pytest
from keras import ops
from references import MASKS
from references import assert_same
from references import simple_rnn_of

from keras_rin.initializers import Offset
from keras_rin.layers import RIN

jax = pytest.importorskip("jax")
pytestmark = pytest.mark.skipif(
    keras.backend.backend() != "jax", reason="a kernel of JAX"
)
SWITCH = "KERAS_RIN_GPU_KERNEL"
DRAWN = {"recurrent_initializer": Offset(keras.initializers.Orthogonal(0.7))}


def by_row(loss):
    rows = jax.vmap(lambda x, h, w: loss(x[None], h[None], w), (0, 0, None))
    return lambda *arguments: ops.mean(rows(*arguments))


def step_of(layer, inputs, mask=None, transform=jax.jit):
    """A function that returns a loss and all gradients, and its arguments."""

    def loss(x, h, weights):
        others = [v.value for v in layer.non_trainable_variables]
        options = {"initial_state": h, "mask": mask, "training": True}
        outputs, _ = layer.stateless_call(weights, others, x, **options)
        return ops.mean(outputs**2)

    step = jax.jit(jax.value_and_grad(transform(loss), argnums=range(3)))
    return step, (*inputs, [v.value for v in layer.trainable_variables])


def counts(step, arguments):
    """The calls of Triton in a program for CUDA, and its loops."""
    lowered = step.trace(*arguments).lower(lowering_platforms=("cuda",))
    return [lowered.as_text().count(n) for n in ("triton", "stablehlo.while")]


@pytest.mark.parametrize(
    "units, batch, time, mask, activation, transform",
    [
        (1, 1, 1, "none", "relu", jax.jit),
        (16, 16, 7, "leading", "tanh", jax.checkpoint),
        (17, 17, 20, "alternating", "relu", jax.jit),
        (100, 70, 30, "rows", "tanh", jax.jit),
        (128, 32, 5, "trailing", "linear", jax.jit),
        (3, 15, 300, "none", "linear", by_row),
    ],
)
def test_it_has_the_values_and_gradients_of_simple_rnn(
    rng, monkeypatch, units, batch, time, mask, activation, transform
):
    rin = RIN(units, activation, return_sequences=True, **DRAWN)
    rin.build((None, None, 3))
    inputs = rng.normal(size=(batch, time, 3)), rng.normal(size=(batch, units))
    inputs = [array.astype("float32") for array in inputs]
    mask = MASKS[mask](time, batch)
    mask = None if mask is None else mask.T
    monkeypatch.setenv(SWITCH, "1")
    calls, loops = counts(*step_of(rin, inputs, mask, transform))
    assert calls >= 2 and not loops
    monkeypatch.setenv(SWITCH, "interpret")
    actual = step_of(rin, inputs, mask, transform)
    expected = step_of(simple_rnn_of(rin), inputs, mask)
    results = [keras.tree.flatten(step(*a)) for step, a in (actual, expected)]
    for value, reference in zip(*results, strict=True):
        assert_same(value, reference, 0, 1e-4 * np.abs(reference).max())


def test_the_state_is_float32_where_inputs_are_bfloat16(monkeypatch):
    monkeypatch.setenv(SWITCH, "interpret")
    rin = RIN(1, recurrent_initializer="zeros", dtype="mixed_bfloat16")
    rin.build((None, None, 1))
    rin.cell.kernel.assign([[2.0**-10]])  # in bfloat16, 1 + 2**-10 is 1
    x = np.ones((1, 1024, 1), "float32")
    assert rin(x, initial_state=ops.ones((1, 1)), training=True) == 2


@pytest.mark.parametrize(
    "switch, units, options, expected",
    [
        ("1", 128, {}, [2, 0]),
        ("1", 256, {"dtype": "mixed_bfloat16"}, [2, 0]),
        ("1", 129, {}, [0, 4]),
        ("1", 2, {"activation": "elu"}, [0, 4]),
        ("1", 2, {"recompute": True}, [0, 5]),
        ("", 128, {}, [0, 4]),
    ],
)
def test_a_train_step_for_cuda_is_two_kernels_without_a_loop(
    monkeypatch, switch, units, options, expected
):
    monkeypatch.setenv(SWITCH, switch)
    model = keras.Sequential([keras.layers.Masking(), RIN(units, **options)])
    model.compile("sgd", "mse")
    data = np.zeros((32, 784, 1)), np.zeros((32, units))
    model.build(data[0].shape)
    model.optimizer.build(model.trainable_variables)
    groups = [model.trainable_variables, model.non_trainable_variables]
    groups += [model.optimizer.variables, model.metrics_variables]
    state = [[variable.value for variable in group] for group in groups]
    step = jax.jit(model.train_step)
    assert counts(step, (state, data)) == expected
    # JAX exports no kernel: a prediction has none, nor a program for a CPU.
    jax.export.export(step, platforms=["cpu"])(state, data)
    predict = jax.jit(lambda x: model(x))
    jax.export.export(predict, platforms=["cuda"])(data[0])
