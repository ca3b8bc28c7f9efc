import functools
import inspect

import keras
import numpy as np
import pytest
import references
from cases import first_of
from cases import one_backend_after
from references import assert_same
from references import to_numpy

from keras_rin.initializers import SmallVarianceNormal
from keras_rin.layers import LinearResidual
from keras_rin.layers import ResidualConv2D
from keras_rin.layers import ResidualDense
from keras_rin.layers import ResidualDenseStack

LAYERS = {
    "dense": (ResidualDense, (None, 4)),
    "stack": (functools.partial(ResidualDenseStack, depth=3), (None, 4)),
    "conv": (ResidualConv2D, (None, 4, 4, 4)),
}


@pytest.fixture(params=LAYERS)
def case(request):
    return LAYERS[request.param]


@pytest.mark.one_backend
def test_weights_stand_in_the_order_promised(case):
    layer_class, shape = case
    layer = layer_class(4)
    layer.build(shape)
    names = [weight.name for weight in layer.weights]
    assert names == ["kernel", "output_kernel", "bias"]


@pytest.mark.parametrize("case", ["dense", "conv"], indirect=True)
def test_both_kernels_start_small_and_unlike_each_other(case):
    layer_class, shape = case
    layer = layer_class(4)
    layer.build(shape)
    assert isinstance(layer.kernel_initializer, SmallVarianceNormal)
    assert isinstance(layer.output_initializer, SmallVarianceNormal)
    kernel, output_kernel, bias = layer.get_weights()
    assert not np.array_equal(kernel, output_kernel)
    assert not bias.any()


def test_without_the_second_kernel_the_input_passes_as_it_is(case, rng):
    layer_class, shape = case
    layer = layer_class(4, output_initializer="zeros", dtype="bfloat16")
    x = keras.ops.cast(rng.normal(size=(2, *shape[1:])), "bfloat16")
    np.testing.assert_array_equal(to_numpy(layer(x)), to_numpy(x))


@pytest.mark.one_backend
def test_the_config_has_each_option_under_its_own_name(case):
    options = {
        f"{weight}_{kind}": make(0.1 * number)
        for kind, make in {
            "initializer": keras.initializers.Constant,
            "regularizer": keras.regularizers.L2,
            "constraint": keras.constraints.MaxNorm,
        }.items()
        for number, weight in enumerate(["kernel", "output", "bias"], 1)
    }
    options["activity_regularizer"] = keras.regularizers.L2(0.5)
    config = case[0](4, **options).get_config()
    for name, option in options.items():
        assert config[name]["config"] == option.get_config()


@pytest.mark.one_backend
@pytest.mark.parametrize("ours", [ResidualDense, ResidualDenseStack])
def test_positional_arguments_are_the_first_of_dense(ours):
    def first(layer):
        return list(inspect.signature(layer).parameters)[:3]

    assert first(ours) == first(keras.layers.Dense)


@pytest.mark.parametrize("shape", [(4, 3), (2, 5, 3), (2, 4, 5, 1)])
def test_linear_is_a_dense_layer_with_the_kernel_identity_plus_offset(
    rng, shape
):
    x = rng.normal(size=shape).astype("float32")
    layer = LinearResidual(kernel_initializer="he_normal")
    y = layer(x)
    dense = keras.layers.Dense(shape[-1], use_bias=False)
    dense.build(shape)
    dense.set_weights([np.eye(shape[-1]) + layer.get_weights()[0]])
    assert_same(y, dense(x))


def test_a_small_linear_offset_survives_bfloat16():
    layer = LinearResidual("zeros", dtype="bfloat16")
    layer.build((None, 2))
    layer.set_weights([np.full((2, 2), 0.003)])
    y = keras.ops.cast(layer(np.ones((1, 2))), "float32")
    # 1.006 is nearer to 1 + 1/128 than to 1, and 1.003 is not.
    assert_same(y, [[1 + 1 / 128] * 2], rtol=0, atol=0)


