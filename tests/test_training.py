"""One run of a protocol: its data, its training, its losses."""

import os
import pathlib
import types

import keras
import numpy as np
import pytest
from references import to_numpy
from studies import TINY
from studies import UNDER_TENSORFLOW

from experiments import data as tasks
from experiments import layers
from experiments import models
from experiments import protocols
from experiments import training
from keras_rin.layers import RIN

pytestmark = UNDER_TENSORFLOW


def test_normalized_inputs_have_the_mean_and_variance_of_training_data():
    rng = np.random.default_rng(0)
    raw = tasks.adding_data(rng, length=20, train=500)
    made = tasks.normalized(raw)
    x = raw.splits[0][0].astype("float64")
    mean, deviation = x.mean(axis=(0, 1)), x.std(axis=(0, 1))
    for (before, _), (after, _) in zip(raw.splits, made.splits, strict=True):
        expected = (before - mean) / deviation
        np.testing.assert_allclose(after, expected, atol=1e-4)


def test_adding_can_be_trained_on_shorter_sequences_than_it_is_tested_on(rng):
    made = tasks.adding_data(rng, length=20, train=7, train_length=5)
    shapes = [x.shape for x, _ in made.splits]
    assert shapes == [(7, 5, 2), (1_000, 20, 2), (1_000, 20, 2)]


def test_pooled_pixels_are_the_means_of_squares(rng):
    images = rng.integers(0, 256, size=(3, 4, 6, 2), dtype="uint8")
    pooled = tasks.pool(images, 2)
    assert pooled.shape == (3, 2, 3, 2)
    corner = images[1, 2:, 4:, 1].mean() / 255
    assert pooled[1, 1, 2, 1] == pytest.approx(corner)


def test_images_of_a_set_have_mean_0_and_variance_1(rng, monkeypatch):
    x = rng.integers(0, 256, size=(50, 4, 4, 3), dtype="uint8")
    y = np.arange(50) % 10
    stored = tuple(map(keras.ops.convert_to_tensor, (x, y)))
    monkeypatch.setattr(tasks.tfds, "load", lambda *_, **__: [stored] * 2)
    data = tasks.draw({"task": "images", "images": "cifar10"}, rng)
    assert [x.shape for x, _ in data.splits] == [
        (n, 4, 4, 3) for n in (45, 5, 50)
    ]
    assert data.splits[0][0].mean() == pytest.approx(0, abs=1e-5)
    assert data.splits[0][0].std() == pytest.approx(1, abs=1e-5)
    assert data.baseline == pytest.approx(0.9)


def test_the_error_on_babi_is_the_share_of_wrong_answers(tmp_path, monkeypatch):
    monkeypatch.setenv("BABI_DIR", str(tmp_path))
    story = "1 Ann is in the hall.\n2 Where is Ann?\thall\t1\n"
    for kind in ("train", "test"):
        (tmp_path / f"qa1_where_{kind}.txt").write_text(story * 20)
    data = tasks.babi_data(None, number=1)
    model = models.build({"task": "babi", "layer": "RIN", "units": 3}, data)
    x, y = data.splits[2]
    assert model(x).shape == (20, data.answers)
    right = keras.ops.one_hot(y, data.answers)
    assert float(np.mean(data.score(y, right))) == 0
    assert float(np.mean(data.score(y, 1 - right))) == 1
    assert data.baseline == 0


@pytest.mark.skipif(
    not pathlib.Path(os.environ.get("TFDS_DATA_DIR", "none"))
    .joinpath("tiny_shakespeare")
    .exists(),
    reason="TFDS_DATA_DIR names no folder with tiny_shakespeare in it",
)
def test_characters_are_those_that_come_next(rng):
    data = tasks.characters_data(rng, length=10, train=7)
    (x, y), validation, test = data.splits
    assert len(x) == len(validation[0]) == len(test[0]) == 7
    np.testing.assert_array_equal(x.argmax(axis=2)[:, 1:], y[:, :-1])
    assert data.answers == x.shape[-1]


