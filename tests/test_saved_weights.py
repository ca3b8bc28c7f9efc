"""A file of weights says whether a matrix is the offset U or V = U + I.

Every warning that a test does not expect is an error in these tests.
"""

import keras
import pytest
from cases import needs_keras
from references import assert_same

from keras_rin.layers import RIN
from keras_rin.layers import DeepTransitionRINCell
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
    "wrapper in a wrapper": lambda layer, cell: of_rows(
        Bidirectional(layer(4))
    ),
    "nested model": lambda layer, cell: model_of(Bidirectional(layer(4))),
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


def pair(make, rng):
    """Two models of one shape, of SimpleRNN and of RIN."""
    return [
        randomized(model_of(make(*classes)), rng)
        for classes in ((SimpleRNN, SimpleRNNCell), (RIN, RINCell))
    ]


@pytest.fixture
def file(tmp_path):
    return tmp_path / "w.weights.h5"


@CASES
def test_offsets_and_effective_matrices_are_not_confused(make, rng, file):
    simple, rin = pair(make, rng)
    weights = rin.get_weights()
    simple.save_weights(file)
    with pytest.raises(ValueError, match="marked as.*RIN.from_simple_rnn"):
        rin.load_weights(file)
    assert_same(rin.get_weights(), weights, 0, 0)
    rin.save_weights(file)
    with pytest.raises(ValueError, match="variables, but received"):
        simple.load_weights(file)
    randomized(rin, rng).load_weights(file)
    assert_same(rin.get_weights(), weights, 0, 0)


def test_a_bias_more_does_not_hide_the_mark(file):
    model_of(RNN(RINCell(4, use_bias=False))).save_weights(file)
    with pytest.raises(ValueError, match="could not be loaded"):
        model_of(RNN(SimpleRNNCell(4))).load_weights(file)


@pytest.mark.parametrize("use_bias", [True, False])
def test_the_weights_of_a_deep_transition_come_back(use_bias, rng, file):
    cell = DeepTransitionRINCell(4, use_bias=use_bias)
    model = randomized(model_of(RNN(cell)), rng)
    weights = model.get_weights()
    model.save_weights(file)
    randomized(model, rng).load_weights(file)
    assert_same(model.get_weights(), weights, 0, 0)


def test_weights_in_a_whole_model_are_checked_too(rng, tmp_path):
    """`load_weights` reads a `.keras` file without its config."""
    simple, rin = pair(WITHIN["Bidirectional"], rng)
    for model, other in ((simple, rin), (rin, simple)):
        model.save(tmp_path / "model.keras")
        with pytest.raises(ValueError, match="could not be loaded"):
            other.load_weights(tmp_path / "model.keras")


def test_mismatches_are_skipped_if_asked_for(rng, file):
    simple, rin = pair(WITHIN["Bidirectional"], rng)
    simple.save_weights(file)
    before = rin.get_weights()
    with pytest.warns(UserWarning, match="RIN.from_simple_rnn"):
        rin.load_weights(file, skip_mismatch=True)
    assert_same(rin.get_weights(), before, 0, 0)


def test_a_linear_residual_is_no_dense(rng, file):
    """y = x + x A and y = x W have weights of one shape."""
    residual, dense = (
        randomized(model_of(TimeDistributed(layer)), rng)
        for layer in (LinearResidual(), keras.layers.Dense(3, use_bias=False))
    )
    weights = residual.get_weights()
    dense.save_weights(file)
    with pytest.raises(ValueError, match="marked as.*Dense.*W - I"):
        residual.load_weights(file)
    residual.save_weights(file)
    with pytest.raises(ValueError, match="variables, but received"):
        dense.load_weights(file)
    randomized(residual, rng).load_weights(file)
    assert_same(residual.get_weights(), weights, 0, 0)


def test_a_file_without_the_layer_is_refused(file):
    model_of(keras.layers.Dense(4)).save_weights(file)
    with pytest.raises(ValueError, match="file has no weights for it"):
        model_of(RIN(4)).load_weights(file)


@needs_keras("3.12", "this Keras does not split files of weights")
def test_a_file_in_parts_is_marked_too(rng, tmp_path):
    path = tmp_path / "w.weights.json"
    simple, rin = pair(WITHIN["Bidirectional"], rng)
    weights = rin.get_weights()
    rin.save_weights(path, max_shard_size=1e-7)
    assert len(list(tmp_path.glob("*.h5"))) > 1
    randomized(rin, rng).load_weights(path)
    assert_same(rin.get_weights(), weights, 0, 0)
    with pytest.raises(ValueError, match="variables, but received"):
        simple.load_weights(path)
    simple.save_weights(path, max_shard_size=1e-7)
    with pytest.raises(ValueError, match="RIN.from_simple_rnn"):
        rin.load_weights(path)


@needs_keras("3.10", "this Keras has no editor of files")
def test_the_editor_of_keras_reads_a_marked_file(rng, tmp_path):
    """It leaves out the weights within wrappers and recurrent layers."""
    first, second = (str(tmp_path / f"{n}.weights.h5") for n in (1, 2))
    model = randomized(model_of(LinearResidual()), rng)
    weights = model.get_weights()
    model.save_weights(first)
    editor = keras.saving.KerasFileEditor(first)
    assert editor.compare(model)["status"] == "success"
    editor.save(second)
    randomized(model, rng).load_weights(second)
    assert_same(model.get_weights()[0], weights[0])