def test_the_options_of_a_linear_layer_act_on_the_offset():
    layer = LinearResidual(
        "ones", kernel_regularizer="l2", kernel_constraint="non_neg"
    )
    layer.build((None, 3))
    assert_same(layer.losses[0], 0.01 * 9)
    assert_same(layer.kernel.constraint(-np.ones((3, 3))), np.zeros((3, 3)))


def built(units, features, **kwargs):
    normal = keras.initializers.RandomNormal
    layer = ResidualDense(
        units,
        kernel_initializer=normal(stddev=0.5, seed=1),
        output_initializer=normal(stddev=0.5, seed=2),
        bias_initializer=normal(stddev=0.5, seed=3),
        **kwargs,
    )
    layer.build((None, features))
    return layer


@pytest.mark.parametrize(
    "activation, shape, use_bias",
    first_of(
        [
            ("relu", (2, 5, 3), True),
            ("relu", (6, 3), False),
            ("relu", (1, 3), True),
            *((name, (6, 3), True) for name in references.ACTIVATIONS),
        ],
        2,
        pytest.mark.one_backend,
    ),
)
def test_dense_is_the_formula(rng, activation, shape, use_bias):
    layer = built(4, 3, activation=activation, use_bias=use_bias)
    x = rng.normal(size=shape)
    u, v, *bias = (weight.astype("float64") for weight in layer.get_weights())
    b = bias[0] if use_bias else 0
    expected = x + references.ACTIVATIONS[activation](x @ u + b) @ v
    assert_same(layer(x.astype("float32")), expected)


def options(axis):
    """Every option; `axis` is that of the inputs of a kernel."""
    return {
        "kernel_regularizer": keras.regularizers.L2(0.1),
        "output_regularizer": keras.regularizers.L1(0.1),
        "bias_regularizer": keras.regularizers.L2(0.2),
        "kernel_constraint": keras.constraints.MaxNorm(0.5, axis=axis),
        "output_constraint": keras.constraints.MaxNorm(0.3, axis=axis),
        "bias_constraint": "non_neg",
    }


@pytest.mark.one_backend
@pytest.mark.parametrize(
    "layer, shape",
    [
        (LinearResidual("he_normal"), (3, 4)),
        (ResidualDense(5, "tanh", kernel_initializer="he_normal"), (3, 4)),
        (
            ResidualDenseStack(
                3, "tanh", depth=3, output_initializer="he_normal"
            ),
            (3, 4),
        ),
        (ResidualConv2D(3, strides=2, activation="tanh"), (2, 4, 4, 2)),
    ],
    ids=lambda value: getattr(type(value), "__name__", ""),
)
def test_gradients_are_finite_differences_of_the_output(
    rng, float64, layer, shape
):
    """Of a random sum of outputs, along a random direction of all weights."""
    tf = pytest.importorskip("tensorflow")
    x = rng.normal(size=shape)
    layer = type(layer).from_config({**layer.get_config(), "dtype": "float64"})
    layer.build(shape)
    weights = [
        rng.normal(size=weight.shape) / 3 for weight in layer.trainable_weights
    ]
    directions = [rng.normal(size=weight.shape) for weight in weights]
    factors = rng.normal(size=layer.compute_output_shape(shape))

    def output(step):
        layer.set_weights(
            [w + step * d for w, d in zip(weights, directions, strict=True)]
        )
        return tf.reduce_sum(factors * layer(x))

    with tf.GradientTape() as tape:
        value = output(0.0)
    gradients = tape.gradient(value, [w.value for w in layer.trainable_weights])
    slope = sum(
        np.sum(gradient * direction)
        for gradient, direction in zip(gradients, directions, strict=True)
    )
    difference = (output(1e-6) - output(-1e-6)) / 2e-6
    np.testing.assert_allclose(slope, difference, rtol=1e-6)


