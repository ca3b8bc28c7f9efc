"""Models that train alike are described alike, and no others."""

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


def differences(first, second):
    return model_differences(describe(first), describe(second))


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
    assert differences(first, again) == []
    third = compiled(SAME[name]())
    assert differences(again, third) == []


def test_what_may_change_on_the_way_is_not_compared():
    first = compiled(sequential(), keras.optimizers.Adam(0.1))
    adam = keras.optimizers.Adam(0.2)
    second = compiled(sequential(), adam, metrics=["mae"], jit_compile=False)
    assert differences(first, second) == []
    second.optimizer.learning_rate = 0.3
    assert differences(first, second) == []


def decay(rate):
    return keras.optimizers.schedules.ExponentialDecay(rate, 10, 0.9)


# Models that differ from the sequential one, and what is said of them.
OTHERS = {
    'layers[1].config.activation: "relu", now "tanh"': lambda: compiled(
        sequential("tanh", "relu")
    ),
    "layers[1].config.units: 3, now 4": lambda: compiled(sequential(units=4)),
    'variables[0].dtype: "float32", now "float64"': lambda: compiled(
        sequential(dtype="float64")
    ),
    "seed: null, now 3": lambda: compiled(sequential(seed=3)),
    'loss: "mse", now "mae"': lambda: compiled(sequential(), loss="mae"),
    'optimizer.class_name: "Adam", now "AdamW"': lambda: compiled(
        sequential(), "adamw"
    ),
    "optimizer.config.beta_1: 0.9, now 0.5": lambda: compiled(
        sequential(), keras.optimizers.Adam(beta_1=0.5)
    ),
    "optimizer.config.learning_rate: null, now {": lambda: compiled(
        sequential(), keras.optimizers.Adam(decay(0.1))
    ),
}


@pytest.mark.parametrize("expected", OTHERS)
def test_what_is_other_is_named(expected):
    lines = differences(compiled(sequential()), OTHERS[expected]())
    assert [line for line in lines if expected in line], lines


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (
            lambda number: keras.optimizers.LossScaleOptimizer(
                keras.optimizers.SGD(momentum=number)
            ),
            "momentum: 0.1, now 0.2",
        ),
        (
            lambda number: keras.optimizers.Adam(decay(number)),
            "initial_learning_rate: 0.1, now 0.2",
        ),
    ],
    ids=["optimizer", "schedule"],
)
def test_what_an_optimizer_has_inside_is_compared(make, expected):
    models = [compiled(sequential(), make(number)) for number in (0.1, 0.2)]
    (line,) = differences(*models)
    assert line.endswith(expected)


def test_layers_of_equal_shapes_that_are_swapped_are_named():
    assert differences(
        compiled(functional()), compiled(functional(swapped=True))
    )


def test_of_a_model_that_cannot_be_serialized_class_and_layers_are_compared():
    first, second = compiled(own()), compiled(own(activation="tanh"))
    expected = 'model.layers[0].config.activation: "relu", now "tanh"'
    assert differences(first, second)[0] == expected
    assert describe(first)["model"]["class_name"] == "Own"


def test_between_versions_of_keras_common_keys_are_compared():
    first, second = (describe(compiled(sequential())) for _ in range(2))
    dense = first["model"]["config"]["layers"][1]["config"]
    del dense["activation"]
    assert model_differences(first, second)
    first["keras"] = "3.0"
    assert model_differences(first, second) == []
    dense["units"] = 5
    assert len(model_differences(first, second)) == 1


def test_a_lambda_is_the_same_on_another_line():
    descriptions = []
    for function in (lambda x: x + 1, lambda x: x + 1):
        keras.utils.clear_session()
        layer = keras.layers.Lambda(function)
        model = keras.Sequential([keras.Input((2,)), layer])
        descriptions.append(describe(compiled(model)))
    assert descriptions[0] == descriptions[1]
