import dataclasses
import errno
import os
import re

import keras
import numpy as np
import pytest
from references import assert_same
from references import to_numpy

from keras_rin.callbacks import ResumableTraining
from keras_rin.callbacks import _checkpoint
from keras_rin.layers import RIN
from keras_rin.layers import NoisyRNN

BACKEND = keras.backend.backend()
# Without a graph TensorFlow is sooner done with so few steps.
EAGER = BACKEND == "tensorflow"


def make(optimizer=None, dtype=None, units=3):
    """A network with everything that a step of training changes."""
    keras.utils.set_random_seed(7)
    cell = keras.layers.SimpleRNNCell(
        3, recurrent_initializer="glorot_uniform", dtype=dtype
    )
    options = {"return_sequences": True, "dropout": 0.3, "fused": False}
    model = keras.Sequential(
        [
            keras.Input((5, 2), dtype=dtype),
            RIN(units, dtype=dtype, **options),
            keras.layers.BatchNormalization(dtype=dtype),
            keras.layers.GaussianNoise(0.1, dtype=dtype),
            NoisyRNN(cell, dtype=dtype),
            keras.layers.Dense(1, dtype=dtype),
        ]
    )
    schedule = keras.optimizers.schedules.ExponentialDecay(0.01, 3, 0.9)
    model.compile(optimizer or keras.optimizers.Adam(schedule), "mse")
    return model


X = np.random.default_rng(0).normal(size=(16, 5, 2)).astype("float32")
BATCH = np.ones((4, 2))