def test_dense_learns_as_two_dense_layers_with_a_sum_do(rng):
    chosen = options(0)
    layer = built(4, 3, **chosen)
    u, v, b = layer.get_weights()
    x, y = rng.normal(size=(2, 8, 3)).astype("float32")
    inputs = keras.Input((3,))
    of_output = {
        name.replace("output", "kernel"): chosen.pop(name)
        for name in ("output_regularizer", "output_constraint")
    }
    first = keras.layers.Dense(4, "relu", **chosen)
    second = keras.layers.Dense(3, **of_output)
    outputs = keras.layers.add([inputs, second(first(inputs))])
    models = [
        keras.Sequential([keras.Input((3,)), layer]),
        keras.Model(inputs, outputs),
    ]
    first.set_weights([u, b])
    second.set_weights([v, np.zeros(3)])
    second.bias.trainable = False
    for model in models:
        model.compile(keras.optimizers.SGD(0.1), "mse")
        for _ in range(3):
            model.train_on_batch(x, y)
    new_u, new_v, new_b = layer.get_weights()
    assert_same(first.kernel, new_u)
    assert_same(first.bias, new_b)
    assert_same(second.kernel, new_v)
    assert np.abs(new_u - u).max() > 1e-3


def built_stack(depth, units, shape, **kwargs):
    stack = ResidualDenseStack(
        units,
        depth=depth,
        output_initializer=keras.initializers.RandomNormal(stddev=0.2),
        **kwargs,
    )
    stack.build(shape)
    stack.bias.assign(np.linspace(-1, 1, depth * units).reshape(depth, units))
    return stack


def unit_by_unit(x, weights, activation):
    h = x.astype("float64")
    for kernel, output, bias in zip(*weights, strict=True):
        h = h + references.ACTIVATIONS[activation](h @ kernel + bias) @ output
    return h


@pytest.mark.parametrize(
    "activation", one_backend_after(["relu", "tanh", "linear"])
)
@pytest.mark.parametrize("depth, units", [(1, 1), (7, 3), (3, 8)])
def test_a_stack_is_the_formula(rng, depth, units, activation):
    x = rng.normal(size=(4, 5)).astype("float32")
    stack = built_stack(depth, units, x.shape, activation=activation)
    assert_same(stack(x), unit_by_unit(x, stack.get_weights(), activation))


@pytest.mark.parametrize("use_bias", one_backend_after([True, False]))
def test_with_all_options_a_stack_trains_as_residual_dense_layers_do(
    rng, use_bias
):
    x, y = rng.normal(size=(2, 8, 3)).astype("float32")
    stack = ResidualDenseStack(
        5,
        "tanh",
        use_bias,
        depth=4,
        output_initializer="he_normal",
        bias_initializer="ones",
        **options(1),
    )
    blocks = [
        ResidualDense(5, "tanh", use_bias, **options(0)) for _ in range(4)
    ]
    stacked = keras.Sequential([keras.Input((3,)), stack])
    separate = keras.Sequential([keras.Input((3,)), *blocks])
    for block, *weights in zip(blocks, *stack.get_weights(), strict=True):
        block.set_weights(weights)
    losses = []
    for model in (stacked, separate):
        model.compile(keras.optimizers.SGD(0.1), "mse")
        losses.append([model.train_on_batch(x, y) for _ in range(3)])
    np.testing.assert_allclose(*losses, rtol=1e-5)
    expected = zip(*(block.get_weights() for block in blocks), strict=True)
    for mine, theirs in zip(stack.get_weights(), expected, strict=True):
        assert_same(mine, np.stack(theirs))


def test_a_stack_without_an_initializer_has_its_default():
    layer = ResidualDenseStack(
        4, depth=3, kernel_initializer=None, output_initializer=None
    )
    config = ResidualDenseStack(4, depth=3).get_config()
    for name in ("kernel_initializer", "output_initializer"):
        actual, expected = layer.get_config()[name], config[name]
        assert actual["class_name"] == expected["class_name"]
