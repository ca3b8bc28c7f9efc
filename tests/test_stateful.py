"""A stateful layer continues its sequences, and refuses another batch size."""

import keras
import numpy as np
import pytest
import references
from cases import first_of
from cases import keras_before
from references import assert_same
from references import to_numpy

from keras_rin.layers import RIN
from keras_rin.layers import NoisyRNN
from keras_rin.layers import RINCell

BACKEND = keras.backend.backend()


RESETS = pytest.mark.skipif(
    BACKEND == "jax" and keras_before("3.12"),
    reason="this Keras cannot reset states on JAX",
)


@RESETS
@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("masked", [False, True])
def test_batches_of_one_to_six_steps_are_one_sequence(rng, training, masked):
    lengths = [4, 1, 6, 1, 4, 6]
    x = rng.normal(size=(2, sum(lengths), 3)).astype("float32")
    mask = rng.random(size=x.shape[:2]) < 0.7 if masked else None
    rin = RIN(5, "tanh", recurrent_initializer="uniform", stateful=True)
    rin.build((2, None, 3))
    weights = rin.get_weights()
    expected = references.numpy_rin(x, weights, "tanh", mask=mask)
    for end, length in zip(np.cumsum(lengths), lengths, strict=True):
        now = slice(end - length, end)
        part = None if mask is None else mask[:, now]
        rin(x[:, now], mask=part, training=training)
        assert_same(rin.states[0], expected[:, end - 1], atol=1e-4)
    rin.reset_state()
    outputs = rin(x[:, :4], mask=None if mask is None else mask[:, :4])
    assert_same(outputs, expected[:, 3], atol=1e-4)


LAYERS = {
    "auto": lambda: RIN(4, stateful=True),
    "fused": lambda: RIN(4, stateful=True, fused=True, return_state=True),
    "backwards": lambda: RIN(4, stateful=True, fused=False, go_backwards=True),
    "noisy": lambda: NoisyRNN(RINCell(4), stddev=0.0, stateful=True),
}
XLA = BACKEND != "torch"


@RESETS
@pytest.mark.parametrize("name", ["auto", "fused", "noisy"])
def test_the_batches_of_a_model_are_one_sequence(rng, name):
    """In all that runs them; the rate 0 leaves the weights as they are."""
    layer, inputs = LAYERS[name](), keras.Input(batch_shape=(2, 4, 3))
    model = keras.Model(inputs, keras.tree.flatten(layer(inputs))[-1])
    model.compile(keras.optimizers.SGD(0.0), "mse")
    x = rng.normal(size=(2, 12, 3)).astype("float32")
    states = references.numpy_rin(x, layer.get_weights(), "relu")
    x, y = (
        np.concatenate(np.split(x, 3, axis=1)),
        np.vstack([states[:, t] for t in (3, 7, 11)]),
    )
    options = {"batch_size": 2, "verbose": 0}
    assert_same(model.predict(x, **options), y, atol=1e-4)
    assert_same(layer.states[0], y[-2:], atol=1e-4)
    layer.reset_state()
    assert model.evaluate(x, y, **options) < 1e-8
    layer.reset_state()
    losses = model.fit(x, y, shuffle=False, **options).history["loss"]
    assert losses[0] < 1e-8
    assert len(model.weights) == 3 and len(layer.get_weights()) == 3


@pytest.mark.parametrize(
    "name, method, jit_compile",
    first_of(
        [
            ("auto", "predict", False),
            ("fused", "fit", False),
            ("noisy", "evaluate", False),
            ("backwards", "predict", XLA),
            ("auto", "fit", XLA),
        ],
        4,
    ),
)
def test_a_smaller_last_batch_is_refused(rng, name, method, jit_compile):
    """Six sequences in batches of five leave one, which would be broadcast."""
    layer, inputs = LAYERS[name](), keras.Input(batch_shape=(5, 12, 3))
    outputs = keras.tree.flatten(layer(inputs))[-1]
    model = keras.Model(inputs, keras.layers.Dense(1)(outputs))
    model.compile("sgd", "mse", jit_compile=jit_compile)
    x = rng.normal(size=(6, 12, 3))
    model.predict(x[:5], batch_size=5, verbose=0)
    states = to_numpy(layer.states[0]).copy()
    layer.states[0].assign(np.zeros((5, 4)))
    message = rf"{layer.name} is stateful with a batch size of 5\..* \[?1\b"
    if jit_compile and BACKEND == "tensorflow":
        # XLA leaves the sentence out and names the layer and the operation.
        message = rf"{layer.name}\w*/stateful_batch_size"
    error = ValueError
    if BACKEND == "tensorflow":
        import tensorflow as tf

        error = tf.errors.InvalidArgumentError
    y = [] if method == "predict" else [x[:, 0, :1]]
    with pytest.raises(error, match=message):
        getattr(model, method)(x, *y, batch_size=5, verbose=0)
    if BACKEND != "jax" and method != "fit":
        assert_same(layer.states[0], states)


@pytest.mark.parametrize("batch", [1, 3])
def test_a_refused_batch_leaves_the_states(rng, batch):
    rin = RIN(5, stateful=True)
    x = rng.normal(size=(4, 6, 3))
    rin(x)
    before = to_numpy(rin.states[0]).copy()
    with pytest.raises(ValueError, match="batch size of 4.* batch size of"):
        rin(x[:batch])
    assert_same(rin.states[0], before, 0, 0)
