"""What Keras's BackupAndRestore restores of a training, and what it does not.

The page on saving lists these, and what Keras itself says. Keras may restore
more one day: then a test fails here, and a line goes there.
"""

import contextlib
import itertools
import signal

import keras
import numpy as np
import pytest
import scripts
from cases import first_of
from references import to_numpy

from keras_rin.layers import RIN
from keras_rin.layers import NoisyRNN
from keras_rin.layers import RINCell

pytestmark = pytest.mark.one_backend
X = np.random.default_rng(0).normal(size=(8, 5, 2)).astype("float32")


class EndsIn(keras.callbacks.Callback):
    """Calls a function after the first batch of an epoch, counted from 1."""

    def __init__(self, epoch, end):
        super().__init__()
        self.last, self.end = epoch, end

    def on_epoch_begin(self, epoch, logs=None):
        if epoch + 1 == self.last:
            self.on_train_batch_end = lambda batch, logs: self.end()


def interrupt():
    raise KeyboardInterrupt


def train(folder, epochs, *callbacks, layer=None, rate=0.01, data=None):
    """A new model, which trains on from what is in the folder."""
    keras.utils.set_random_seed(3)
    layer = layer() if layer else RIN(3)
    inputs = keras.Input(batch_shape=(4, 5, 2))
    model = keras.Sequential([inputs, layer, keras.layers.Dense(1)])
    model.compile(keras.optimizers.Adam(rate), "mse", run_eagerly=True)
    backup = keras.callbacks.BackupAndRestore(folder, delete_checkpoint=False)
    data = data or {"x": X, "y": X[:, 0, :1], "batch_size": 4}
    data |= {"shuffle": False, "epochs": epochs, "verbose": 0}
    with contextlib.suppress(KeyboardInterrupt):
        model.fit(**data, callbacks=[backup, *callbacks])
    return model


def stream():
    """Data that never end, two batches an epoch."""
    batches = (X[n % 5 :][:4] for n in itertools.count())
    return {"x": ((x, x[:, 0, :1]) for x in batches), "steps_per_epoch": 2}


def values(model):
    variables = model.variables + model.optimizer.variables
    return [to_numpy(variable).tobytes() for variable in variables]


def killed(folder):
    train(folder, 3, EndsIn(2, scripts.die))


def kill(folder):
    process = scripts.FORKS.Process(target=killed, args=[folder])
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL


@pytest.mark.parametrize(
    "end_in_the_second_epoch",
    [
        pytest.param(kill, marks=pytest.mark.exhaustive),
        lambda folder: train(folder, 3, EndsIn(2, interrupt)),
    ],
    ids=["kill", "interrupt"],
)
def test_a_rin_resumes_after_the_last_whole_epoch(
    tmp_path, end_in_the_second_epoch
):
    end_in_the_second_epoch(tmp_path)
    model = train(tmp_path, 3, rate=0.5)  # the saved rate stays
    assert model.history.epoch == [1, 2]  # the logs of the first are lost
    assert values(model) == values(train(tmp_path / "whole", 3))


LAYERS = {
    "states": lambda: RIN(3, stateful=True),
    "data": lambda: RIN(3),
    "dropout": lambda: RIN(3, dropout=0.3, seed=1),
    "noise": lambda: NoisyRNN(RINCell(3), 1.0, seed=1),
}


@pytest.mark.parametrize("name", first_of(zip(LAYERS)))
def test_data_random_and_hidden_states_begin_anew(tmp_path, name):
    def trained(folder, epochs):
        data = stream() if name == "data" else None
        options = {"data": data, "layer": LAYERS[name]}
        return values(train(tmp_path / folder, epochs, **options))

    assert trained("whole", 3) == trained("again", 3)
    trained("ended", 1)
    assert trained("ended", 3) != trained("whole", 3)
