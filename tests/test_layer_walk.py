import keras
import numpy as np
import pytest

from keras_rin._layer_walk.functional_calls import order_by_inputs
from keras_rin._layer_walk.layers import hidden_states
from keras_rin._layer_walk.layers import layers_within

pytestmark = pytest.mark.one_backend


class Block(keras.layers.Layer):
    """A layer of a user's own, which holds others in several ways."""

    def __init__(self):
        super().__init__()
        self.first = keras.layers.LSTM(2, stateful=True, return_sequences=True)
        self.others = {"b": [keras.layers.GRU(3, stateful=True)]}

    def build(self, shape):
        self.call(keras.Input(batch_shape=shape))

    def call(self, x):
        return self.others["b"][0](self.first(x))


def test_layers_come_once_in_the_order_of_a_model():
    block, dense = Block(), keras.layers.Dense(1)
    model = keras.Sequential([keras.Input((4, 1), batch_size=2), block, dense])
    x = keras.Input(batch_shape=(2, 4, 1))
    outer = keras.Model(x, [model(x), dense(block(x))])
    outer.compile("sgd", "mse")
    layers = layers_within(outer)
    assert len(set(map(id, layers))) == len(layers)
    ours = [block, block.first, block.others["b"][0], dense]
    assert [layer for layer in layers if layer in ours] == ours


def test_a_leaf_is_the_last_layer_of_its_branch():
    block = Block()
    layers = layers_within(block, is_leaf=lambda layer: layer is block.first)
    assert block.first in layers
    assert block.first.cell not in layers
    assert block.others["b"][0].cell in layers


def test_layers_that_hold_each_other_come_once():
    first, second = keras.layers.Layer(), keras.layers.Layer()
    first.inner, second.inner = second, first
    assert layers_within(first) == [first, second]


def test_a_list_that_holds_itself_ends():
    layer = keras.layers.Dense(1)
    layer.held = {"all": [layer]}
    vars(layer)["own"] = layers = [keras.layers.Dense(2)]
    layers.append(layers)
    assert layers_within(layer) == [layer, layers[0]]


def test_states_of_another_kind_are_no_hidden_states():
    layer = keras.layers.Dense(1)
    layer.states = np.arange(3)
    assert hidden_states(keras.Sequential([layer])) == []


def test_hidden_states_within_a_layer_of_ones_own_are_found():
    block = Block()
    block(np.ones((2, 4, 1), "float32"))
    lstm, gru = block.first.states, block.others["b"][0].states
    states = hidden_states(keras.Sequential([block]))
    assert [id(state) for state in states] == [
        id(state) for state in (*lstm, *gru)
    ]


def test_a_dict_is_read_by_the_names_of_the_inputs_or_by_its_keys():
    inputs = [keras.Input((1,), name=name) for name in "zam"]
    data = {"m": 3, "a": 2, "z": 1, "of none": 0}
    assert order_by_inputs(inputs, data) == [1, 2, 3]
    assert order_by_inputs(inputs, {"q": 3, "p": 2}) == [2, 3]
