"""Training with any optimizer of Keras resumes as if it had not ended."""

import keras
import numpy as np
import pytest
from references import to_numpy

from keras_rin.callbacks import ResumableTraining

ABSTRACT = {"Optimizer", "OptimizerMap"}
NAMES = [
    name
    for name, item in vars(keras.optimizers).items()
    if isinstance(item, type) and name not in ABSTRACT
]
SPECIAL = {"Adam", "LossScaleOptimizer", "MultiOptimizer", "Nadam"}


def make_optimizer(name):
    if name == "LossScaleOptimizer":
        inner = keras.optimizers.Adam(0.1)
        return keras.optimizers.LossScaleOptimizer(inner)
    if name == "MultiOptimizer":
        inner = {".*/bias": keras.optimizers.Nadam(0.1)}
        default = keras.optimizers.SGD(0.1, momentum=0.5)
        return keras.optimizers.MultiOptimizer(
            keras.optimizers.OptimizerMap(default, inner)
        )
    return getattr(keras.optimizers, name)(0.1)


def train(name, path, *ends):
    for end in ends:
        keras.utils.set_random_seed(3)
        dense = keras.layers.Dense(3)
        model = keras.Sequential([keras.Input((2,)), dense])
        model.compile(make_optimizer(name), "mse", run_eagerly=True)
        resumable = ResumableTraining(path)
        model.fit(
            np.arange(8.0).reshape(4, 2) / 8,
            np.ones((4, 3)),
            batch_size=2,
            initial_epoch=resumable.epoch,
            epochs=end,
            shuffle=False,
            verbose=0,
            callbacks=[resumable],
        )
    return model


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(
            name, marks=[] if name in SPECIAL else pytest.mark.exhaustive
        )
        for name in NAMES
    ],
)
def test_resumed_is_uninterrupted(tmp_path, name):
    whole = train(name, tmp_path / "whole.npz", 2)
    resumed = train(name, tmp_path / "resumed.npz", 1, 2)
    assert resumed.history.epoch == [1]
    optimizer = getattr(resumed.optimizer, "inner_optimizer", resumed.optimizer)
    assert int(to_numpy(optimizer.iterations)) == 4
    variables = [m.variables + m.optimizer.variables for m in (whole, resumed)]
    for expected, variable in zip(*variables, strict=True):
        assert to_numpy(expected).tobytes() == to_numpy(variable).tobytes(), (
            expected.path
        )
