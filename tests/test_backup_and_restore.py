"""What Keras's BackupAndRestore restores of a training, and what it does not.

The page on saving lists these, and what Keras itself says. Keras may restore
more one day: then a test fails here, and a line goes there.
"""

import contextlib
import itertools

import keras
import numpy as np
import pytest
from references import to_numpy

from keras_rin.layers import RIN
from keras_rin.layers import NoisyRNN
from keras_rin.layers import RINCell

pytestmark = [pytest.mark.exhaustive, pytest.mark.one_backend]
X = np.random.default_rng(0).normal(size=(8, 5, 2)).astype("float32")


class Interrupt(keras.callbacks.Callback):
    """Ctrl-C in the second epoch."""

    def on_train_batch_end(self, batch, logs=None):
        if self.model.optimizer.iterations > 2:
            raise KeyboardInterrupt


def trained(folder, epochs, *callbacks, layer=None, rate=0.01, data=None):
    """The weights of a new model, which goes on from what is in the folder."""
    keras.utils.set_random_seed(3)
    layers = layer() if layer else RIN(3), keras.layers.Dense(1)
    model = keras.Sequential([keras.Input(batch_shape=(4, 5, 2)), *layers])
    model.compile(keras.optimizers.Adam(rate), "mse", run_eagerly=True)
    backup = keras.callbacks.BackupAndRestore(folder, delete_checkpoint=False)
    data = data or {"x": X, "y": X[:, 0, :1], "batch_size": 4}
    data |= {"shuffle": False, "epochs": epochs, "verbose": 0}
    with contextlib.suppress(KeyboardInterrupt):
        model.fit(**data, callbacks=[backup, *callbacks])
    variables = model.variables + model.optimizer.variables
    return [to_numpy(variable).tobytes() for variable in variables]


def test_a_rin_resumes_after_the_last_whole_epoch(tmp_path):
    trained(tmp_path / "ended", 3, Interrupt())
    resumed = trained(tmp_path / "ended", 3, rate=0.5)  # the saved rate stays
    assert resumed == trained(tmp_path / "whole", 3)


def stream():
    """Data that never end, two batches an epoch."""
    batches = (X[n % 5 :][:4] for n in itertools.count())
    return {"x": ((x, x[:, 0, :1]) for x in batches), "steps_per_epoch": 2}


LAYERS = {
    "states": lambda: RIN(3, stateful=True),
    "data": lambda: RIN(3),
    "dropout": lambda: RIN(3, dropout=0.3, seed=1),
    "noise": lambda: NoisyRNN(RINCell(3), 1.0, seed=1),
}


@pytest.mark.parametrize("name", LAYERS)
def test_data_random_and_hidden_states_begin_anew(tmp_path, name):
    def run(folder, epochs):
        data = stream() if name == "data" else None
        return trained(tmp_path / folder, epochs, layer=LAYERS[name], data=data)

    whole = run("whole", 3)
    assert whole == run("again", 3)
    run("ended", 1)
    assert run("ended", 3) != whole
