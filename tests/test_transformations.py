"""A RIN inside the transformations of TensorFlow, JAX and Keras.

The reference is the SimpleRNN with V = U + I, differentiated plainly.
"""

import tempfile

import keras
import numpy as np
import pytest
from keras import ops
from references import MASKS
from references import assert_same
from references import simple_rnn_of
from references import to_numpy

from keras_rin import layers

BACKEND = keras.backend.backend()
if BACKEND == "tensorflow":
    import tensorflow as tf
elif BACKEND == "jax":
    import jax
else:
    import torch.utils.checkpoint


def loss(layer, x, mask=None):
    return ops.sum(layer(x, mask=mask, training=True) ** 2)


def in_cond(layer, x, mask):
    return ops.cond(
        ops.sum(x) < 1e9,
        lambda: loss(layer, x, mask),
        lambda: loss(layer, 2 * x, mask),
    )


def recomputed(layer, x, mask):
    return keras.remat(lambda x: loss(layer, x, mask))(x)


def by_row(map_function):
    """The loss as a sum over sequences, each in a transformation."""

    def summed(layer, x, mask):
        rows = (x,) if mask is None else (x, mask)
        return ops.sum(
            map_function(
                lambda row: loss(layer, *(part[None] for part in row)), rows
            )
        )

    return summed


