"""Whatever graph of layers is accepted: its steps are its sequence."""

import keras
import numpy as np
import pytest
from cases import keras_before
from hypothesis import HealthCheck
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st
from keras import layers
from keras import ops

from keras_rin.export import streaming_step
from keras_rin.initializers import Offset
from keras_rin.layers import RIN
from keras_rin.layers import DeepTransitionRINCell
from keras_rin.layers import FixedProjection
from keras_rin.layers import LinearResidual
from keras_rin.layers import ResidualDense
from keras_rin.layers import ResidualDenseStack
from keras_rin.layers import RINCell

pytestmark = pytest.mark.one_backend

WIDTH, STEPS, TOKENS = 3, 5, 4
NORMAL = keras.initializers.RandomNormal(stddev=0.5)

RECURRENT = {
    "RIN": lambda **kw: RIN(
        WIDTH, "tanh", recurrent_initializer=Offset("orthogonal"), **kw
    ),
    "SimpleRNN": lambda **kw: layers.SimpleRNN(WIDTH, **kw),
    "GRU": lambda **kw: layers.GRU(WIDTH, **kw),
    "LSTM": lambda **kw: layers.LSTM(WIDTH, **kw),
    "two transitions": lambda **kw: layers.RNN(
        DeepTransitionRINCell(WIDTH, "tanh"), **kw
    ),
    "two cells": lambda **kw: layers.RNN(
        [layers.LSTMCell(2), RINCell(WIDTH, "tanh")], **kw
    ),
}
# Sequences to sequences of the same width. Each keeps a mask.
BETWEEN = {
    "Dropout": lambda h: layers.Dropout(0.5)(h),
    "Dense": lambda h: layers.Dense(WIDTH, activation="tanh")(h),
    "LayerNormalization": lambda h: layers.LayerNormalization()(h),
    "TimeDistributed": lambda h: layers.TimeDistributed(layers.Dense(WIDTH))(h),
    "Add": lambda h: layers.Add()([h, layers.Dense(WIDTH)(h)]),
    "Concatenate": lambda h: layers.Dense(WIDTH)(
        layers.Concatenate()([h, layers.Dense(2)(h)])
    ),
    "LinearResidual": lambda h: LinearResidual(NORMAL)(h),
    "ResidualDense": lambda h: ResidualDense(2, "tanh")(h),
    "ResidualDenseStack": lambda h: ResidualDenseStack(
        2, depth=2, output_initializer=NORMAL
    )(h),
    "FixedProjection": lambda h: FixedProjection(WIDTH)(h),
    "around a GRU": lambda h: layers.Add()(
        [h, layers.GRU(WIDTH, return_sequences=True)(h)]
    ),
    "beside a GRU": lambda h: layers.Dense(WIDTH)(
        layers.Concatenate()([h, layers.GRU(2, return_sequences=True)(h)])
    ),
}
# These do not, and Keras warns of it.
UNMASKED = {
    "operations": lambda h: ops.tanh(h) - 0.5 * h[..., :1],
    "a model": lambda h: keras.Sequential(
        [
            keras.Input((None, WIDTH)),
            layers.Dense(2),
            layers.SimpleRNN(WIDTH, return_sequences=True),
        ]
    )(h),
}
if keras_before("3.12"):  # where Concatenate cannot take a mask
    for name in ("Concatenate", "beside a GRU"):
        UNMASKED[name] = BETWEEN.pop(name)


@st.composite
def graphs(draw):
    """How to make a model, in words: its front, its layers and its end."""
    front = draw(st.sampled_from(["numbers", "tokens", "masked tokens"]))
    between = [*BETWEEN, *({} if front == "masked tokens" else UNMASKED)]
    blocks = st.sampled_from([*RECURRENT, *between])
    middle = draw(st.lists(blocks, max_size=3))
    return (
        front,
        middle,
        draw(st.sampled_from([*RECURRENT])),
        draw(
            st.fixed_dictionaries(
                {
                    "return_sequences": st.booleans(),
                    "zero_output_for_mask": st.booleans(),
                }
            )
        ),
    )


def model_of(front, middle, last, options):
    if front == "numbers":
        x = keras.Input((None, WIDTH))
        h = layers.Dense(WIDTH)(x)
    else:
        x = keras.Input((None,), dtype="int32")
        h = layers.Embedding(
            TOKENS, WIDTH, NORMAL, mask_zero=front == "masked tokens"
        )(x)
    for name in middle:
        if name in RECURRENT:
            h = RECURRENT[name](return_sequences=True)(h)
        else:
            h = {**BETWEEN, **UNMASKED}[name](h)
    h = RECURRENT[last](**options)(h)
    return keras.Model(x, layers.Dense(2)(h))


def check(graph, batch, seed):
    keras.utils.set_random_seed(seed)
    model = model_of(*graph)
    model.run_eagerly = True
    rng = np.random.default_rng(seed)
    if graph[0] == "numbers":
        x = rng.normal(size=(batch, STEPS, WIDTH)).astype("float32")
    else:
        x = rng.integers(TOKENS, size=(batch, STEPS)).astype("int32")
    step = streaming_step(model)
    state = {
        name: ops.zeros((batch, *one.shape[1:]), one.dtype)
        for name, one in step.input.items()
        if name != "x"
    }
    answers = []
    for t in range(STEPS):
        state = step({"x": ops.convert_to_tensor(x[:, t]), **state})
        answers.append(ops.convert_to_numpy(state.pop("y")))
    expected = model.predict(x, verbose=0)
    if not graph[3]["return_sequences"]:
        answers, expected = answers[-1:], expected[:, None]
    answers = np.stack(answers, axis=1)
    np.testing.assert_allclose(answers, expected, rtol=1e-4, atol=1e-5)


LAW = given(graphs(), st.integers(1, 3), st.integers(0, 1000))
OPTIONS = {
    "deadline": None,
    "derandomize": True,
    "database": None,
    "suppress_health_check": list(HealthCheck),
}


@settings(max_examples=5, **OPTIONS)
@LAW
def test_steps_are_the_sequence_in_some_graphs(graph, batch, seed):
    check(graph, batch, seed)


@pytest.mark.exhaustive
@settings(max_examples=20, **OPTIONS)
@LAW
def test_steps_are_the_sequence_in_many_graphs(graph, batch, seed):
    check(graph, batch, seed)
