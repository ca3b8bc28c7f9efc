"""One run: its data, its training, its losses."""

import os
import pathlib
import types

import keras
import numpy as np
import pytest
import small

import keras_rin
from engine import data as datasets
from engine import models
from engine import training


@pytest.fixture
def setting(tmp_path):
    return small.read(tmp_path / "small").settings[0]


def first_model(setting, data):
    """As `training.run` makes it, from the seed."""
    keras.utils.set_random_seed(setting.seed)
    datasets.draw(setting)
    return models.build(setting, data)


def test_a_run_is_a_plain_fit(setting):
    """Of Keras's Adam, step by step, on batches in the order of the run."""
    run = training.run(setting)
    data = datasets.draw(setting)
    (x, y), validation, test = data.splits
    model = first_model(setting, data)
    model.compile(keras.optimizers.Adam(0.001, clipnorm=1.0), "mse")
    curve, weights = [], []
    batches = list(training.batches((x, y), 6, setting.seed, 2))
    for epoch in (batches[:2], batches[2:]):
        seen = np.concatenate([batch[0] for batch in epoch])
        np.testing.assert_array_equal(np.sort(seen, 0), np.sort(x, 0))
        for batch in epoch:
            model.train_on_batch(*batch)
        curve.append(model.evaluate(*validation, verbose=0))
        weights.append(model.get_weights())
    assert run.curve == pytest.approx(curve, rel=1e-3)
    assert run.validation == pytest.approx(min(curve), rel=1e-5)
    model.set_weights(weights[np.argmin(curve)])
    expected = model.evaluate(*test, verbose=0)
    assert run.test == pytest.approx(expected, rel=1e-5)
    assert run.baseline == pytest.approx(1 / 6)
    matrix = model.layers[0].cell.effective_recurrent_kernel
    matrix = keras.ops.convert_to_numpy(matrix).astype("float64")
    squares = np.sum(matrix**2) - np.sum(abs(np.linalg.eigvals(matrix)) ** 2)
    departure = run.henrici_departure["after"]["recurrent"]
    assert departure == pytest.approx(np.sqrt(squares), rel=1e-3)


def test_a_compiled_model_is_initialized_anew(setting):
    """The second run of a process is that of the first."""
    first = training.run(setting)
    training.run(setting.at(seed=2, learning_rate=0.1))
    assert training.run(setting) == first


def test_averaged_weights_are_validated_and_tested(setting):
    """Keras too puts the average into the model when a training ends."""
    setting = setting.at(averaging=0.5, updates=2)  # one epoch
    run, data = training.run(setting), datasets.draw(setting)
    train, validation, test = data.splits
    model = first_model(setting, data)
    model.compile(training.optimizer(setting), data.loss)
    batches = training.batches(train, 6, setting.seed, 1)
    model.fit(batches, steps_per_epoch=2, shuffle=False, verbose=0)
    for loss, split in ((run.validation, validation), (run.test, test)):
        expected = model.evaluate(*split, verbose=0)
        assert loss == pytest.approx(expected, rel=1e-4)
    last = training.run(setting.at(averaging=0))
    assert last.test != pytest.approx(run.test, rel=1e-3)


