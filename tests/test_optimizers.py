"""Multipliers act on the rate, weight by weight; all else is Keras's Adam."""

import keras
import numpy as np
import pytest
from cases import first_of
from references import assert_same
from references import to_numpy

from keras_rin.layers import RIN
from keras_rin.optimizers import AdamWithMultipliers

# Without a graph TensorFlow is sooner done with so few steps.
EAGER = keras.backend.backend() == "tensorflow"


def model_of(optimizer, **kwargs):
    keras.utils.set_random_seed(0)
    model = keras.Sequential(
        [
            keras.Input((4, 2)),
            RIN(3, return_sequences=True, name="first"),
            RIN(3, name="second"),
            keras.layers.Dense(1, name="read_out"),
        ],
        name="model",
    )
    model.compile(optimizer, "mse", **kwargs)
    return model


def trained(optimizer, updates=1, **kwargs):
    model = model_of(optimizer, **kwargs)
    before = {v.path: to_numpy(v) for v in model.trainable_variables}
    rng = np.random.default_rng(0)
    x = rng.normal(size=(8, 4, 2)).astype("float32")
    for _ in range(updates):
        model.train_on_batch(x, x[:, 0, :1])
    return {
        v.path: to_numpy(v) - before[v.path] for v in model.trainable_variables
    }


@pytest.mark.exhaustive
def test_without_multipliers_it_is_adam():
    ours, theirs = (
        trained(optimizer(0.01, clipnorm=1.0), updates=3, run_eagerly=True)
        for optimizer in (AdamWithMultipliers, keras.optimizers.Adam)
    )
    for path, change in ours.items():
        np.testing.assert_allclose(change, theirs[path], atol=1e-7)


@pytest.mark.parametrize("jit_compile", first_of([("auto",), (True,)]))
def test_the_first_update_is_multiplied(jit_compile):
    if jit_compile is True and keras.backend.backend() == "torch":
        pytest.skip("Torch compiles by itself")
    multipliers = {
        "recurrent_kernel": 0.25,
        "second/rin_cell/recurrent_kernel": 0.0,
        "first/rin_cell/bias": 2.0,
    }
    expected = {
        "first/rin_cell/recurrent_kernel": 0.25,
        "second/rin_cell/recurrent_kernel": 0.0,
        "first/rin_cell/bias": 2.0,
    }
    compiled = {"jit_compile": jit_compile, "run_eagerly": False}
    if jit_compile == "auto":
        compiled["run_eagerly"] = EAGER
    ours = trained(AdamWithMultipliers(0.01, multipliers), **compiled)
    theirs = trained(keras.optimizers.Adam(0.01), **compiled)
    for path, change in ours.items():
        factor = next(
            (c for end, c in expected.items() if path.endswith(end)), 1.0
        )
        np.testing.assert_allclose(change, factor * theirs[path], atol=1e-6)


def test_it_comes_back_from_its_config_and_from_a_file(tmp_path):
    schedule = keras.optimizers.schedules.CosineDecay(0.01, 10)
    optimizer = AdamWithMultipliers(schedule, {"recurrent_kernel": 0.1})
    again = keras.optimizers.deserialize(keras.optimizers.serialize(optimizer))
    assert again.get_config() == optimizer.get_config()
    model = model_of(optimizer, run_eagerly=EAGER)
    x = np.ones((8, 4, 2), "float32")
    model.train_on_batch(x, x[:, 0, :1])
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    for trained in (model, loaded):
        trained.train_on_batch(x, x[:, 0, :1])
    assert_same(model.weights, loaded.weights, 1e-6, 0)


@pytest.mark.parametrize("factor", [-1, np.nan, "half", None])
def test_a_multiplier_is_a_number_of_at_least_zero(factor):
    with pytest.raises(ValueError, match=r"multipliers\['kernel'\]"):
        AdamWithMultipliers(multipliers={"kernel": factor})


def test_a_name_that_fits_nothing_is_refused():
    with pytest.raises(ValueError, match="recurent_kernel.*first/rin_cell"):
        trained(AdamWithMultipliers(multipliers={"recurent_kernel": 0.1}))


@pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="a strategy of TensorFlow"
)
def test_under_a_strategy_the_multipliers_hold():
    import tensorflow as tf

    with tf.distribute.MirroredStrategy(["/cpu:0"]).scope():
        model = model_of(AdamWithMultipliers(0.01, {"recurrent_kernel": 0.0}))
    before = {v.path: to_numpy(v) for v in model.trainable_variables}
    model.fit(np.ones((4, 4, 2)), np.ones((4, 1)), verbose=0)
    for variable in model.trainable_variables:
        change = np.abs(to_numpy(variable) - before[variable.path]).max()
        assert (change == 0) == variable.path.endswith("recurrent_kernel")


def test_a_name_is_that_of_a_whole_weight(rng):
    rin = RIN(3, recurrent_initializer="ones")
    model = keras.Sequential([keras.Input((4, 2)), rin, keras.layers.Dense(1)])
    optimizer = AdamWithMultipliers(0.01, {"kernel": 0.0})
    model.compile(optimizer, "mse", run_eagerly=EAGER)
    before = [to_numpy(v) for v in model.trainable_variables]
    x = rng.normal(size=(8, 4, 2)).astype("float32")
    model.train_on_batch(x, x[:, 0, :1])
    for variable, old in zip(model.trainable_variables, before, strict=True):
        stayed = np.array_equal(to_numpy(variable), old)
        assert stayed == variable.path.endswith("/kernel"), variable.path
