import errno
import os

import keras
import numpy as np
import pytest
from witnesses import to_numpy

from keras_rin.callbacks import ResumableTraining
from keras_rin.layers import RIN
from keras_rin.layers import NoisyRNN


def make(optimizer=None, dtype=None, units=3):
    """A network with everything that a step of training changes."""
    keras.utils.set_random_seed(7)
    cell = keras.layers.SimpleRNNCell(
        3, recurrent_initializer="glorot_uniform", dtype=dtype
    )
    rin = RIN(
        units, return_sequences=True, dropout=0.3, fused=False, dtype=dtype
    )
    model = keras.Sequential(
        [
            keras.Input((5, 2), dtype=dtype),
            rin,
            keras.layers.BatchNormalization(dtype=dtype),
            keras.layers.GaussianNoise(0.1, dtype=dtype),
            NoisyRNN(cell, dtype=dtype),
            keras.layers.Dense(1, dtype=dtype),
        ]
    )
    schedule = keras.optimizers.schedules.ExponentialDecay(0.01, 3, 0.9)
    model.compile(optimizer or keras.optimizers.Adam(schedule), "mse")
    return model


def fit(model, path, epochs, *others):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(16, 5, 2)).astype("float32")
    resumable = ResumableTraining(path)
    model.fit(
        x,
        x[:, 0, :1],
        batch_size=4,
        epochs=epochs,
        initial_epoch=resumable.epoch,
        shuffle=False,
        verbose=0,
        callbacks=[*others, resumable],
    )
    return resumable


def state(model):
    return [to_numpy(v) for v in model.variables + model.optimizer.variables]


def assert_same(model, other):
    for one, two in zip(state(model), state(other), strict=True):
        assert one.tobytes() == two.tobytes()


class EndsAt(keras.callbacks.Callback):
    """Raises what a user's own error would be, in the middle of an epoch."""

    def __init__(self, epoch):
        super().__init__()
        self.epoch = epoch

    def on_epoch_begin(self, epoch, logs=None):
        self.now = epoch

    def on_train_batch_end(self, batch, logs=None):
        if (self.now, batch) == (self.epoch, 2):
            raise KeyboardInterrupt


def test_training_that_was_ended_goes_on_bit_for_bit(tmp_path):
    whole = make()
    fit(whole, tmp_path / "whole.npz", 5)
    for epoch in (0, 3):
        with pytest.raises(KeyboardInterrupt):
            fit(make(), tmp_path / "ended.npz", 5, EndsAt(epoch))
    ended = make()
    fit(ended, tmp_path / "ended.npz", 5)
    assert_same(ended, whole)


@pytest.mark.exhaustive
@pytest.mark.one_backend
def test_its_history_is_that_of_all_epochs(tmp_path):
    once = fit(make(), tmp_path / "once.npz", 5)
    fit(make(), tmp_path / "twice.npz", 2)
    twice = fit(make(), tmp_path / "twice.npz", 5)
    assert twice.epoch == once.epoch == 5
    assert twice.history == once.history == ResumableTraining(once.path).history
    assert len(once.history["loss"]) == 5


@pytest.mark.each_backend
@pytest.mark.exhaustive
def test_the_average_that_training_ends_with_is_not_trained_on(tmp_path):
    def averaging():
        return make(keras.optimizers.SGD(0.1, use_ema=True, ema_momentum=0.5))

    whole, ended = averaging(), averaging()
    fit(whole, tmp_path / "whole.npz", 4)
    fit(averaging(), tmp_path / "ended.npz", 2)
    fit(ended, tmp_path / "ended.npz", 4)
    assert_same(ended, whole)


def test_bfloat16_comes_back_as_it_was(tmp_path):
    first, second = make(dtype="bfloat16"), make(dtype="bfloat16")
    fit(first, tmp_path / "state.npz", 2)
    fit(second, tmp_path / "state.npz", 2)
    assert_same(second, first)


@pytest.mark.one_backend
@pytest.mark.parametrize("place", ["file/state.npz", "taken.npz"])
def test_a_place_that_cannot_be_written_is_named_before_training(
    tmp_path, place
):
    (tmp_path / "file").write_text("")
    (tmp_path / "taken.npz.new").mkdir()
    model = make()
    before = state(model)
    with pytest.raises(OSError, match="cannot be written") as error:
        fit(model, tmp_path / place, 1)
    assert error.value.filename == str(tmp_path / place)
    for one, two in zip(before, state(model)[: len(before)], strict=True):
        np.testing.assert_array_equal(one, two)


@pytest.mark.one_backend
def test_a_full_disk_leaves_the_last_good_state(tmp_path, monkeypatch):
    path = tmp_path / "state.npz"
    fit(make(), path, 2)
    good = path.read_bytes()

    def full(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left .* stays") as error:
        fit(make(), path, 3)
    assert (error.value.errno, error.value.filename) == (
        errno.ENOSPC,
        str(path),
    )
    assert path.read_bytes() == good
    assert os.listdir(tmp_path) == ["state.npz"]


@pytest.mark.one_backend
def test_a_damaged_file_is_named(tmp_path):
    path = tmp_path / "state.npz"
    fit(make(), path, 1)
    good = path.read_bytes()
    for damaged in (b"", b"PK", good[: len(good) // 2], good[:-1], good[1:]):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match="state.npz cannot be read"):
            ResumableTraining(path)
    middle = bytearray(good)
    middle[len(good) // 2] ^= 255
    path.write_bytes(middle)
    with pytest.raises(ValueError, match="state.npz cannot be read"):
        ResumableTraining(path)


@pytest.mark.one_backend
def test_another_model_is_refused(tmp_path):
    fit(make(), tmp_path / "state.npz", 1)
    for other in (make(units=4), make(keras.optimizers.SGD())):
        with pytest.raises(ValueError, match="another model or optimizer"):
            fit(other, tmp_path / "state.npz", 2)


@pytest.mark.one_backend
def test_it_starts_from_its_epoch_only(tmp_path):
    fit(make(), tmp_path / "state.npz", 2)
    resumable = ResumableTraining(tmp_path / "state.npz")
    with pytest.raises(ValueError, match="needs `initial_epoch=2`"):
        make().fit(np.ones((4, 5, 2)), np.ones((4, 1)), callbacks=[resumable])


def test_a_model_not_built_is_refused(tmp_path):
    model = keras.Sequential([keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    resumable = ResumableTraining(tmp_path / "state.npz")
    resumable.set_model(model)
    with pytest.raises(ValueError, match="built before `fit`"):
        resumable.on_train_begin()