def fit(model, resumable, epochs, *others, data=(X, X[:, 0, :1])):
    """Four batches an epoch, or two of two samples."""
    if not isinstance(resumable, ResumableTraining):
        resumable = ResumableTraining(resumable)
    model.fit(
        *data,
        batch_size=min(4, len(data[0]) // 2),
        epochs=epochs,
        initial_epoch=resumable.epoch,
        shuffle=False,
        verbose=0,
        callbacks=[*others, resumable],
    )
    return resumable


def assert_same_state(*models):
    states = (
        [to_numpy(v) for v in model.variables + model.optimizer.variables]
        for model in models
    )
    for value, expected in zip(*states, strict=True):
        assert value.tobytes() == expected.tobytes()


class EndsAt(keras.callbacks.Callback):
    """Raises what a user's own error would be, in the middle of an epoch."""

    def __init__(self, epoch):
        super().__init__()
        self.epoch = epoch

    def on_epoch_begin(self, epoch, logs=None):
        self.now = epoch

    def on_train_batch_end(self, batch, logs=None):
        if (self.now, batch) == (self.epoch, 1):
            raise KeyboardInterrupt


def test_training_that_was_ended_resumes_bit_for_bit(tmp_path):
    whole = make()
    once = fit(whole, tmp_path / "whole.npz", 4)
    interrupted = make()  # which seeds Torch's generator, of which all draw
    with pytest.raises(KeyboardInterrupt):
        fit(interrupted, tmp_path / "interrupted.npz", 4, EndsAt(0))
    resumable = ResumableTraining(tmp_path / "interrupted.npz")
    with pytest.raises(KeyboardInterrupt):
        fit(interrupted, resumable, 4, EndsAt(2))
    other = make()
    twice = fit(other, tmp_path / "interrupted.npz", 4)
    assert_same_state(other, whole)
    assert twice.epoch == once.epoch == 4
    stored = ResumableTraining(once.path).history
    assert twice.history == once.history == stored
    assert len(once.history["loss"]) == 4


@pytest.mark.one_backend
def test_the_same_callback_resumes_from_its_file(tmp_path):
    whole, interrupted = tiny("adam"), tiny("adam")
    fit_tiny(whole, tmp_path / "whole.npz", 3, y=1.0)
    resumable, data = (
        ResumableTraining(tmp_path / "interrupted.npz"),
        (BATCH, BATCH),
    )
    with pytest.raises(KeyboardInterrupt):
        fit(interrupted, resumable, 3, EndsAt(1), data=data)
    fit(interrupted, resumable, 3, data=data)
    assert_same_state(interrupted, whole)


@pytest.mark.skipif(
    BACKEND == "torch",
    reason="Keras 3.15 cannot train a stateful layer on Torch",
)
def test_the_states_of_stateful_layers_are_kept(tmp_path):
    def stateful():
        keras.utils.set_random_seed(7)
        both = keras.layers.Bidirectional(
            keras.layers.LSTM(3, stateful=True, return_sequences=True)
        )
        last, inputs = RIN(3, stateful=True), keras.Input(batch_shape=(4, 5, 2))
        model = keras.Sequential([inputs, keras.Sequential([both]), last])
        model.compile("sgd", "mse", run_eagerly=EAGER)
        return model, [*both.states, *last.states]

    (whole, states), (interrupted, _), (resumed, again) = (
        stateful() for _ in range(3)
    )
    fit(whole, tmp_path / "whole.npz", 4)
    fit(interrupted, tmp_path / "interrupted.npz", 2)
    fit(resumed, tmp_path / "interrupted.npz", 4)
    assert_same_state(resumed, whole)
    assert_same(again, states, 0, 0)


@pytest.mark.exhaustive
def test_the_average_that_training_ends_with_is_not_trained_on(tmp_path):
    def averaging():
        return make(keras.optimizers.SGD(0.1, use_ema=True, ema_momentum=0.5))

    whole, resumed = averaging(), averaging()
    fit(whole, tmp_path / "whole.npz", 4)
    fit(averaging(), tmp_path / "interrupted.npz", 2)
    fit(resumed, tmp_path / "interrupted.npz", 4)
    assert_same_state(resumed, whole)


def test_bfloat16_comes_back_as_it_was(tmp_path):
    first, second = make(dtype="bfloat16"), make(dtype="bfloat16")
    fit(first, tmp_path / "state.npz", 1)
    fit(second, tmp_path / "state.npz", 1)
    assert_same_state(second, first)


def tiny(optimizer="sgd", layers=1, **kwargs):
    keras.utils.set_random_seed(7)
    dense = [keras.layers.Dense(2) for _ in range(layers)]
    model = keras.Sequential([keras.Input((2,)), *dense])
    model.compile(optimizer, "mse", run_eagerly=EAGER, **kwargs)
    return model


def fit_tiny(model, path, epochs, *others, y=0.0, settings=None):
    resumable = ResumableTraining(path, settings)
    return fit(model, resumable, epochs, *others, data=(BATCH, 0 * BATCH + y))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "state.npz"


@pytest.mark.one_backend
def test_a_relative_path_is_of_the_folder_where_the_callback_was_made(
    tmp_path, monkeypatch
):
    """Training that changes the folder writes one file, and resumes from it."""
    monkeypatch.chdir(tmp_path)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    changes = keras.callbacks.LambdaCallback(
        on_epoch_begin=lambda epoch, logs: os.chdir(elsewhere)
    )
    fit_tiny(tiny(), "state.npz", 2, changes)
    assert list(elsewhere.iterdir()) == []
    os.chdir(tmp_path)
    assert ResumableTraining("state.npz").epoch == 2


@pytest.mark.one_backend
def test_a_path_that_cannot_be_written_is_named_before_training(tmp_path):
    (tmp_path / "file").write_text("")
    path = tmp_path / "file" / "state.npz"
    with pytest.raises(NotADirectoryError, match="cannot be read") as error:
        ResumableTraining(path)
    assert error.value.filename == str(path)


@pytest.mark.one_backend
def test_a_full_disk_leaves_the_last_good_state(path, monkeypatch):
    fit_tiny(tiny(), path, 2)
    good = path.read_bytes()

    def full(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left .* unchanged") as error:
        fit_tiny(tiny(), path, 3)
    assert error.value.errno == errno.ENOSPC
    assert error.value.filename == str(path)
    assert path.read_bytes() == good
    assert os.listdir(path.parent) == ["state.npz"]


@pytest.mark.one_backend
def test_a_damaged_file_is_named(path):
    fit_tiny(tiny(), path, 1)
    good = path.read_bytes()
    half = len(good) // 2
    changed = good[:half] + bytes([good[half] ^ 255]) + good[half + 1 :]
    for damaged in (b"", b"PK", good[:half], good[:-1], good[1:], changed):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match="state.npz cannot be read"):
            ResumableTraining(path)


@pytest.mark.one_backend
@pytest.mark.parametrize(
    "optimizer",
    [keras.optimizers.AdamW, lambda: keras.optimizers.Adam(beta_1=0.5)],
)
def test_another_optimizer_of_equal_shapes_is_refused(path, optimizer):
    fit_tiny(tiny("adam"), path, 1)
    good, other = path.read_bytes(), tiny(optimizer())
    before = other.get_weights()
    with pytest.raises(ValueError, match="of another training.* optimizer"):
        fit_tiny(other, path, 2)
    assert path.read_bytes() == good
    assert_same(other.get_weights(), before, 0, 0)


@pytest.mark.one_backend
def test_the_same_model_made_later_in_a_process_resumes(path):
    fit_tiny(tiny("adam"), path, 1)
    keras.layers.Dense(1), keras.optimizers.Adam()
    assert fit_tiny(tiny("adam"), path, 2).epoch == 2


@pytest.mark.one_backend
def test_other_settings_are_refused_and_named(path):
    settings = {"samples": 500, "layers": ["a", "b"], "rate": 0.1}
    fit_tiny(tiny(), path, 1, settings=settings)
    good = path.read_bytes()
    again = {**settings, "layers": ("a", "b")}  # tuples are lists to JSON
    assert fit_tiny(tiny(), path, 1, settings=again).epoch == 1
    for other, difference in (
        ({**settings, "samples": 5}, "settings.samples: 500, now 5"),
        ({**settings, "new": 1}, "settings.new: null, now 1"),
        (None, "settings.samples: 500, now null"),
    ):
        difference = re.escape(difference)
        with pytest.raises(ValueError, match=f"another training.*{difference}"):
            fit_tiny(tiny(), path, 2, settings=other)
    for settings in ([1], {"x": object()}, {"x": {1, 2}}):
        with pytest.raises(ValueError, match="`settings` must be a dict"):
            ResumableTraining(path, settings)
    assert path.read_bytes() == good


class Halves(keras.callbacks.Callback):
    """Halves the learning rate, as ReduceLROnPlateau would."""

    def on_epoch_end(self, epoch, logs=None):
        self.model.optimizer.learning_rate = 0.1 * 0.5 ** (epoch + 1)


def sgd(rate=0.1):
    return tiny(keras.optimizers.SGD(rate))


def test_a_rate_that_a_callback_changed_is_kept(path):
    model, resumed, whole = sgd(), sgd(), sgd()
    fit_tiny(model, path, 2, Halves())
    fit_tiny(model, path, 3, Halves())  # warnings are errors
    fit_tiny(resumed, path, 4, Halves())
    fit_tiny(whole, path.with_name("whole.npz"), 4, Halves())
    assert_same_state(resumed, whole)


@pytest.mark.one_backend
def test_a_rate_that_was_changed_in_the_script_is_warned_of(path):
    fit_tiny(sgd(0.25), path, 1)
    other, message = sgd(0.5), r"is \[0.25\], .* not \[0.5\], w"
    with pytest.warns(UserWarning, match=message) as caught:
        fit_tiny(other, path, 2)
    lines = [w.filename for w in caught if w.category is UserWarning]
    assert lines == [__file__]
    assert float(other.optimizer.learning_rate) == 0.25


class Overflows(keras.callbacks.Callback):
    """What the last update of an epoch would leave, its loss still finite."""

    def on_epoch_end(self, epoch, logs=None):
        self.model.layers[-1].kernel.assign(np.full((2, 2), np.inf))


def test_an_update_that_overflows_does_not_replace_the_good_checkpoint(path):
    fit_tiny(tiny(), path, 2)
    good = path.read_bytes()
    message = "Epoch 3 ends with sequential.*/kernel not finite.*keeps"
    with pytest.raises(FloatingPointError, match=message):
        fit_tiny(tiny(), path, 3, Overflows())
    assert path.read_bytes() == good


class Smallest(keras.layers.Layer):
    """Begins with the smallest number of none, which is infinite."""

    def build(self, shape):
        infinity = keras.initializers.Constant(np.inf)
        self.add_weight(shape=(), initializer=infinity, trainable=False)

    def call(self, x):
        return x


@pytest.mark.one_backend
def test_a_variable_that_was_never_finite_does_not_end_training(path):
    model = keras.Sequential([tiny(), Smallest()])
    model.compile("sgd", "mse", run_eagerly=EAGER)
    assert fit_tiny(model, path, 1).epoch == 1


@pytest.mark.one_backend
def test_a_symbolic_link_stays_one(tmp_path):
    (tmp_path / "disk").mkdir()
    link, real = tmp_path / "link.npz", tmp_path / "disk" / "state.npz"
    link.symlink_to(real)
    fit_tiny(tiny(), link, 1)
    assert fit_tiny(tiny(), link, 2).epoch == 2
    assert link.is_symlink() and ResumableTraining(real).epoch == 2


def test_a_metric_of_several_values_is_in_the_history(path):
    def train(epochs):
        model = tiny(metrics=[keras.metrics.F1Score()])
        resumable = fit_tiny(model, path, epochs, y=1.0)
        histories = resumable.history, model.history.history
        return [list(map(to_numpy, logs["f1_score"])) for logs in histories]

    first, of_keras = train(1)
    assert_same(first, of_keras, 0, 0)
    both, last = train(2)
    assert [values.shape for values in both] == [(2,), (2,)]
    for values, expected in zip(both, [*first, *last], strict=True):
        assert values.dtype == expected.dtype
        assert values.tobytes() == expected.tobytes()


def at_epoch(number, function):
    """At an epoch, what another process does with the same path."""
    return keras.callbacks.LambdaCallback(
        on_epoch_end=lambda epoch, logs: epoch == number and function()
    )


@pytest.mark.one_backend
def test_of_two_trainings_with_one_file_one_is_refused(path):
    def train_another():
        fit_tiny(tiny(), path, 3, y=2.0)

    with pytest.raises(FileExistsError, match="Another process has written"):
        fit_tiny(tiny(), path, 3, at_epoch(1, train_another), y=1.0)
    assert ResumableTraining(path).epoch == 3  # the other's
    assert os.listdir(path.parent) == ["state.npz"]


@pytest.mark.one_backend
def test_a_file_that_appeared_since_is_not_written_over(path):
    resumable = ResumableTraining(path)
    fit_tiny(tiny(), path, 2)
    good = path.read_bytes()
    with pytest.raises(FileExistsError, match="after 2 epochs"):
        tiny().fit(BATCH, BATCH, callbacks=[resumable])
    assert path.read_bytes() == good


@pytest.mark.one_backend
def test_a_file_that_was_touched_or_deleted_is_written_again(path):
    fit_tiny(tiny(), path, 3, at_epoch(1, path.touch))
    fit_tiny(tiny(), path, 5, at_epoch(3, path.unlink))
    assert ResumableTraining(path).epoch == 5


@pytest.mark.one_backend
def test_unfinished_files_of_a_killed_training_are_removed(path):
    unfinished = path.with_name(".state.npz.abc.new")
    unfinished.mkdir()
    (unfinished / "state.npz").write_bytes(b"half")
    fit_tiny(tiny(), path, 1)
    assert os.listdir(path.parent) == ["state.npz"]


@pytest.mark.one_backend
def test_it_starts_from_its_epoch_only(path):
    fit_tiny(tiny(), path, 2)
    with pytest.raises(ValueError, match="needs `initial_epoch=2`"):
        tiny().fit(BATCH, BATCH, callbacks=[ResumableTraining(path)])


@pytest.mark.one_backend
def test_a_model_not_built_is_refused(path):
    model = keras.Sequential([keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    resumable = ResumableTraining(path)
    resumable.set_model(model)
    with pytest.raises(ValueError, match="built before `fit`"):
        resumable.on_train_begin()


class Adversaries(keras.Model):
    """Two layers, each with an optimizer of its own."""

    def __init__(self, build=True):
        super().__init__()
        self.dense = [keras.layers.Dense(1) for _ in range(2)]
        self.build((None, 2))
        self.optimizers = [keras.optimizers.Adam(0.1) for _ in range(2)]
        self.first, self.second = self.optimizers
        for optimizer, layer in zip(self.optimizers, self.dense, strict=True):
            if build:
                optimizer.build(layer.trainable_variables)

    def build(self, shape):
        for layer in self.dense:
            layer.build(shape)
        self.built = True

    def call(self, x):
        return self.dense[0](x) - self.dense[1](x)

    def train_step(self, data):
        import tensorflow as tf

        x, y = data
        with tf.GradientTape(persistent=True) as tape:
            loss = keras.ops.mean((self(x) - y) ** 2)
        for optimizer, layer in zip(self.optimizers, self.dense, strict=True):
            weights = layer.trainable_variables
            optimizer.apply(tape.gradient(loss, weights), weights)
        return {"loss": loss}


def adversaries(**kwargs):
    keras.utils.set_random_seed(3)
    model = Adversaries(**kwargs)
    model.compile(run_eagerly=True)
    return model


@pytest.mark.skipif(
    BACKEND != "tensorflow",
    reason="the training step is written for TensorFlow",
)
def test_optimizers_in_other_attributes_are_kept(tmp_path):
    whole, resumed = adversaries(), adversaries()
    fit_tiny(whole, tmp_path / "whole.npz", 4)
    fit_tiny(adversaries(), tmp_path / "parts.npz", 2)
    fit_tiny(resumed, tmp_path / "parts.npz", 4)
    assert_same(resumed.get_weights(), whole.get_weights(), 0, 0)
    with pytest.raises(ValueError, match="all optimizers of a model to be bu"):
        fit_tiny(adversaries(build=False), tmp_path / "new.npz", 1)


@pytest.mark.one_backend
def test_a_file_with_arrays_of_other_shapes_is_refused(path):
    fit_tiny(tiny(), path, 1)
    saved = _checkpoint.read(path)
    arrays = [a[:1] if a.shape == (2, 2) else a for a in saved.arrays]
    _checkpoint.write(path, dataclasses.replace(saved, arrays=arrays))
    with pytest.raises(ValueError, match="does not contain the arrays"):
        fit_tiny(tiny(), path, 2)
