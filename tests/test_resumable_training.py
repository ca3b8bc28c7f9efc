import dataclasses
import errno
import os
import re

import keras
import numpy as np
import pytest
from references import to_numpy

from keras_rin.callbacks import ResumableTraining
from keras_rin.callbacks import _checkpoint
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
    ours = isinstance(path, ResumableTraining)
    resumable = path if ours else ResumableTraining(path)
    return fit_on(x, x[:, 0, :1], model, resumable, epochs, others)


def fit_on(x, y, model, resumable, epochs, others):
    """Four batches of `x`, or two of four samples, an epoch."""
    model.fit(
        x,
        y,
        batch_size=min(4, len(x) // 2),
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
    fit(make(), "state.npz", 2, changes)
    assert list(elsewhere.iterdir()) == []
    os.chdir(tmp_path)
    assert ResumableTraining("state.npz").epoch == 2


@pytest.mark.one_backend
def test_the_same_callback_resumes_from_its_file(tmp_path):
    whole = make()
    fit(whole, tmp_path / "whole.npz", 3)
    ended = make()
    resumable = ResumableTraining(tmp_path / "ended.npz")
    with pytest.raises(KeyboardInterrupt):
        fit(ended, resumable, 3, EndsAt(1))
    fit(ended, resumable, 3)
    assert_same(ended, whole)


@pytest.mark.skipif(
    keras.backend.backend() == "torch",
    reason="Keras 3.15 cannot train a stateful layer on Torch",
)
def test_the_states_of_stateful_layers_are_kept(tmp_path):
    def stateful():
        keras.utils.set_random_seed(7)
        both = keras.layers.Bidirectional(
            keras.layers.LSTM(3, stateful=True, return_sequences=True)
        )
        last = RIN(3, stateful=True)
        model = keras.Sequential(
            [
                keras.Input(batch_shape=(4, 5, 2)),
                keras.Sequential([both]),
                last,
                keras.layers.Dense(1),
            ]
        )
        model.compile("sgd", "mse")
        return model, (*both.states, *last.states)

    whole, states = stateful()
    fit(whole, tmp_path / "whole.npz", 4)
    fit(stateful()[0], tmp_path / "ended.npz", 2)
    resumed, again = stateful()
    fit(resumed, tmp_path / "ended.npz", 4)
    assert_same(resumed, whole)
    for one, other in zip(again, states, strict=True):
        np.testing.assert_array_equal(to_numpy(one), to_numpy(other))


@pytest.mark.exhaustive
@pytest.mark.one_backend
def test_its_history_is_that_of_all_epochs(tmp_path):
    once = fit(make(), tmp_path / "once.npz", 5)
    fit(make(), tmp_path / "twice.npz", 2)
    twice = fit(make(), tmp_path / "twice.npz", 5)
    assert twice.epoch == once.epoch == 5
    assert twice.history == once.history == ResumableTraining(once.path).history
    assert len(once.history["loss"]) == 5


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


def test_a_place_that_cannot_be_written_is_named_before_training(tmp_path):
    (tmp_path / "file").write_text("")
    path = tmp_path / "file" / "state.npz"
    with pytest.raises(NotADirectoryError, match="cannot be read") as error:
        ResumableTraining(path)
    assert error.value.filename == str(path)


@pytest.mark.one_backend
def test_a_full_disk_leaves_the_last_good_state(tmp_path, monkeypatch):
    path = tmp_path / "state.npz"
    fit_tiny(tiny(), path, 2)
    good = path.read_bytes()

    def full(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left .* unchanged") as error:
        fit_tiny(tiny(), path, 3)
    assert (error.value.errno, error.value.filename) == (
        errno.ENOSPC,
        str(path),
    )
    assert path.read_bytes() == good
    assert os.listdir(tmp_path) == ["state.npz"]


@pytest.mark.one_backend
def test_a_damaged_file_is_named(tmp_path):
    path = tmp_path / "state.npz"
    fit_tiny(tiny(), path, 1)
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


def tiny(optimizer="sgd", layers=1, **kwargs):
    keras.utils.set_random_seed(7)
    dense = [keras.layers.Dense(2) for _ in range(layers)]
    model = keras.Sequential([keras.Input((2,)), *dense])
    model.compile(optimizer, "mse", **kwargs)
    return model


def fit_tiny(model, path, epochs, *others, y=0.0, settings=None):
    resumable = ResumableTraining(path, settings)
    x, y = np.ones((4, 2)), np.full((4, 2), y)
    return fit_on(x, y, model, resumable, epochs, others)


@pytest.mark.one_backend
@pytest.mark.parametrize(
    "optimizer",
    [keras.optimizers.AdamW, lambda: keras.optimizers.Adam(beta_1=0.5)],
)
def test_another_optimizer_of_equal_shapes_is_refused(tmp_path, optimizer):
    path = tmp_path / "state.npz"
    fit_tiny(tiny("adam"), path, 1)
    good = path.read_bytes()
    other = tiny(optimizer())
    before = state(other)
    with pytest.raises(ValueError, match="of another training.* optimizer"):
        fit_tiny(other, path, 2)
    assert path.read_bytes() == good
    for one, two in zip(before, state(other), strict=False):
        np.testing.assert_array_equal(one, two)


@pytest.mark.one_backend
def test_the_same_model_made_later_in_a_process_resumes(tmp_path):
    fit_tiny(tiny("adam"), tmp_path / "state.npz", 1)
    keras.layers.Dense(1), keras.optimizers.Adam()
    assert fit_tiny(tiny("adam"), tmp_path / "state.npz", 2).epoch == 2


@pytest.mark.one_backend
def test_other_settings_are_refused_and_named(tmp_path):
    path = tmp_path / "state.npz"
    kept = {"samples": 500, "layers": ["a", "b"], "rate": 0.1}
    fit_tiny(tiny(), path, 1, settings=kept)
    good = path.read_bytes()
    again = {**kept, "layers": ("a", "b")}  # tuples are lists to JSON
    assert fit_tiny(tiny(), path, 1, settings=again).epoch == 1
    assert path.read_bytes() == good
    for other, difference in (
        ({**kept, "samples": 5}, "settings.samples: 500, now 5;"),
        ({**kept, "new": 1}, "settings.new: null, now 1."),
        (None, "settings.samples: 500, now null"),
    ):
        found = re.escape(difference.rstrip(".;"))
        with pytest.raises(ValueError, match=f"of another training.*{found}"):
            fit_tiny(tiny(), path, 2, settings=other)
    assert path.read_bytes() == good


@pytest.mark.parametrize("settings", [[1], {"x": object()}, {"x": {1, 2}}])
def test_settings_that_json_does_not_know_are_refused(tmp_path, settings):
    with pytest.raises(ValueError, match="`settings` must be a dict"):
        ResumableTraining(tmp_path / "state.npz", settings)


class Halves(keras.callbacks.Callback):
    """Halves the learning rate, as ReduceLROnPlateau would."""

    def on_epoch_end(self, epoch, logs=None):
        self.model.optimizer.learning_rate = 0.1 * 0.5 ** (epoch + 1)


def test_a_rate_that_a_callback_changed_is_kept(tmp_path):
    path = tmp_path / "state.npz"
    model = tiny(keras.optimizers.SGD(0.1))
    fit_tiny(model, path, 2, Halves())
    fit_tiny(model, path, 3, Halves())  # warnings are errors
    resumed = tiny(keras.optimizers.SGD(0.1))
    fit_tiny(resumed, path, 4, Halves())
    whole = tiny(keras.optimizers.SGD(0.1))
    fit_tiny(whole, tmp_path / "whole.npz", 4, Halves())
    assert_same(resumed, whole)


def test_a_rate_that_was_changed_in_the_script_is_warned_of(tmp_path):
    path = tmp_path / "state.npz"
    fit_tiny(tiny(keras.optimizers.SGD(0.25)), path, 1)
    other = tiny(keras.optimizers.SGD(0.5))
    with pytest.warns(
        UserWarning, match=r"is \[0.25\], .* not \[0.5\], w"
    ) as caught:
        fit_tiny(other, path, 2)
    lines = [w.filename for w in caught if w.category is UserWarning]
    assert lines == [__file__]
    assert float(other.optimizer.learning_rate) == 0.25


def test_an_update_that_overflows_does_not_replace_the_good_checkpoint(
    tmp_path,
):
    path = tmp_path / "state.npz"
    fit_tiny(tiny(keras.optimizers.SGD(0.1)), path, 2)
    good = path.read_bytes()
    with pytest.raises(
        FloatingPointError,
        match="Epoch 3 ends with sequential.*/kernel not finite.*keeps",
    ):
        fit_tiny(tiny(keras.optimizers.SGD(0.1)), path, 3, Overflows())
    assert path.read_bytes() == good


class Overflows(keras.callbacks.Callback):
    """What the last update of an epoch would leave, its loss still finite."""

    def on_epoch_end(self, epoch, logs=None):
        self.model.layers[-1].kernel.assign(np.full((2, 2), np.inf))


class Smallest(keras.layers.Layer):
    """Begins with the smallest number of none, which is infinite."""

    def build(self, shape):
        self.smallest = self.add_weight(
            shape=(),
            initializer=keras.initializers.Constant(np.inf),
            trainable=False,
        )

    def call(self, x):
        return x


def test_what_was_never_finite_does_not_end_training(tmp_path):
    model = keras.Sequential([tiny(), Smallest()])
    model.compile("sgd", "mse")
    assert fit_tiny(model, tmp_path / "state.npz", 1).epoch == 1


@pytest.mark.one_backend
def test_a_symbolic_link_stays_one(tmp_path):
    (tmp_path / "disk").mkdir()
    link, real = tmp_path / "link.npz", tmp_path / "disk" / "state.npz"
    link.symlink_to(real)
    fit_tiny(tiny(), link, 1)
    assert fit_tiny(tiny(), link, 2).epoch == 2
    assert link.is_symlink() and ResumableTraining(real).epoch == 2


def test_a_metric_of_several_values_is_in_the_history(tmp_path):
    def train(epochs):
        model = tiny(metrics=[keras.metrics.F1Score()])
        kept = fit_tiny(model, tmp_path / "state.npz", epochs, y=1.0)
        return kept.history["f1_score"], model.history.history["f1_score"]

    first, of_keras = train(1)
    np.testing.assert_array_equal(first, of_keras)
    both, last = train(2)
    assert [one.shape for one in both] == [(2,), (2,)]
    pairs = zip(
        map(to_numpy, both), map(to_numpy, [*first, *last]), strict=True
    )
    for one, two in pairs:
        assert (one.dtype, one.tobytes()) == (two.dtype, two.tobytes())


class Elsewhere(keras.callbacks.Callback):
    """At an epoch, what another process does with the same path."""

    def __init__(self, epoch, does):
        super().__init__()
        self.epoch, self.does = epoch, does

    def on_epoch_end(self, epoch, logs=None):
        if epoch == self.epoch:
            self.does()


@pytest.mark.one_backend
def test_of_two_trainings_with_one_file_one_is_refused(tmp_path):
    path = tmp_path / "state.npz"

    def another():
        fit_tiny(tiny(), path, 3, y=2.0)

    with pytest.raises(FileExistsError, match="Another process has written"):
        fit_tiny(tiny(), path, 3, Elsewhere(1, another), y=1.0)
    assert ResumableTraining(path).epoch == 3  # the other's
    assert os.listdir(tmp_path) == ["state.npz"]


@pytest.mark.one_backend
def test_a_file_that_appeared_since_is_not_written_over(tmp_path):
    path = tmp_path / "state.npz"
    resumable = ResumableTraining(path)
    fit_tiny(tiny(), path, 2)
    good = path.read_bytes()
    with pytest.raises(FileExistsError, match="after 2 epochs"):
        tiny().fit(np.ones((4, 2)), np.ones((4, 2)), callbacks=[resumable])
    assert path.read_bytes() == good


@pytest.mark.one_backend
def test_a_file_that_was_touched_or_deleted_is_written_again(tmp_path):
    path = tmp_path / "state.npz"
    fit_tiny(tiny(), path, 3, Elsewhere(1, path.touch))
    fit_tiny(tiny(), path, 5, Elsewhere(3, path.unlink))
    assert ResumableTraining(path).epoch == 5


@pytest.mark.one_backend
def test_what_a_kill_left_is_removed(tmp_path):
    path = tmp_path / "state.npz"
    left = tmp_path / ".state.npz.abc.new"
    left.mkdir()
    (left / "state.npz").write_bytes(b"half")
    fit_tiny(tiny(), path, 1)
    assert os.listdir(tmp_path) == ["state.npz"]


@pytest.mark.one_backend
def test_it_starts_from_its_epoch_only(tmp_path):
    fit_tiny(tiny(), tmp_path / "state.npz", 2)
    resumable = ResumableTraining(tmp_path / "state.npz")
    with pytest.raises(ValueError, match="needs `initial_epoch=2`"):
        tiny().fit(np.ones((4, 2)), np.ones((4, 2)), callbacks=[resumable])


def test_a_model_not_built_is_refused(tmp_path):
    model = keras.Sequential([keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    resumable = ResumableTraining(tmp_path / "state.npz")
    resumable.set_model(model)
    with pytest.raises(ValueError, match="built before `fit`"):
        resumable.on_train_begin()


class Adversaries(keras.Model):
    """Two layers, each with an optimizer of its own."""

    def __init__(self, build=True):
        super().__init__()
        self.layers_of = [keras.layers.Dense(1) for _ in range(2)]
        self.build((None, 2))
        self.of_each = [keras.optimizers.Adam(0.1) for _ in range(2)]
        self.first, self.second = self.of_each
        for one, layer in zip(self.of_each, self.layers_of, strict=True):
            if build:
                one.build(layer.trainable_variables)

    def build(self, shape):
        for layer in self.layers_of:
            layer.build(shape)
        self.built = True

    def call(self, x):
        return self.layers_of[0](x) - self.layers_of[1](x)

    def train_step(self, data):
        import tensorflow as tf

        x, y = data
        with tf.GradientTape(persistent=True) as tape:
            loss = keras.ops.mean((self(x) - y) ** 2)
        for one, layer in zip(self.of_each, self.layers_of, strict=True):
            weights = layer.trainable_variables
            one.apply_gradients(
                zip(tape.gradient(loss, weights), weights, strict=True)
            )
        return {"loss": loss}


def adversaries(**kwargs):
    keras.utils.set_random_seed(3)
    model = Adversaries(**kwargs)
    model.compile(run_eagerly=True)
    return model


@pytest.mark.skipif(
    keras.backend.backend() != "tensorflow",
    reason="the training step is written for TensorFlow",
)
def test_optimizers_in_other_attributes_are_kept(tmp_path):
    whole, model = adversaries(), adversaries()
    fit_tiny(whole, tmp_path / "whole.npz", 4)
    fit_tiny(model, tmp_path / "parts.npz", 2)
    model = adversaries()
    fit_tiny(model, tmp_path / "parts.npz", 4)
    for one, other in zip(model.weights, whole.weights, strict=True):
        np.testing.assert_array_equal(to_numpy(one), to_numpy(other))
    with pytest.raises(ValueError, match="all optimizers of a model to be bu"):
        fit_tiny(adversaries(build=False), tmp_path / "new.npz", 1)


def test_a_file_with_arrays_of_other_shapes_is_refused(tmp_path):
    path = tmp_path / "state.npz"
    fit_tiny(tiny(), path, 1)
    saved = _checkpoint.read(path)
    arrays = [a[:1] if a.shape == (2, 2) else a for a in saved.arrays]
    _checkpoint.write(path, dataclasses.replace(saved, arrays=arrays))
    with pytest.raises(ValueError, match="does not contain the arrays"):
        fit_tiny(tiny(), path, 2)