def test_a_run_that_diverges_is_scored_by_its_best_weights(
    setting, monkeypatch
):
    class Diverge(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            if epoch == 2:
                raise FloatingPointError("the loss is nan")

    monkeypatch.setattr(training, "RestoreOnNaN", Diverge)
    diverged = training.run(setting.at(updates=8))
    whole = training.run(setting)  # two epochs of two updates
    assert diverged.error == "the loss is nan"
    assert diverged.test == pytest.approx(whole.test, rel=1e-6)


def test_a_loss_that_is_not_finite_is_a_result(setting):
    run = training.run(setting.at(learning_rate=float("nan")))
    assert run.diverged and "not finite" in run.error
    assert run.test_loss == 1


def test_a_run_adapts_the_network_to_the_data_it_trains_on(
    setting, monkeypatch
):
    shapes = []
    adapt = training.keras_rin.adapt
    monkeypatch.setattr(
        training.keras_rin, "adapt", lambda model, x: shapes.append(x.shape)
    )
    assert not training.run(setting.at(inputs="adapted")).diverged
    assert shapes == [(12, 5, 2)]
    assert callable(adapt)


def test_a_schedule_warms_up_and_falls_to_zero(setting):
    optimizer = training.optimizer(
        setting.at(
            **{"schedule": "cosine", "clip": "global norm 1", "updates": 1_000},
            **{"recurrent_multiplier": 0.1, "beta_2": None},
        )
    )
    config = optimizer.get_config()
    rate = keras.optimizers.schedules.deserialize(config["learning_rate"])
    rates = [float(rate(n)) for n in (0, training.WARM_UP, 1_000)]
    np.testing.assert_allclose(rates, [0, 0.001, 0], atol=1e-9)
    assert config["multipliers"] == {"recurrent_kernel": 0.1}
    assert (config["beta_2"], config["global_clipnorm"]) == (0.99, 1.0)


def test_the_time_of_a_run_is_that_of_its_updates_and_validations(
    setting, monkeypatch
):
    """Two epochs of two updates of 1 s, and 0.5 s of validation in each."""
    epoch = 1.0 * training.TIMED
    ends = np.cumsum([100.0, epoch, epoch, epoch, 0.0, 0.5])
    clock = types.SimpleNamespace(perf_counter=iter(ends.tolist()).__next__)
    monkeypatch.setattr(training, "time", clock)
    assert training.seconds(setting) == 2 * (2 * 1.0 + 0.5)


@pytest.mark.parametrize("name", ["RIN", "LSTM"])
def test_estimation_errors_are_changes_of_hidden_states(setting, name):
    """Their sum over the steps is the last hidden state."""
    x = np.random.default_rng(0).normal(size=(200, 9, 1)).astype("float32")
    layer = getattr(keras_rin.layers, name, None) or keras.layers.LSTM
    layer = layer(4, return_sequences=True)
    steps = keras.ops.convert_to_numpy(layer(x[:128]))
    error = training.estimation_error(
        setting.at(task="pixels"), types.SimpleNamespace(layers=[layer]), x
    )
    change = np.diff(steps, axis=1, prepend=0)
    rms = np.sqrt(np.mean(change**2))
    mean = steps[:, -1].mean() / 9 / rms
    assert error["mean"] == pytest.approx(mean, rel=1e-4)
    largest = abs(change.mean(axis=(0, 2))).max() / rms
    assert error["largest"] == pytest.approx(largest, rel=1e-4)
    assert training.estimation_error(setting, None, x) is None


def test_a_hidden_layer_is_before_the_read_out(setting):
    data = datasets.draw(setting)
    model = models.build(setting.at(hidden=7), data)
    x = data.splits[0][0]
    recurrent, hidden, read_out = model.layers
    states = np.maximum(recurrent(x) @ hidden.kernel + hidden.bias, 0)
    expected = states @ read_out.kernel + read_out.bias
    assert states.shape[1] == 7
    np.testing.assert_allclose(model(x), expected, rtol=1e-5, atol=1e-6)


def test_scaled_weights_are_smaller_by_length_or_its_root(setting):
    setting = setting.at(length=9)
    data = datasets.draw(setting)
    plain, scaled = (
        first_model(setting.at(scaled=scaled), data).get_weights()
        for scaled in (False, True)
    )
    factors = [1 / 3, 1, 1, 1 / 9, 1]
    for weight, smaller, factor in zip(plain, scaled, factors, strict=True):
        np.testing.assert_allclose(smaller, factor * weight, rtol=1e-6)


def test_normalized_inputs_have_the_mean_and_variance_of_training_data(setting):
    raw = datasets.draw(setting.at(train=500, train_length=4))
    normalized = datasets.normalized(raw)
    shapes = [x.shape for x, _ in raw.splits]
    assert shapes == [(500, 4, 2), (1_000, 5, 2), (1_000, 5, 2)]
    x = raw.splits[0][0].astype("float64")
    mean, deviation = x.mean(axis=(0, 1)), x.std(axis=(0, 1))
    for (x, _), (z, _) in zip(raw.splits, normalized.splits, strict=True):
        np.testing.assert_allclose(z, (x - mean) / deviation, atol=1e-4)


def test_pixels_are_pooled_and_permuted_in_one_order(setting):
    images = np.random.default_rng(0).integers(0, 256, size=(3, 4, 6, 2))
    pooled = datasets.pool(images, 2)
    assert pooled.shape == (3, 2, 3, 2)
    corner = images[1, 2:, 4:, 1].mean() / 255
    assert pooled[1, 1, 2, 1] == pytest.approx(corner)
    setting = setting.at(task="pixels", images="digits", train=None)
    plain = datasets.draw(setting).splits[2][0]
    permuted, other = (
        datasets.draw(setting.at(permuted=True, seed=seed)).splits[2][0]
        for seed in (1, 2)
    )
    np.testing.assert_array_equal(permuted, other)
    np.testing.assert_array_equal(np.sort(plain, 1), np.sort(permuted, 1))
    assert not np.array_equal(plain, permuted)


def test_images_of_a_set_have_mean_0_and_variance_1(setting, monkeypatch):
    x = np.random.default_rng(0).integers(0, 256, size=(50, 4, 4, 3))
    stored = tuple(map(keras.ops.convert_to_tensor, (x, np.arange(50) % 10)))
    monkeypatch.setattr(datasets.tfds, "load", lambda *_, **__: [stored] * 2)
    data = datasets.draw(setting.at(task="images", images="cifar10"))
    counts = [x.shape for x, _ in data.splits]
    assert counts == [(n, 4, 4, 3) for n in (45, 5, 50)]
    assert data.splits[0][0].mean() == pytest.approx(0, abs=1e-5)
    assert data.splits[0][0].std() == pytest.approx(1, abs=1e-5)
    assert data.baseline == pytest.approx(0.9)


@pytest.mark.skipif(
    not pathlib.Path(
        os.environ.get("TFDS_DATA_DIR", "none"), "tiny_shakespeare"
    ).exists(),
    reason="TFDS_DATA_DIR names no folder with tiny_shakespeare in it",
)
def test_characters_are_those_that_come_next(setting):
    data = datasets.draw(setting.at(task="text", length=10, train=7))
    (x, y), validation, test = data.splits
    assert len(x) == len(validation[0]) == len(test[0]) == 7
    np.testing.assert_array_equal(x.argmax(axis=2)[:, 1:], y[:, :-1])


def test_a_padded_story_is_answered_as_without_padding(
    setting, tmp_path, monkeypatch
):
    monkeypatch.setenv("BABI_DIR", str(tmp_path))
    asked = "{} Where is Ann?\thall\t1\n".format
    short = "1 Ann is in the hall.\n"
    text = short + "2 Bob is in the barn.\n" + asked(3) + short + asked(2)
    (tmp_path / "qa1_where_train.txt").write_text(10 * text)
    (tmp_path / "qa1_where_test.txt").write_text(10 * text)
    setting = setting.at(task="babi", number=1)
    data = datasets.draw(setting)
    model = models.build(setting, data)
    assert data.baseline == 0  # the answer is always the hall
    x = {name: array[1:2] for name, array in data.splits[0][0].items()}
    count = int((x["story"] > 0).sum())
    assert count < x["story"].shape[1]
    *readers, last = [
        layer for layer in model.layers if isinstance(layer, keras.layers.RNN)
    ]
    last.cell.bias.assign([1.0, 2.0, 3.0])  # padding that counts moves it
    (story,) = (layer for layer in readers if layer.return_sequences)
    (question,) = (layer for layer in readers if not layer.return_sequences)
    embed = next(layer for layer in model.layers if "embed" in layer.name)
    states = story(embed(x["story"][:, :count]))
    mask = embed.compute_mask(x["question"])
    state = question(embed(x["question"]), mask=mask)
    repeated = keras.ops.repeat(state[:, None], count, 1)
    both = keras.ops.concatenate([states, repeated], -1)
    expected = model.layers[-1](last(both))
    np.testing.assert_allclose(model(x), expected, rtol=1e-5)
