"""Why V as U + I helps: only what acts on the weights themselves differs.

The gradient with respect to U is the gradient with respect to U + I, so that
plain SGD cannot tell a RIN from a SimpleRNN started at I + U. A penalty can.
"""

import keras
import numpy as np
import pytest
from witnesses import assert_same
from witnesses import to_numpy

from keras_rin.layers import RIN
from keras_rin.regularizers import IdentityOffsetL2

UNITS, STEPS = 8, 30
# 0.125 is exact in float32, to which Keras rounds the strength of its L2.
# On Torch, Keras computes parts of a float64 step in float32.
ROUNDING = 1e-5 if keras.backend.backend() == "torch" else 1e-9


def trained_effective_kernel(layer, start, data):
    model = keras.Sequential([keras.Input((12, 2)), layer])
    layer.cell.set_weights(start)
    model.compile(keras.optimizers.SGD(0.05), "mse")
    for _ in range(STEPS):
        model.train_on_batch(*data)
    if isinstance(layer, RIN):
        return to_numpy(layer.effective_recurrent_kernel)
    return to_numpy(layer.cell.recurrent_kernel)


@pytest.fixture
def train_pair(rng, float64):
    """Trains both from the same function, with a penalty on each."""
    kernel = rng.normal(size=(2, UNITS)) / 2
    offset = rng.normal(size=(UNITS, UNITS)) / 20
    bias = np.zeros(UNITS)
    data = rng.normal(size=(16, 12, 2)), rng.normal(size=(16, UNITS))

    def train(rin_penalty, simple_rnn_penalty):
        rin = RIN(UNITS, recurrent_regularizer=rin_penalty)
        simple_rnn = keras.layers.SimpleRNN(
            UNITS,
            "relu",
            recurrent_regularizer=simple_rnn_penalty,
        )
        effective = offset + np.eye(UNITS)
        return (
            trained_effective_kernel(rin, [kernel, offset, bias], data),
            trained_effective_kernel(
                simple_rnn, [kernel, effective, bias], data
            ),
            effective,
        )

    return train


def test_without_a_penalty_the_paths_are_one(train_pair):
    rin, simple_rnn, start = train_pair(None, None)
    assert np.abs(rin - start).max() > 0.01
    assert_same(rin, simple_rnn, rtol=ROUNDING, atol=ROUNDING)


def test_l2_on_the_offset_is_identity_offset_l2_on_the_effective_matrix(
    train_pair,
):
    rin, simple_rnn, _ = train_pair(
        keras.regularizers.L2(0.125), IdentityOffsetL2(0.125)
    )
    assert_same(rin, simple_rnn, rtol=ROUNDING, atol=ROUNDING)


def test_l2_on_the_effective_matrix_goes_elsewhere(train_pair):
    rin, simple_rnn, _ = train_pair(
        keras.regularizers.L2(0.125), keras.regularizers.L2(0.125)
    )
    identity = np.eye(UNITS)
    assert np.abs(rin - simple_rnn).max() > 0.05
    assert np.linalg.norm(rin - identity) < np.linalg.norm(
        simple_rnn - identity
    )
