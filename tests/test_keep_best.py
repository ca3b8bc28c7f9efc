"""The best model stays whole, whatever happens while it is written."""

import contextlib
import os
import re
import resource

import keras
import numpy as np
import pytest
from references import assert_same

from keras_rin.callbacks import KeepBest

pytestmark = pytest.mark.one_backend

X = np.linspace(-1, 1, 16, dtype="float32").reshape(8, 2)


def make():
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse", run_eagerly=True)
    return model


def epochs_saved(path, values, **kwargs):
    """The epoch in the file after each one, of logs with these values."""
    kwargs = {"mode": "min", **kwargs}
    keep, model = KeepBest(path, "metric", **kwargs), make()
    keep.set_model(model)
    keep.on_train_begin()
    saved = []
    for epoch, value in enumerate(values):
        model.layers[-1].bias.assign([epoch])
        keep.on_epoch_end(epoch, {"loss": 0.0, "metric": value})
        if path.exists():
            best = keras.models.load_model(path)
            saved.append(int(best.get_weights()[1][0]))
    return saved, keep.best


NAN = float("nan")


@pytest.mark.parametrize(
    "values, options, saved, best",
    [
        ([4.0, 2.0, NAN, 2.5, 1.0], {}, [0, 1, 1, 1, 4], 1.0),
        ([4.0, 2.0, 5.0], {"mode": "max"}, [0, 0, 2], 5.0),
        ([4.0, 2.0], {"initial_value_threshold": 3.0}, [1], 2.0),
        ([NAN, 2.0], {"initial_value_threshold": NAN}, [1], 2.0),
        ([4.0, 4.0], {}, [0, 0], 4.0),
        ([4.0, 4.0], {"mode": "max"}, [0, 0], 4.0),
    ],
)
def test_the_file_is_of_the_best_epoch(tmp_path, values, options, saved, best):
    path = tmp_path / "new" / "best.keras"
    assert epochs_saved(path, values, **options) == (saved, best)


def test_a_relative_path_is_of_the_folder_where_the_callback_was_made(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    keep = KeepBest("best.keras", "loss")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    os.chdir(elsewhere)
    make().fit(X, X[:, :1], callbacks=[keep], verbose=0)
    assert list(elsewhere.iterdir()) == []
    assert keras.models.load_model(tmp_path / "best.keras").built


def test_it_keeps_what_model_checkpoint_keeps(tmp_path):
    """Without a fault, the file is the one of Keras's own callback."""
    files = [tmp_path / name for name in ("ours.keras", "keras.keras")]
    make().fit(
        X,
        X[:, :1] * X[:, 1:],
        epochs=5,
        validation_data=(X[:2], X[:2, :1]),
        callbacks=[
            KeepBest(files[0], "val_loss", "max"),
            keras.callbacks.ModelCheckpoint(
                files[1], "val_loss", save_best_only=True, mode="max"
            ),
        ],
        verbose=0,
    )
    ours, theirs = (keras.models.load_model(f).get_weights() for f in files)
    assert_same(ours, theirs, 0, 0)


@contextlib.contextmanager
def files_of_at_most(size):
    """As on a full disk, the system refuses to write on."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_on_a_full_disk_the_old_file_stays_whole(tmp_path):
    path = tmp_path / "best.keras"
    path.write_text("old")
    with pytest.raises(OSError, match="best model.*is unchanged") as error:
        with files_of_at_most(100):
            epochs_saved(path, [1.0])
    assert error.value.filename == str(path)
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["best.keras"]


def test_a_wrong_mode_and_a_missing_metric_are_named(tmp_path):
    for monitor, mode in (("val_loss", "auto"), ("val_accuracy", None)):
        with pytest.raises(ValueError, match=f"'min' or 'max'.*'{monitor}'"):
            KeepBest(tmp_path / "best.keras", monitor, mode)
    for monitor, logs in (("accuracy", {}), ("val_accuracy", {"val_loss": 1})):
        keep = KeepBest(tmp_path / "best.keras", monitor, "max")
        with pytest.raises(ValueError, match=f"one of .*loss'.*'{monitor}'"):
            keep.on_epoch_end(0, {"loss": 1.0, **logs})
    keep = KeepBest(tmp_path / "best.keras", "f1", "max")
    with pytest.raises(ValueError, match="of one value.*'f1', of 3"):
        keep.on_epoch_end(0, {"f1": np.ones(3)})


def test_epochs_without_validation_are_passed_over(tmp_path):
    keep, model = KeepBest(tmp_path / "best.keras"), make()
    y = X[:, :1]
    with pytest.warns(UserWarning, match="was not validated") as caught:
        model.fit(
            X,
            y,
            epochs=4,
            validation_data=(X, y),
            validation_freq=2,
            callbacks=[keep],
            verbose=0,
        )
    assert caught[0].filename == __file__
    best = keras.models.load_model(tmp_path / "best.keras")
    assert best.evaluate(X, y, verbose=0) == pytest.approx(keep.best)
    assert keep.best == min(model.history.history["val_loss"])


def test_a_training_without_validation_ends_with_an_error(tmp_path):
    keep = KeepBest(tmp_path / "best.keras")
    with (
        pytest.warns(UserWarning, match="was not validated"),
        pytest.raises(ValueError, match="one of .'loss'.*'val_loss'"),
    ):
        make().fit(X, X[:, :1], epochs=2, callbacks=[keep], verbose=0)


@pytest.mark.parametrize("name", ["best.h5", "best_{epoch}.keras"])
def test_another_path_is_refused_before_training(tmp_path, name):
    with pytest.raises(ValueError, match=f"in '.keras'.*{re.escape(name)}"):
        KeepBest(tmp_path / name)


def test_what_a_kill_left_is_removed(tmp_path):
    (tmp_path / ".best.keras.abc.new").mkdir()
    epochs_saved(tmp_path / "best.keras", [4.0])
    assert os.listdir(tmp_path) == ["best.keras"]
