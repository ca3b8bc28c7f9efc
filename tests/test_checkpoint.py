"""A checkpoint comes back bit for bit, or is refused with a reason."""

import json

import keras
import ml_dtypes
import numpy as np
import pytest

from keras_rin.callbacks import ResumableTraining
from keras_rin.callbacks import _checkpoint

LOGS = {
    "float": 0.1,
    "tiny": 5e-324,
    "negative zero": -0.0,
    "infinite": float("inf"),
    "integer": 2**70,
    "true": True,
    "none": None,
    "text": "ein Wort, \u00fc",
    "list": [1, [0.5]],
    "float32": np.float32(0.1),
    "vector": np.array([0.1, np.nan], "float32"),
    "matrix": np.arange(6).reshape(2, 3),
    "bfloat16": np.array([0.1, 3], ml_dtypes.bfloat16),
    "complex": 1 + 2j,
}


def make(**kwargs):
    contents = {
        "epoch": 1,
        "history": {},
        "model": {},
        "settings": {},
        "arrays": [np.arange(3.0)],
    }
    return _checkpoint.Checkpoint(**{**contents, **kwargs})


def written(path, **kwargs):
    _checkpoint.write(path, make(**kwargs))
    return _checkpoint.read(path)


@pytest.mark.parametrize("name", LOGS)
def test_a_log_comes_back_bit_for_bit(tmp_path, name):
    value = LOGS[name]
    log = written(tmp_path / "a", history={"log": [value]}).history["log"][0]
    if isinstance(value, (np.ndarray, np.generic, complex)):
        assert np.asarray(log).dtype == np.asarray(value).dtype
        assert np.shape(log) == np.shape(value)
        assert np.asarray(log).tobytes() == np.asarray(value).tobytes()
    else:
        assert (type(log), repr(log)) == (type(value), repr(value))


def test_logs_of_several_epochs_keep_their_places(tmp_path):
    history = {
        "a": [np.array([k, k]) for k in range(12)],
        "b": [float(k) for k in range(12)],
    }
    logs = written(tmp_path / "a", history=history, epoch=12).history
    assert repr(logs) == repr(history)


def test_a_tensor_comes_back_as_an_array(tmp_path):
    tensor = keras.ops.convert_to_tensor([0.5, 1])
    logs = written(tmp_path / "a", history={"log": [tensor]}).history
    np.testing.assert_array_equal(logs["log"], [[0.5, 1]])


def test_a_log_that_no_file_holds_is_warned_of(tmp_path):
    match = "log of type object cannot be kept"
    with pytest.warns(UserWarning, match=match) as caught:
        logs = written(tmp_path / "a", history={"log": [object()]}).history
    assert caught[0].filename == __file__
    assert logs == {"log": [None]}


def test_a_file_that_is_not_there_holds_nothing(tmp_path):
    assert _checkpoint.read(tmp_path / "a") is None


DAMAGES = {
    "epoch": (np.int64(-5), "its epoch is -5"),
    "epoch ": (np.array([1, 2]), r"its epoch is \[1 2\]"),
    "epoch  ": (np.float64(1.5), "its epoch is 1.5"),
    "history": (np.bytes_("[1, 2]"), "its history is a list"),
    "history ": (np.bytes_('{"loss": 3}'), "history of loss is not a list"),
    "history  ": (np.bytes_('{"loss": [3, 2]}'), "list of at most 1 values"),
    "model": (np.bytes_("3"), "its model is a int"),
    "settings": (None, "it has no settings"),
    "arr_0": (np.array([{}]), "it contains Python objects"),
}


@pytest.mark.one_backend
@pytest.mark.parametrize("name", DAMAGES)
def test_what_is_wrong_with_a_file_is_said(tmp_path, name):
    path = tmp_path / "state.npz"
    _checkpoint.write(path, make())
    with np.load(path) as file:
        arrays = dict(file)
    value, reason = DAMAGES[name]
    arrays[name.strip()] = value
    np.savez(path, **{k: a for k, a in arrays.items() if a is not None})
    with pytest.raises(ValueError, match=rf"state.npz cannot be .*{reason}"):
        ResumableTraining(path)


def test_a_single_array_is_no_state_of_training(tmp_path):
    with open(tmp_path / "state.npz", "wb") as file:
        np.save(file, np.ones(3))
    with pytest.raises(ValueError, match="state.npz .*it contains one array"):
        ResumableTraining(tmp_path / "state.npz")


def test_a_folder_is_named(tmp_path):
    with pytest.raises(IsADirectoryError, match="The checkpoint") as error:
        ResumableTraining(tmp_path)
    assert error.value.filename == str(tmp_path)


def test_the_texts_are_json_that_others_can_read(tmp_path):
    _checkpoint.write(tmp_path / "a", make(history={"loss": [0.5]}))
    with np.load(tmp_path / "a") as file:
        assert json.loads(file["history"].item()) == {"loss": [0.5]}
