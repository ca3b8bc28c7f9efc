"""Models that train alike are described alike, and no others."""

import re

import keras
import pytest

from keras_rin.callbacks._model_description import describe
from keras_rin.callbacks._model_description import model_differences
from keras_rin.layers import RIN
from keras_rin.layers import NoisyRNN

pytestmark = pytest.mark.one_backend


def compiled(model, optimizer="adam", loss="mse", **kwargs):
    model.compile(optimizer, loss, **kwargs)
    return model


def sequential(first="relu", second="tanh", dtype=None, units=3, seed=None):
    start = keras.initializers.GlorotUniform(seed=seed)
    return keras.Sequential(
        [
            keras.Input((3,), dtype=dtype),
            keras.layers.Dense(units, first, dtype=dtype),
            keras.layers.Dense(
                3, second, dtype=dtype, kernel_initializer=start
            ),
        ]
    )


def functional(swapped=False):
    x = keras.Input((4, 2))
    first = RIN(3, return_sequences=True, dropout=0.1)(x)
    cell = keras.layers.SimpleRNNCell(3)
    second = NoisyRNN(cell, return_sequences=True)(x)
    pair = (second, first) if swapped else (first, second)
    return keras.Model(x, keras.ops.subtract(*pair))


class Own(keras.Model):
    """A model that Keras cannot serialize."""

    def __init__(self, function, activation="relu"):
        super().__init__()
        self.first = keras.layers.Dense(3, activation)
        self.second = keras.layers.Dense(3, activation)
        self.function = function

    def build(self, shape):
        self.first.build(shape)
        self.second.build(shape)

    def call(self, x):
        return self.function(self.second(self.first(x)))


def own(**kwargs):
    model = Own(lambda x: x, **kwargs)
    model.build((None, 3))
    return model


def found(one, other):
    return model_differences(describe(one), describe(other))


SAME = {
    "sequential": sequential,
    "functional": functional,
    "own": own,
    "lambda": lambda: keras.Sequential(
        [keras.Input((3,)), keras.layers.Lambda(lambda x: 2 * x)]
    ),
}


@pytest.mark.parametrize("name", SAME)
def test_the_same_script_later_in_a_process_makes_the_same_model(name):
    keras.utils.clear_session()
    first = compiled(SAME[name]())
    for _ in range(9):  # so that names are numbered across 10
        keras.layers.Dense(1), RIN(1), keras.optimizers.Adam()
    again = compiled(SAME[name]())
    assert first.layers[-1].name != again.layers[-1].name
    assert found(first, again) == []
    third = compiled(SAME[name]())
    assert found(again, third) == []


def test_what_may_change_on_the_way_is_not_compared():
    one = compiled(sequential(), keras.optimizers.Adam(0.1))
    other = compiled(
        sequential(),
        keras.optimizers.Adam(0.2),
        metrics=["mae"],
        jit_compile=False,
    )
    other.optimizer.learning_rate = 0.3
    assert found(one, other) == []


def with_optimizer(optimizer):
    return compiled(sequential(), optimizer)


def schedule(rate):
    return keras.optimizers.schedules.ExponentialDecay(rate, 10, 0.9)


def scaled(rate):
    inner = keras.optimizers.SGD(momentum=rate)
    return keras.optimizers.LossScaleOptimizer(inner)


OTHERS = {
    "activations swapped": (
        lambda: compiled(sequential("tanh", "relu")),
        r'model.config.layers\[1\].config.activation: "relu", now "tanh"',
    ),
    "units": (
        lambda: compiled(sequential(units=4)),
        r"model.config.layers\[1\].config.units: 3, now 4",
    ),
    "dtype": (
        lambda: compiled(sequential(dtype="float64")),
        r'variables\[0\].dtype: "float32", now "float64"',
    ),
    "initializer": (lambda: compiled(sequential(seed=3)), "seed: null, now 3"),
    "loss": (
        lambda: compiled(sequential(), loss="mae"),
        'loss: "mse", now "mae"',
    ),
    "AdamW": (
        lambda: with_optimizer("adamw"),
        'optimizer.class_name: "Adam", now "AdamW"',
    ),
    "beta": (
        lambda: with_optimizer(keras.optimizers.Adam(beta_1=0.5)),
        "optimizer.config.beta_1: 0.9, now 0.5",
    ),
    "schedule": (
        lambda: with_optimizer(keras.optimizers.Adam(schedule(0.1))),
        "optimizer.config.learning_rate: null, now {",
    ),
}


@pytest.mark.parametrize("name", OTHERS)
def test_what_is_other_is_named(name):
    make, difference = OTHERS[name]
    lines = found(compiled(sequential()), make())
    assert [line for line in lines if re.search(difference, line)], lines


def test_an_optimizer_within_another_is_compared():
    one, other = with_optimizer(scaled(0.1)), with_optimizer(scaled(0.2))
    (line,) = found(one, other)
    assert line.endswith("momentum: 0.1, now 0.2")
    rates = [with_optimizer(schedule_) for schedule_ in map(adam, (0.1, 0.2))]
    (line,) = found(*rates)
    assert line.endswith("initial_learning_rate: 0.1, now 0.2")


def adam(rate):
    return keras.optimizers.Adam(schedule(rate))


def test_layers_of_equal_shapes_that_are_swapped_are_named():
    assert found(compiled(functional()), compiled(functional(swapped=True)))


def test_of_a_model_that_cannot_be_serialized_class_and_layers_are_compared():
    one, other = compiled(own()), compiled(own(activation="tanh"))
    lines = found(one, other)
    assert lines[0] == ('model.layers[0].config.activation: "relu", now "tanh"')
    described = describe(one)
    assert described["model"]["class_name"] == "Own"


def test_between_versions_of_keras_common_keys_are_compared():
    one, other = (describe(compiled(sequential())) for _ in range(2))
    del one["model"]["config"]["layers"][1]["config"]["activation"]
    assert model_differences(one, other)
    one["keras"] = "3.0"
    assert model_differences(one, other) == []
    one["model"]["config"]["layers"][1]["config"]["units"] = 5
    assert len(model_differences(one, other)) == 1


def test_a_lambda_is_the_same_on_another_line():
    described = []
    for function in (lambda x: x + 1, lambda x: x + 1):
        keras.utils.clear_session()
        layer = keras.layers.Lambda(function)
        model = keras.Sequential([keras.Input((2,)), layer])
        model.compile("sgd", "mse")
        described.append(describe(model))
    assert described[0] == described[1]