def test_a_hidden_layer_is_before_the_read_out():
    settings = protocols.all_settings(TINY)[0]
    data = training.drawn(settings)
    x = data.splits[0][0]
    model = models.build({**settings, "hidden": 7}, data)
    recurrent, *dense = model.layers
    hidden, read_out = (
        [weight.numpy() for weight in layer.weights] for layer in dense
    )
    states = recurrent(x).numpy()
    expected = np.maximum(states @ hidden[0] + hidden[1], 0)
    assert expected.shape[1] == 7
    expected = expected @ read_out[0] + read_out[1]
    np.testing.assert_allclose(model(x), expected, rtol=1e-5, atol=1e-6)
    without = models.build({**settings, "hidden": 0}, data)
    assert len(without.layers) == 2


def test_a_run_adapts_the_network_to_the_data_it_trains_on(monkeypatch):
    seen = []
    monkeypatch.setattr(
        training.keras_rin, "adapt", lambda model, x: seen.append(x)
    )
    settings = protocols.all_settings(TINY)[0]
    found = training.run({**settings, "inputs": "adapted"})
    assert "error" not in found
    assert [x.shape for x in seen] == [(12, 5, 2)]


def test_a_schedule_warms_up_and_falls_to_zero():
    settings = protocols.all_settings(TINY)[0]
    settings = {**settings, "schedule": "cosine", "clip": "global norm 1"}
    settings |= {"updates": 1_000, "recurrent_multiplier": 0.1}
    optimizer = training.optimizer(settings)
    config = optimizer.get_config()
    rate = keras.optimizers.schedules.deserialize(config["learning_rate"])
    rates = [float(rate(n)) for n in (0, training.WARM_UP, 1_000)]
    expected = [0, settings["learning_rate"], 0]
    np.testing.assert_allclose(rates, expected, atol=1e-9)
    assert config["multipliers"] == {"recurrent_kernel": 0.1}
    assert (config["beta_2"], config["global_clipnorm"]) == (0.99, 1.0)


def test_averaged_weights_are_validated_and_tested():
    """Keras too puts the average into the model when a training ends."""
    settings = {**protocols.all_settings(TINY)[0], "averaging": 0.5}
    found = training.run({**settings, "updates": 2})  # one epoch
    keras.utils.set_random_seed(settings["seed"])
    data = tasks.draw(settings, np.random.default_rng(settings["seed"]))
    model = models.build(settings, data)
    model.compile(training.optimizer(settings), data.loss)
    train, validation, test = data.splits
    size = settings["batch_size"]
    model.fit(
        training.batches(train, size, settings["seed"], 1),
        steps_per_epoch=2,
        shuffle=False,
        verbose=0,
    )
    assert found["curve"] == [pytest.approx(found["validation"], rel=1e-3)]
    for split, part in (("validation", validation), ("test", test)):
        expected = model.evaluate(*part, verbose=0)
        assert found[split] == pytest.approx(expected, rel=1e-4)
    last = training.run({**settings, "updates": 2, "averaging": 0})
    assert last["test"] != pytest.approx(found["test"], rel=1e-3)


@pytest.mark.parametrize("layer", ["RIN", "LSTM", "RIN-DT"])
def test_estimation_errors_are_changes_of_hidden_states(layer, rng):
    """Their sum over the steps is the last hidden state."""
    x = rng.normal(size=(200, 9, 1)).astype("float32")
    settings = {"task": "pixels", "layer": layer, "units": 4}
    model = keras.Sequential([layers.build(settings), keras.layers.Dense(3)])
    model(x[:1])
    found = training.estimation_error(settings, model, x)["estimation_error"]
    states = keras.Sequential([model.layers[0]]).predict(x[:128], verbose=0)
    model.layers[0].return_sequences = True
    steps = model.layers[0](x[:128]).numpy()
    change = np.diff(steps, axis=1, prepend=0)
    rms = np.sqrt(np.mean(change**2))
    assert found["mean"] == pytest.approx(states.mean() / 9 / rms, rel=1e-4)
    largest = max(abs(step.mean()) for step in np.rollaxis(change, 1))
    assert found["largest"] == pytest.approx(largest / rms, rel=1e-4)


def test_without_pixels_there_is_no_estimation_error():
    assert training.estimation_error({"task": "babi"}, None, None) == {}


