"""One step after another is what the layer makes of the sequence."""

import keras
import numpy as np
import pytest
from keras import layers
from keras import ops

from keras_rin.export._cell_step import CellStep
from keras_rin.layers import RIN
from keras_rin.layers import DeepTransitionRINCell
from keras_rin.layers import RINCell

RECURRENT = {
    "RIN": lambda **kw: RIN(4, **kw),
    "SimpleRNN": lambda **kw: layers.SimpleRNN(4, **kw),
    "GRU": lambda **kw: layers.GRU(4, **kw),
    "LSTM": lambda **kw: layers.LSTM(4, **kw),
    "two transitions": lambda **kw: layers.RNN(DeepTransitionRINCell(4), **kw),
    "two cells": lambda **kw: layers.RNN(
        [layers.LSTMCell(3), RINCell(4)], **kw
    ),
    "a wider cell": lambda **kw: layers.RNN(
        RINCell(4, dtype="float64"), dtype="float32", **kw
    ),
}


@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize("name", RECURRENT)
def test_a_masked_step_is_that_of_keras(rng, name, zeros):
    layer = RECURRENT[name](
        return_sequences=True, return_state=True, zero_output_for_mask=zeros
    )
    x = rng.normal(size=(3, 7, 2)).astype("float32")
    mask = rng.random(size=(3, 7)) < 0.6
    y, *states = layer(x, mask=mask)
    step, state = CellStep(layer), layer.get_initial_state(3)
    answers = []
    for t in range(7):
        now = slice(t, t + 1)
        answer, state = step(x[:, now], state, x_mask=mask[:, now])
        assert answer.dtype == y.dtype
        answers.append(ops.convert_to_numpy(answer))
    y = ops.convert_to_numpy(y)
    np.testing.assert_allclose(np.concatenate(answers, 1), y, atol=1e-5)
    for one, other in zip(
        keras.tree.flatten(state), keras.tree.flatten(states), strict=True
    ):
        np.testing.assert_allclose(
            ops.convert_to_numpy(one), ops.convert_to_numpy(other), atol=1e-5
        )


def test_a_mask_of_more_than_the_steps_is_refused():
    layer = RIN(4)
    x, mask = np.ones((2, 1, 3), "float32"), np.ones((2, 1, 3), bool)
    layer.build(x.shape)
    with pytest.raises(ValueError, match="its mask has the shape"):
        CellStep(layer)(x, [np.zeros((2, 4), "float32")], x_mask=mask)


@pytest.mark.parametrize("batch", [1, 3])
def test_a_state_of_another_batch_size_is_refused(batch):
    layer = layers.LSTM(4)
    layer.build((2, 1, 3))
    states = [np.zeros((batch, 4), "float32")] * 2
    with pytest.raises(ValueError, match="the batch size of `x`, 2"):
        CellStep(layer)(np.ones((2, 1, 3), "float32"), states)
