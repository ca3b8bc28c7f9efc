"""Many models trained at once are each trained as Keras trains one."""

import keras
import numpy as np
import pytest
from archive import layers as archive
from keras import ops

from engine.many_models import ManyModels
from engine.recordings import Recordings

pytestmark = pytest.mark.skipif(
    keras.backend.backend() != "jax", reason="JAX trains many models"
)
UPDATES, LENGTHS = 10, np.array([9, 5, 7, 9, 8, 6])


@pytest.mark.parametrize("architecture", ["RIN", "LSTM, as many units"])
def test_a_model_is_trained_as_keras_does(architecture):
    """By the same rows of the data, with the mean of the states read."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((6, 9, 2)).astype("float32")
    recordings = Recordings(x, LENGTHS, np.array([0, 1, 2, 0, 1, 2]))
    inside = np.arange(9) < LENGTHS[:, None]
    shares = (inside / LENGTHS[:, None]).astype("float32")
    layer = list(archive.ARCHITECTURES[architecture].values())[-1]

    def rows(update):
        return (update + 2 * np.arange(3)) % 6

    def batch(settings, update):
        arrays = x, shares, recordings.y
        x_batch, share, y = (ops.take(a, rows(update), axis=0) for a in arrays)
        return [x_batch, share], y

    keras.utils.set_random_seed(3)
    model = archive.build(layer, 4, recordings)
    many = ManyModels(archive.build(layer, 4, recordings), archive.loss)
    weights = [np.stack([array, array]) for array in model.get_weights()]
    settings = {"rate": np.array([0.02, 0.005], "float32")}
    trained, _ = many.train(weights, settings, batch, UPDATES)
    decay = keras.optimizers.schedules.CosineDecay(0.02, UPDATES)
    model.compile(
        keras.optimizers.Adam(decay, beta_2=0.99, global_clipnorm=1.0),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    )
    for update in range(UPDATES):
        inputs = [x[rows(update)], shares[rows(update)]]
        model.train_on_batch(inputs, recordings.y[rows(update)])
    for arrays, expected in zip(trained, model.get_weights(), strict=True):
        np.testing.assert_allclose(arrays[0], expected, atol=1e-6)
        assert np.abs(arrays[1] - expected).max() > 1e-3