def test_a_run_that_diverges_is_scored_by_its_best_weights(monkeypatch):
    settings = {**protocols.all_settings(TINY)[0], "updates": 8}

    class Diverge(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            if epoch == 2:
                raise FloatingPointError("the loss is nan")

    with monkeypatch.context() as here:
        here.setattr(training, "RestoreOnNaN", Diverge)
        diverged = training.run(settings)
    whole = training.run({**settings, "updates": 4})  # two epochs of two
    assert diverged["error"] == "the loss is nan"
    assert diverged["test"] == pytest.approx(whole["test"], rel=1e-6)


def test_a_loss_that_is_not_finite_is_a_result():
    settings = protocols.all_settings(TINY)[0]
    found = training.run({**settings, "learning_rate": float("nan")})
    assert "not finite" in found["error"]
    assert found.items() >= {**settings, "seed": 0}.items() - {
        ("learning_rate", 0.001)
    }


def test_the_time_of_a_run_is_that_of_its_updates_and_validations(monkeypatch):
    """Two epochs of two updates of 1 s, and 0.5 s of validation in each."""
    compiled, update, validation = 100.0, 1.0, 0.5
    epoch = update * training.TIMED
    ends = np.cumsum([compiled, epoch, epoch, epoch, 0.0, validation])
    clock = types.SimpleNamespace(perf_counter=iter(ends.tolist()).__next__)
    monkeypatch.setattr(training, "time", clock)
    settings = protocols.all_settings(TINY)[0]
    seconds = 2 * (2 * update + validation)
    assert training.estimate(settings) == {**settings, "seconds": seconds}


def test_the_order_of_permuted_pixels_is_the_same_for_every_seed():
    one, other, plain = (
        tasks.pixels_data(np.random.default_rng(seed), **options).splits[2][0]
        for seed, options in ((1, PERMUTED), (2, PERMUTED), (1, {}))
    )
    np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(np.sort(plain, 1), np.sort(one, 1))
    assert not np.array_equal(plain, one)


PERMUTED = {"permuted": True}


def write_babi(folder, **stories):
    for kind, text in stories.items():
        (folder / f"qa1_where_{kind}.txt").write_text(text)


def test_the_baseline_of_babi_is_the_answer_of_the_training_data(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("BABI_DIR", str(tmp_path))
    story = "1 Ann is in the {0}.\n2 Where is Ann?\t{0}\t1\n".format
    tested = story("hall") + 2 * story("barn")
    write_babi(tmp_path, train=20 * story("hall"), test=tested)
    found = tasks.babi_data(None, number=1).baseline
    assert found == pytest.approx(2 / 3)


def test_scaled_weights_are_smaller_by_length_or_its_root():
    settings = {**protocols.all_settings(TINY)[0], "length": 9}
    data = training.drawn(settings)
    made = []
    for scaled in (False, True):
        keras.utils.set_random_seed(3)
        model = models.build({**settings, "scaled": scaled}, data)
        made.append(model.get_weights())
    factors = [1 / 3, 1, 1, 1 / 9, 1]
    for plain, scaled, factor in zip(*made, factors, strict=True):
        np.testing.assert_allclose(scaled, factor * plain, rtol=1e-6)


def test_a_padded_story_is_answered_as_without_padding(tmp_path, monkeypatch):
    monkeypatch.setenv("BABI_DIR", str(tmp_path))
    asked = "{} Where is Ann?\thall\t1\n".format
    short = "1 Ann is in the hall.\n"
    text = short + "2 Bob is in the barn.\n" + asked(3) + short + asked(2)
    write_babi(tmp_path, train=10 * text, test=10 * text)
    data = tasks.babi_data(None, number=1)
    model = models.build({"task": "babi", "layer": "RIN", "units": 3}, data)
    x = {name: array[1:2] for name, array in data.splits[0][0].items()}
    count = int((x["story"] > 0).sum())
    assert count < x["story"].shape[1]
    *others, last = [one for one in model.layers if isinstance(one, RIN)]
    last.cell.bias.assign([1.0, 2.0, 3.0])  # padding that counts moves it
    (told,) = (rin for rin in others if rin.return_sequences)
    (question,) = (rin for rin in others if not rin.return_sequences)
    (embed,) = (
        one for one in model.layers if isinstance(one, keras.layers.Embedding)
    )
    story = told(embed(x["story"][:, :count]))
    mask = embed.compute_mask(x["question"])
    of_all = keras.ops.repeat(
        question(embed(x["question"]), mask=mask)[:, None], count, 1
    )
    both = keras.ops.concatenate([story, of_all], -1)
    np.testing.assert_allclose(
        to_numpy(model(x)), to_numpy(model.layers[-1](last(both))), rtol=1e-5
    )
