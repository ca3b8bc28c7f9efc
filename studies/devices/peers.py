"""Small recurrent layers of the literature, to compare with.

Each is called with sequences `(batch, time, features)` and returns the hidden
states of all steps.
"""

import keras
from keras import ops


class Peer(keras.layers.Layer):
    """A recurrence h_t = step(z_t, h_{t-1}), with z_t = x_t W."""

    gates = 1  # matrices in W
    initial = {}  # weights that are not kernels, {name: (shape, value)}

    def __init__(self, units, return_sequences=True, **kwargs):
        super().__init__(**kwargs)
        self.units = units

    def build(self, input_shape):
        units = self.units
        self.kernels = [
            self.add_weight(shape=(input_shape[-1], units), name=f"kernel_{n}")
            for n in range(self.gates)
        ]
        self.weight = {
            name: self.add_weight(
                shape=(units,) * is_vector,
                initializer=keras.initializers.Constant(value),
                name=name,
            )
            for name, (is_vector, value) in self.initial.items()
        }
        if self.has_recurrent_kernel:
            self.recurrent_kernel = self.add_weight(
                shape=(units, units),
                initializer=keras.initializers.RandomNormal(stddev=0.1),
                name="recurrent_kernel",
            )

    has_recurrent_kernel = True

    def call(self, x):
        z = [ops.swapaxes(x @ kernel, 0, 1) for kernel in self.kernels]

        def step(h, z_t):
            h = self.step(h, *z_t)
            return h, h

        initial_state = ops.zeros((ops.shape(x)[0], self.units))
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


class MinGRU(Peer):
    """h_t = h_{t-1} + z_t (c_t - h_{t-1}), where z_t and c_t read x_t alone."""

    gates = 2
    initial = {"gate_bias": (1, -3.0), "bias": (1, 0.0)}
    has_recurrent_kernel = False

    def step(self, h, gate, c):
        gate = ops.sigmoid(gate + self.weight["gate_bias"])
        return h + gate * (c + self.weight["bias"] - h)


class OpenMinGRU(MinGRU):
    """A MinGRU whose gate begins half open."""

    initial = {"gate_bias": (1, 0.0), "bias": (1, 0.0)}
