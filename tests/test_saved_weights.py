"""A file of weights says whether a matrix is the offset U or V = U + I.

Every warning that a test does not expect is an error in these tests.
"""

import keras
import pytest
from references import assert_same

from keras_rin.layers import RIN
from keras_rin.layers import LinearResidual
from keras_rin.layers import NoisyRNN
from keras_rin.layers import RINCell

SimpleRNN, SimpleRNNCell = keras.layers.SimpleRNN, keras.layers.SimpleRNNCell
RNN, TimeDistributed = keras.layers.RNN, keras.layers.TimeDistributed
Bidirectional = keras.layers.Bidirectional


class Own(keras.layers.Layer):
    """A layer of a user's, with recurrent layers in a list and a dict."""

    def __init__(self, first, second):
        super().__init__()
        self.parts, self.named = [first], {"second": second}

    def build(self, shape):
        self.parts[0].build(shape)
        self.named["second"].build((*shape[:-1], 4))

    def call(self, x):
        return self.named["second"](self.parts[0](x))


# A layer of a recurrent layer or a cell, for (batch, 5, 3).
WITHIN = {
    "Bidirectional": lambda layer, cell: Bidirectional(layer(4)),
    "TimeDistributed": lambda layer, cell: of_rows(layer(4)),
    "RNN": lambda layer, cell: RNN(cell(4, name="mine")),
    "NoisyRNN": lambda layer, cell: NoisyRNN(cell(4), 0.0),
    "without a bias": lambda layer, cell: RNN(cell(4, use_bias=False)),
    "nested model": lambda layer, cell: model_of(
        of_rows(Bidirectional(layer(4)))
    ),
    # Keras finds the class by itself where it is an element of a list.
    "no wrapper": lambda layer, cell: layer(4),
    "stacked cells": lambda layer, cell: RNN([cell(4), cell(2)]),
    "own layer": lambda layer, cell: Own(
        layer(4, return_sequences=True), layer(2)
    ),
}
CASES = pytest.mark.parametrize("make", WITHIN.values(), ids=WITHIN)


def of_rows(layer):
    rows = keras.layers.Reshape((5, 3, 1))
    return keras.Sequential([rows, TimeDistributed(layer)])


def model_of(layer):
    return keras.Sequential([keras.Input((5, 3)), layer])


def randomized(model, rng):
    model.set_weights([rng.normal(size=w.shape) for w in model.get_weights()])
    return model


@pytest.fixture
def file(tmp_path):
    return tmp_path / "w.weights.h5"


def assert_not_confused(layer, of_keras, rng, file, advice):
    weights = layer.get_weights()
    of_keras.save_weights(file)
    with pytest.raises(ValueError, match=f"marked as.*{advice}"):
        layer.load_weights(file)
    assert_same(layer.get_weights(), weights, 0, 0)
    layer.save_weights(file)
    with pytest.raises(ValueError, match="variables, but received"):
        of_keras.load_weights(file)
    randomized(layer, rng).load_weights(file)
    assert_same(layer.get_weights(), weights, 0, 0)


@CASES
def test_offsets_and_effective_matrices_are_not_confused(make, rng, file):
    """Two models of one shape, of SimpleRNN and of RIN."""
    simple, rin = (
        randomized(model_of(make(*classes)), rng)
        for classes in ((SimpleRNN, SimpleRNNCell), (RIN, RINCell))
    )
    assert_not_confused(rin, simple, rng, file, "RIN.from_simple_rnn")


def test_a_bias_more_does_not_hide_the_mark(file):
    model_of(RNN(RINCell(4, use_bias=False))).save_weights(file)
    with pytest.raises(ValueError, match="could not be loaded"):
        model_of(RNN(SimpleRNNCell(4))).load_weights(file)


def test_a_linear_residual_is_no_dense(rng, file):
    """y = x + x A and y = x W have weights of one shape."""
    residual, dense = (
        randomized(model_of(TimeDistributed(layer)), rng)
        for layer in (LinearResidual(), keras.layers.Dense(3, use_bias=False))
    )
    assert_not_confused(residual, dense, rng, file, "Dense.*W - I")


def test_a_file_without_the_layer_is_refused(file):
    model_of(keras.layers.Dense(4)).save_weights(file)
    with pytest.raises(ValueError, match="file has no weights for it"):
        model_of(RIN(4)).load_weights(file)
