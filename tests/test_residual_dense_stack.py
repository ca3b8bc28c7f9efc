import keras
import numpy as np
import pytest
import references
from references import assert_same

from keras_rin.layers import ResidualDense
from keras_rin.layers import ResidualDenseStack


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


@pytest.mark.parametrize("activation", ["relu", "tanh", "linear"])
@pytest.mark.parametrize("depth, units", [(1, 1), (7, 3), (3, 8)])
def test_it_follows_the_formula_in_float64(rng, depth, units, activation):
    x = rng.normal(size=(4, 5)).astype("float32")
    stack = built_stack(depth, units, x.shape, activation=activation)
    assert_same(stack(x), unit_by_unit(x, stack.get_weights(), activation))


def test_axes_before_the_features_are_left_alone(rng):
    x = rng.normal(size=(2, 3, 4)).astype("float32")
    stack = built_stack(2, 5, x.shape)
    assert_same(stack(x), unit_by_unit(x, stack.get_weights(), "relu"))


def test_its_gradients_are_those_of_layers_of_keras(rng):
    """A residual unit of Keras: two Dense layers and an Add."""
    x = rng.normal(size=(6, 3)).astype("float32")
    y = rng.normal(size=(6, 3)).astype("float32")
    stack = built_stack(4, 5, x.shape)
    h = inputs = keras.Input((3,))
    for _ in range(4):
        inner = keras.layers.Dense(5, activation="relu")(h)
        h = h + keras.layers.Dense(3, use_bias=False)(inner)
    units = keras.Model(inputs, h)
    kernels, outputs, biases = stack.get_weights()
    by_unit = zip(kernels, biases, outputs, strict=True)
    units.set_weights([weight for unit in by_unit for weight in unit])
    for model in (units, stacked := keras.Sequential([stack])):
        model.compile(keras.optimizers.SGD(0.1), "mse")
        model.train_on_batch(x, y)
    mine, theirs = stacked.get_weights(), units.get_weights()
    assert_same(mine[0], theirs[0::3])
    assert_same(mine[1], theirs[2::3])
    assert_same(mine[2], theirs[1::3])


def options(axis):
    """Every option; `axis` is that of the inputs of a kernel."""
    return {
        "bias_initializer": "ones",
        "kernel_regularizer": keras.regularizers.L2(0.1),
        "output_regularizer": keras.regularizers.L1(0.1),
        "bias_regularizer": keras.regularizers.L2(0.2),
        "kernel_constraint": keras.constraints.MaxNorm(0.5, axis=axis),
        "output_constraint": keras.constraints.MaxNorm(0.3, axis=axis),
        "bias_constraint": "non_neg",
    }


@pytest.mark.parametrize("use_bias", [True, False])
def test_with_all_options_it_trains_as_residual_dense_layers_do(rng, use_bias):
    x, y = rng.normal(size=(2, 8, 3)).astype("float32")
    stack = ResidualDenseStack(
        5,
        "tanh",
        use_bias,
        depth=4,
        output_initializer="he_normal",
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


def test_at_the_start_it_changes_nothing(rng):
    x = rng.normal(size=(4, 3)).astype("float32")
    assert_same(ResidualDenseStack(2, depth=5)(x), x, rtol=0, atol=0)


def test_another_batch_size_is_the_same_function(rng):
    x = rng.normal(size=(10, 3)).astype("float32")
    model = keras.Sequential([keras.Input((3,)), built_stack(6, 4, x.shape)])
    assert_same(
        model.predict(x, batch_size=3, verbose=0),
        model.predict(x, batch_size=10, verbose=0),
    )


@pytest.mark.parametrize("sizes", [(0, 3), (3, 0), (2.5, 3)])
def test_sizes_must_be_whole(sizes):
    with pytest.raises(ValueError, match="must be an integer of at least 1"):
        ResidualDenseStack(sizes[1], depth=sizes[0])


def test_the_number_of_features_must_be_known_and_stay():
    with pytest.raises(ValueError, match="number of features"):
        ResidualDenseStack(3, depth=2)(keras.Input((None,)))
    with pytest.raises(ValueError, match="expected axis -1"):
        built_stack(2, 3, (None, 3))(np.ones((2, 4)))


def test_without_an_initializer_it_has_its_default():
    layer = ResidualDenseStack(
        4, depth=3, kernel_initializer=None, output_initializer=None
    )
    config = ResidualDenseStack(4, depth=3).get_config()
    for name in ("kernel_initializer", "output_initializer"):
        made, expected = layer.get_config()[name], config[name]
        assert made["class_name"] == expected["class_name"]
