import keras
import numpy as np
import pytest
import witnesses
from witnesses import assert_same

from keras_rin.layers import ResidualDenseStack


def built_stack(depth, units, shape, **kwargs):
    stack = ResidualDenseStack(
        depth,
        units,
        outer_initializer=keras.initializers.RandomNormal(stddev=0.2),
        **kwargs,
    )
    stack.build(shape)
    stack.bias.assign(np.linspace(-1, 1, depth * units).reshape(depth, units))
    return stack


def unit_by_unit(x, weights, activation):
    h = x.astype("float64")
    for inner, bias, outer in zip(*weights, strict=True):
        h = h + witnesses.ACTIVATIONS[activation](h @ inner + bias) @ outer
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
    units.set_weights(
        [w for unit in zip(*stack.get_weights(), strict=True) for w in unit]
    )
    for model in (units, stacked := keras.Sequential([stack])):
        model.compile(keras.optimizers.SGD(0.1), "mse")
        model.train_on_batch(x, y)
    for mine, theirs in zip(
        stacked.get_weights(), _by_kind(units.get_weights()), strict=True
    ):
        assert_same(mine, theirs)


def _by_kind(weights):
    return [np.stack(weights[kind::3]) for kind in range(3)]


def test_at_the_start_it_changes_nothing(rng):
    x = rng.normal(size=(4, 3)).astype("float32")
    assert_same(ResidualDenseStack(5, 2)(x), x, rtol=0, atol=0)


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
        ResidualDenseStack(*sizes)


def test_the_number_of_features_must_be_known_and_stay():
    with pytest.raises(ValueError, match="number of features"):
        ResidualDenseStack(2, 3)(keras.Input((None,)))
    with pytest.raises(ValueError, match="expected axis -1"):
        built_stack(2, 3, (None, 3))(np.ones((2, 4)))
