import keras
import numpy as np
import pytest
import references
from references import assert_same

from keras_rin.layers import ResidualDense


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


@pytest.mark.parametrize("activation", references.ACTIVATIONS)
@pytest.mark.parametrize("shape", [(6, 3), (1, 3), (2, 5, 3)])
def test_it_is_the_formula(rng, activation, shape):
    layer = built(4, 3, activation=activation)
    x = rng.normal(size=shape)
    u, v, b = (weight.astype("float64") for weight in layer.get_weights())
    expected = x + references.ACTIVATIONS[activation](x @ u + b) @ v
    assert_same(layer(x.astype("float32")), expected)


def test_without_bias_it_is_the_formula_without_b(rng):
    layer = built(4, 3, use_bias=False)
    x = rng.normal(size=(6, 3))
    u, v = (weight.astype("float64") for weight in layer.get_weights())
    expected = x + np.maximum(x @ u, 0) @ v
    assert_same(layer(x.astype("float32")), expected)


def test_it_learns_as_two_dense_layers_with_a_sum_do(rng):
    layer = built(4, 3)
    u, v, b = layer.get_weights()
    x, y = rng.normal(size=(2, 8, 3)).astype("float32")
    inputs = keras.Input((3,))
    first, second = keras.layers.Dense(4, "relu"), keras.layers.Dense(3)
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


@pytest.mark.parametrize("units", [0, -1, 1.5, None, "4"])
def test_units_below_one_are_refused(units):
    with pytest.raises(ValueError, match="`units` must.*Received: units="):
        ResidualDense(units)


def test_an_unknown_number_of_features_is_refused():
    with pytest.raises(ValueError, match="number of features"):
        ResidualDense(4).build((None, None))


def test_another_number_of_features_is_refused():
    layer = built(4, 3)
    with pytest.raises(ValueError, match="expected axis -1"):
        layer(np.ones((2, 5)))
