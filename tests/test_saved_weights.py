"""A file of weights says whether a matrix is the offset U or V = U + I.

Every warning that a test does not expect is an error in these tests.
"""

import warnings
import zipfile

import keras
import numpy as np
import pytest
from cases import needs_keras
from references import assert_same
from test_saved_files import OF_RELEASES
from test_saved_files import model_of_a_release

from keras_rin.layers import RIN
from keras_rin.layers import DeepTransitionRINCell
from keras_rin.layers import LinearResidual
from keras_rin.layers import NoisyRNN
from keras_rin.layers import RINCell
from keras_rin.layers import _saved_weights

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
    "RNN": lambda layer, cell: RNN(cell(4)),
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


def assert_comes_back(model, file, rng):
    weights = model.get_weights()
    model.save_weights(file)
    randomized(model, rng).load_weights(file)
    assert_same(model.get_weights(), weights, 0, 0)


def without_marker(monkeypatch):
    """From here on, files are those of earlier versions."""
    monkeypatch.setattr(_saved_weights, "mark", lambda store: None)


@pytest.mark.one_backend
@CASES
def test_weights_of_a_simple_rnn_are_refused(make, rng, file):
    simple, rin = pair(make, rng)
    simple.save_weights(file)
    before = rin.get_weights()
    with pytest.raises(ValueError, match="effective.*RIN.from_simple_rnn"):
        rin.load_weights(file)
    assert_same(rin.get_weights(), before, 0, 0)


@pytest.mark.one_backend
@CASES
def test_a_simple_rnn_refuses_weights_of_a_rin(make, rng, file):
    simple, rin = pair(make, rng)
    rin.save_weights(file)
    with pytest.raises(ValueError, match="variables, but received"):
        simple.load_weights(file)


def test_a_bias_more_does_not_hide_the_marker(file):
    model_of(RNN(RINCell(4, use_bias=False))).save_weights(file)
    with pytest.raises(ValueError, match="could not be loaded"):
        model_of(RNN(SimpleRNNCell(4))).load_weights(file)


MARKED = pytest.mark.parametrize("marked", [True, False])


@MARKED
@CASES
def test_weights_of_a_rin_come_back(make, marked, rng, file, monkeypatch):
    """Those of earlier versions, too: they are named as those of a RIN."""
    if not marked:
        without_marker(monkeypatch)
    model = randomized(model_of(make(RIN, RINCell)), rng)
    assert_comes_back(model, file, rng)


@MARKED
@pytest.mark.parametrize("kind", ["deep", "deep without a bias", "residual"])
def test_a_matrix_of_no_class_of_keras_comes_back(
    kind, marked, rng, file, monkeypatch
):
    """Its name or its number of weights says that it is an offset."""
    if not marked:
        without_marker(monkeypatch)
    use_bias = kind == "deep"
    layer = RNN(DeepTransitionRINCell(4, use_bias=use_bias, name="mine"))
    if kind == "residual":
        layer = TimeDistributed(LinearResidual())
    assert_comes_back(randomized(model_of(layer), rng), file, rng)


@pytest.mark.one_backend
@OF_RELEASES
def test_weights_of_a_release_still_load(file, rng, tmp_path):
    with zipfile.ZipFile(file) as archive:
        archive.extract("model.weights.h5", tmp_path)
    model = randomized(model_of_a_release(file), rng)
    model.load_weights(tmp_path / "model.weights.h5")
    with np.load(file.with_suffix(".npz")) as data:
        assert_same(model(data["x"]), data["y"], rtol=1e-4)


def named(kind, name="mine"):
    return model_of(RNN(kind(4, name=name)))


@pytest.mark.parametrize("kind", [RINCell, SimpleRNNCell])
def test_a_cell_of_another_name_is_warned_of(kind, rng, file, monkeypatch):
    """Such a file without a marker can be of either class."""
    without_marker(monkeypatch)
    source, target = randomized(named(kind), rng), named(RINCell)
    source.save_weights(file)
    with pytest.warns(UserWarning, match="RIN.from_simple_rnn") as caught:
        target.load_weights(file)
    assert [warning.filename for warning in caught] == [__file__]
    assert_same(target.get_weights()[1], source.get_weights()[1])


@pytest.mark.one_backend
@pytest.mark.parametrize("name", ["mine", "rin_cell_3", "simple_rnn_cells"])
def test_a_whole_model_of_an_earlier_version_loads(
    name, rng, tmp_path, monkeypatch
):
    """Its config names the class, so that its weights are no question."""
    without_marker(monkeypatch)
    model = randomized(named(RINCell, name), rng)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    x = rng.normal(size=(2, 5, 3)).astype("float32")
    assert_same(loaded(x), model(x))


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
    dense.save_weights(file)
    with pytest.raises(ValueError, match="`kernel` of Dense.*W - I"):
        residual.load_weights(file)
    residual.save_weights(file)
    with pytest.raises(ValueError, match="variables, but received"):
        dense.load_weights(file)


def test_a_file_without_the_layer_is_refused(file):
    model_of(keras.layers.Dense(4)).save_weights(file)
    with pytest.raises(ValueError, match="no weights of rin_cell"):
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


def test_a_store_of_another_kind_is_warned_of(rng):
    """A dict, as the editor of Keras passes, has no names."""
    simple, cell = SimpleRNNCell(4), RINCell(4)
    for layer in (simple, cell):
        layer.build((None, 3))
    store = {}
    simple.save_own_variables(store)
    with pytest.warns(UserWarning, match="RIN.from_simple_rnn"):
        cell.load_own_variables(store)
    store = {}
    cell.save_own_variables(store)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cell.load_own_variables(store)
    with pytest.raises(ValueError, match="variables, but received"):
        simple.load_own_variables(store)


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
