"""Small recurrent layers of the literature, to compare with.

Each is called with sequences `(batch, time, features)` and returns the hidden
states of all steps.
"""

import keras
from keras import ops


class Peer(keras.layers.Layer):
    """A recurrence h_t = step(z_t, h_{t-1}), with z_t = x_t W."""

    initial = {}  # weights that are not kernels, {name: (shape, value)}

    def __init__(self, units, return_sequences=True, **kwargs):
        super().__init__(**kwargs)
        self.units = units

    def build(self, input_shape):
        units = self.units
        self.kernel = self.add_weight(
            shape=(input_shape[-1], units), name="kernel"
        )
        self.weight = {
            name: self.add_weight(
                shape=(units,) * is_vector,
                initializer=keras.initializers.Constant(value),
                name=name,
            )
            for name, (is_vector, value) in self.initial.items()
        }
        self.recurrent_kernel = self.add_weight(
            shape=(units, units),
            initializer=keras.initializers.RandomNormal(stddev=0.1),
            name="recurrent_kernel",
        )

    def call(self, x):
        def step(h, z_t):
            h = self.step(h, z_t)
            return h, h

        initial_state = ops.zeros((ops.shape(x)[0], self.units))
        z = ops.swapaxes(x @ self.kernel, 0, 1)
        _, states = ops.scan(step, initial_state, z)
        return ops.swapaxes(states, 0, 1)


class FastRNN(Peer):
    """h_t = sigmoid(b) h_{t-1} + sigmoid(a) tanh(x_t W + h_{t-1} U + bias)."""

    initial = {"bias": (1, 0.0), "alpha": (0, -3.0), "beta": (0, 3.0)}

    def step(self, h, z):
        weight = self.weight
        c = ops.tanh(z + h @ self.recurrent_kernel + weight["bias"])
        return (
            ops.sigmoid(weight["beta"]) * h + ops.sigmoid(weight["alpha"]) * c
        )


class FastGRNN(Peer):
    """z_t and c_t share W and U; h_t = (zeta (1 - z_t) + nu) c_t + z_t h."""

    initial = {
        "bias": (1, 0.0),
        "gate_bias": (1, 1.0),
        "zeta": (0, 1.0),
        "nu": (0, -4.0),
    }

    def step(self, h, z):
        weight = self.weight
        z = z + h @ self.recurrent_kernel
        gate = ops.sigmoid(z + weight["gate_bias"])
        zeta, nu = ops.sigmoid(weight["zeta"]), ops.sigmoid(weight["nu"])
        c = ops.tanh(z + weight["bias"])
        return (zeta * (1 - gate) + nu) * c + gate * h
