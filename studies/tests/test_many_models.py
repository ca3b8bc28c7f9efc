"""Many models trained at once are each trained as Keras trains one."""

import functools

import keras
import numpy as np
import pytest

from engine.many_models import ManyModels
from keras_rin.layers import RIN

pytestmark = pytest.mark.skipif(
    keras.backend.backend() != "jax", reason="JAX trains many models"
)
UPDATES = 10
LOSS = keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def build(layer):
    states = [keras.Input((9, 2)), layer(4)]
    return keras.Sequential([*states, keras.layers.Dense(3)])


@pytest.mark.parametrize("layer", [RIN, keras.layers.LSTM])
def test_a_model_is_trained_as_keras_does(layer):
    """By the same rows of the data."""
    x = np.random.default_rng(0).standard_normal((6, 9, 2)).astype("float32")
    y = np.array([0, 1, 2, 0, 1, 2])

    def batch(settings, update):
        rows = (update + 2 * np.arange(3)) % 6
        take = functools.partial(keras.ops.take, indices=rows, axis=0)
        return take(x), take(y)

    keras.utils.set_random_seed(3)
    model = build(layer)
    weights = [np.stack([array, array]) for array in model.get_weights()]
    settings = {"rate": np.array([0.02, 0.005], "float32")}
    many = ManyModels(build(layer), LOSS)
    trained, _ = many.train(weights, settings, batch, UPDATES)
    decay = keras.optimizers.schedules.CosineDecay(0.02, UPDATES)
    adam = keras.optimizers.Adam(decay, beta_2=0.99, global_clipnorm=1.0)
    model.compile(adam, LOSS)
    for update in range(UPDATES):
        model.train_on_batch(*batch(None, update))
    for arrays, expected in zip(trained, model.get_weights(), strict=True):
        np.testing.assert_allclose(arrays[0], expected, atol=1e-6)
        assert np.abs(arrays[1] - expected).max() > 1e-3