class TensorFlow:
    """Each method returns a loss and its gradients by x and the weights."""

    def eager(layer, x, mask, value=loss):
        x = tf.convert_to_tensor(x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            total = value(layer, x, mask)
        return total, *tape.gradient(total, [x, *layer.trainable_weights])

    def function(layer, x, mask, value=loss, derive=eager, **kwargs):
        arguments = [x] if mask is None else [x, mask]
        step = tf.function(
            lambda x, mask=None: derive(layer, x, mask, value), **kwargs
        )
        return step(*map(tf.constant, arguments))

    def unknown_length(layer, x, mask, axes=2):
        signature = [
            tf.TensorSpec((*[None] * axes, *array.shape[axes:]), array.dtype)
            for array in (x, mask)
            if array is not None
        ]
        return TensorFlow.function(layer, x, mask, input_signature=signature)

    def unknown_batch_size(layer, x, mask):
        return TensorFlow.unknown_length(layer, x, mask, axes=1)

    def unknown_batch_size_of_the_mask(layer, x, mask):
        def value(layer, x, mask):
            return loss(layer, x, tf.boolean_mask(mask, [True] * len(x)))

        return TensorFlow.function(layer, x, mask, value)

    def cond(layer, x, mask):
        return TensorFlow.function(layer, x, mask, in_cond)

    def while_loop(layer, x, mask):
        def value(layer, x, mask):
            return tf.while_loop(
                lambda n, total: n < 2,
                lambda n, total: (n + 1, loss(layer, x + total, mask)),
                (0, 0.0),
                maximum_iterations=2,
            )[1]

        return TensorFlow.function(layer, 0.1 * x, mask, value)

    def map_fn(layer, x, mask):
        def map_function(function, rows):
            return tf.map_fn(function, rows, fn_output_signature="float32")

        return TensorFlow.function(layer, x, mask, by_row(map_function))

    def jacobian(layer, x, mask):
        def derive(layer, x, mask, value):
            with tf.GradientTape() as tape:
                tape.watch(x)
                outputs = layer(x, mask=mask, training=True)
            sources = [x, *layer.trainable_weights]
            return outputs, *tape.jacobian(outputs, sources)

        return TensorFlow.function(layer, x, mask, derive=derive)

    def saved_model(layer, x, mask):
        module = tf.Module()
        module.weights = [variable.value for variable in layer.variables]
        module.step = tf.function(
            lambda x: TensorFlow.eager(layer, x, mask),
            input_signature=[tf.TensorSpec(x.shape, x.dtype)],
        )
        with tempfile.TemporaryDirectory() as folder:
            tf.saved_model.save(module, folder)
            restored = tf.saved_model.load(folder)
            return restored.step(tf.constant(x))

    def xla(layer, x, mask):
        return TensorFlow.function(layer, x, mask, jit_compile=True)

    def recomputation(layer, x, mask):
        return TensorFlow.function(layer, x, mask, recomputed)


class JAX:
    """Each method returns a loss and its gradients by x and the weights."""

    def grad(layer, x, mask, value=loss, inner=None, outer=None):
        variables = layer.trainable_variables

        def total(x, weights, mask):
            pairs = zip(variables, weights, strict=True)
            with keras.StatelessScope(state_mapping=pairs):
                return value(layer, x, mask)

        weights = [variable.value for variable in variables]
        total = inner(total) if inner else total
        derivative = jax.value_and_grad(total, (0, 1))
        derivative = outer(derivative) if outer else derivative
        total, (by_x, by_weights) = derivative(x, weights, mask)
        return total, by_x, *by_weights

    def jit(layer, x, mask, value=loss):
        return JAX.grad(layer, x, mask, value, outer=jax.jit)

    def vmap(layer, x, mask):
        value = by_row(lambda function, rows: jax.vmap(function)(rows))
        return JAX.grad(layer, x, mask, value)

    def scan(layer, x, mask):
        def map_function(function, rows):
            return jax.lax.scan(lambda c, row: (c, function(row)), 0, rows)[1]

        return JAX.grad(layer, x, mask, by_row(map_function))

    def cond(layer, x, mask):
        return JAX.jit(layer, x, mask, in_cond)

    def leak_checks(layer, x, mask):
        with jax.check_tracer_leaks():
            return JAX.jit(layer, x, mask)

    def export(layer, x, mask):
        def outer(function):
            def call(*arguments):
                program = jax.export.export(jax.jit(function))(*arguments)
                return jax.export.deserialize(program.serialize()).call(
                    *arguments
                )

            return call

        return JAX.grad(layer, x, mask, outer=outer)

    def recomputation(layer, x, mask):
        return JAX.jit(layer, x, mask, recomputed)


class Torch:
    """Each method returns a loss and its gradients by x and the weights."""

    def eager(layer, x, mask, value=loss):
        x = ops.convert_to_tensor(x).requires_grad_()
        total = value(layer, x, mask)
        weights = [variable.value for variable in layer.trainable_variables]
        return total, *torch.autograd.grad(total, [x, *weights])

    def cond(layer, x, mask):
        return Torch.eager(layer, x, mask, in_cond)

    def checkpoint(layer, x, mask):
        def value(layer, x, mask):
            return torch.utils.checkpoint.checkpoint(
                lambda x: loss(layer, x, mask), x, use_reentrant=False
            )

        return Torch.eager(layer, x, mask, value)


BACKENDS = {"tensorflow": TensorFlow, "jax": JAX, "torch": Torch}
TRANSFORMATIONS = {
    name: function
    for name, function in vars(BACKENDS[BACKEND]).items()
    if not name.startswith("_")
}


# What they compute is not the loss, so the SimpleRNN is transformed as well.
OF_OTHER_VALUES = {"while_loop", "jacobian"}
PLAIN = next(iter(TRANSFORMATIONS))


# Which TensorFlow takes seconds to trace.
SLOW = {"jacobian", "saved_model", "while_loop"}
RECOMPUTED = {"unknown_length", "map_fn", "vmap", "jit"} & {*TRANSFORMATIONS}


@pytest.mark.parametrize(
    "transform, recompute",
    [
        *(
            (transform, False)
            for transform in TRANSFORMATIONS
            if transform not in SLOW
        ),
        *((transform, True) for transform in sorted(RECOMPUTED)),
        *(
            pytest.param(transform, False, marks=pytest.mark.exhaustive)
            for transform in sorted(SLOW & {*TRANSFORMATIONS})
        ),
    ],
)
def test_a_rin_is_the_simple_rnn_in_every_transformation(
    rng, transform, recompute
):
    # With "relu" these weights would hide a U transposed by mistake.
    layer = layers.RIN(
        3, "tanh", fused=True, return_sequences=True, recompute=recompute
    )
    layer.build((None, None, 2))
    weights = layer.get_weights()
    layer.set_weights([0.2 * rng.normal(size=w.shape) for w in weights])
    x = rng.normal(size=(3, 7, 2)).astype("float32")
    mask = MASKS["alternating"](7, 3).T
    actual = TRANSFORMATIONS[transform](layer, x, mask)
    reference = transform if transform in OF_OTHER_VALUES else PLAIN
    expected = TRANSFORMATIONS[reference](simple_rnn_of(layer), x, mask)
    for value, reference in zip(actual, expected, strict=True):
        scale = np.abs(to_numpy(reference)).max(initial=1.0)
        assert_same(value, reference, 0, 1e-4 * scale)


@pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="others know all sizes"
)
@pytest.mark.parametrize(
    "make, rank",
    [
        (lambda: layers.RIN(4), 3),
        (lambda: layers.NoisyRNN(layers.RINCell(4), stddev=0.0), 3),
        (lambda: layers.ResidualConv2D(4), 4),
    ],
)
def test_a_pipeline_need_not_know_the_number_of_features(rng, make, rank):
    import tensorflow as tf

    layer = make()
    x = tf.constant(rng.normal(size=(2, 6, 4, 3)[-rank:]), "float32")

    def gradients(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(layer(x, training=True) ** 2)
        return tape.gradient(loss, layer.trainable_weights)

    expected = gradients(x)
    unknown = [tf.TensorSpec([None] * rank)]
    assert_same(tf.function(gradients, unknown)(x), expected)
