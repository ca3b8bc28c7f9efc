"""One run: its data, its training, its losses."""

import keras
import numpy as np
import pytest
import small

from engine import data as datasets
from engine import models
from engine import training


@pytest.fixture
def setting(tmp_path):
    return small.read(tmp_path / "small").settings[0]


def first_model(setting, data):
    """As `training.run` makes it, from the seed."""
    keras.utils.set_random_seed(setting["seed"])
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
    batches = list(training.batches((x, y), 6, setting["seed"], 2))
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
    assert run.henrici_departure["after"]["recurrent"] > 0
    # A compiled model is initialized anew: the next run is that of the first.
    training.run(setting.at(seed=2, learning_rate=0.1))
    assert training.run(setting) == run


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


def test_a_schedule_warms_up_and_falls_to_zero(setting):
    setting = setting.at(schedule="cosine", clip="value 1", updates=1_000)
    config = training.optimizer(setting.at(beta_2=0.99)).get_config()
    rate = keras.optimizers.schedules.deserialize(config["learning_rate"])
    rates = [float(rate(n)) for n in (0, training.WARM_UP, 1_000)]
    np.testing.assert_allclose(rates, [0, 0.001, 0], atol=1e-9)
    assert (config["beta_2"], config["clipvalue"]) == (0.99, 1.0)


def test_normalized_inputs_have_the_mean_and_variance_of_training_data(setting):
    raw = datasets.draw(setting.at(train=500))
    normalized = datasets.draw(setting.at(train=500, inputs="normalized"))
    x = raw.splits[0][0].astype("float64")
    mean, deviation = x.mean(axis=(0, 1)), x.std(axis=(0, 1))
    for (x, _), (z, _) in zip(raw.splits, normalized.splits, strict=True):
        np.testing.assert_allclose(z, (x - mean) / deviation, atol=1e-4)
