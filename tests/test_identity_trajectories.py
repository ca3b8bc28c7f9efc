"""Why V as U + I helps: only what acts on the weights themselves differs.

The gradient with respect to U is the gradient with respect to U + I, so that no
optimizer that reads gradients alone can tell a RIN from a SimpleRNN initialized
to I + U, which is an IRNN at U = 0. A penalty can.
"""

import keras
import numpy as np
import pytest
from references import assert_same
from references import to_numpy

from keras_rin.layers import RIN
from keras_rin.regularizers import IdentityOffsetL2

pytestmark = pytest.mark.one_backend

UNITS, STEPS = 8, 30
OPTIMIZERS = {
    "SGD": lambda: keras.optimizers.SGD(0.05),
    "Adam": lambda: keras.optimizers.Adam(0.01, clipnorm=1.0),
}
# 0.125 is exact in float32, to which Keras rounds the strength of its L2.
# On Torch, Keras computes parts of a float64 step in float32.
ROUNDING = 1e-5 if keras.backend.backend() == "torch" else 1e-9


def trained_effective_kernel(layer, start, data, optimizer):
    model = keras.Sequential([keras.Input((12, 2)), layer])
    layer.cell.set_weights(start)
    model.compile(OPTIMIZERS[optimizer](), "mse")
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

    def train(rin_penalty, simple_rnn_penalty, optimizer="SGD", noise=1.0):
        rin = RIN(UNITS, recurrent_regularizer=rin_penalty)
        simple_rnn = keras.layers.SimpleRNN(
            UNITS, "relu", recurrent_regularizer=simple_rnn_penalty
        )
        effective = noise * offset + np.eye(UNITS)
        return (
            trained_effective_kernel(
                rin, [kernel, noise * offset, bias], data, optimizer
            ),
            trained_effective_kernel(
                simple_rnn, [kernel, effective, bias], data, optimizer
            ),
            effective,
        )

    return train


@pytest.mark.parametrize(
    "optimizer, noise",
    [("SGD", 1.0), ("Adam", 0.0)],  # an IRNN without noise
)
def test_without_a_penalty_the_paths_are_one(train_pair, optimizer, noise):
    rin, simple_rnn, start = train_pair(None, None, optimizer, noise)
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
