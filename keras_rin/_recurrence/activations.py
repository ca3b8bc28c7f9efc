"""The activations of a fused recurrence, and their derivatives."""

from operator import methodcaller

import keras
from keras import ops

from keras_rin._recurrence.backends import where


def _scale_by_slope(gradient):
    # The slope of Keras, which TensorFlow rounds to float32.
    minus_one = -ops.ones((), gradient.dtype)
    return gradient * -keras.activations.leaky_relu(minus_one)


# Each function computes dL/da from g = dL/du and from u = phi(a), without a.
PULLBACKS = {
    keras.activations.linear: lambda g, u: g,
    keras.activations.relu: lambda g, u: where(u > 0, g, 0.0),
    keras.activations.leaky_relu: lambda g, u: where(
        u > 0, g, _scale_by_slope(g)
    ),
    keras.activations.elu: lambda g, u: where(u > 0, g, g * (u + 1.0)),
    keras.activations.tanh: lambda g, u: g * (1.0 - u * u),
    keras.activations.sigmoid: lambda g, u: g * u * (1.0 - u),
}

# A function of `keras.ops` takes longer on Torch than a time step: these are
# methods of its tensors.
TORCH_ACTIVATIONS: dict = {
    getattr(keras.activations, name): methodcaller(name)
    for name in ("relu", "tanh", "sigmoid")
}

# The loops of Torch that cuDNN runs as one program.
LOOPS_OF_TORCH: dict = {
    keras.activations.relu: "rnn_relu",
    keras.activations.tanh: "rnn_tanh",
}

# XLA computes a plain ReLU twice, for the state and for the array of stored
# states, but a selection only once. Both propagate NaN.
XLA_ACTIVATIONS: dict = {
    keras.activations.relu: lambda a: ops.where(a <= 0, 0.0, a)
}


def fastest_activation(activation, compiled):
    faster = XLA_ACTIVATIONS if compiled else {}
    faster = {"jax": XLA_ACTIVATIONS, "torch": TORCH_ACTIVATIONS}.get(
        keras.backend.backend(), faster
    )
    return faster.get(activation, activation)
