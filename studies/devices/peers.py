"""Small recurrent layers of the literature, to compare with.

Each is called with sequences `(batch, time, features)` and returns the hidden
states of all steps.
"""

import keras
from keras import ops

from keras_rin.cells import CellDescription
from keras_rin.cells import describe


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


class PeerCell(keras.layers.SimpleRNNCell):
    """A cell that `describe` makes known, so that it becomes a header."""

    vectors = {}  # weights of the step, {name: (is a vector, value)}

    def __init__(self, units, **kwargs):
        recurrent = keras.initializers.RandomNormal(stddev=0.1)
        kwargs = {"recurrent_initializer": recurrent} | kwargs
        super().__init__(units, **kwargs)

    def build(self, input_shape):
        super().build(input_shape)
        for name, (is_vector, value) in self.vectors.items():
            weight = self.add_weight(
                shape=(self.units,) * is_vector,
                initializer=keras.initializers.Constant(value),
                name=name,
            )
            setattr(self, name, weight)

    def each(self, value):
        return value + 0 * self.bias  # in the type of a call


@keras.saving.register_keras_serializable(package="studies")
class FastGRNNCell(PeerCell):
    """That of `FastGRNN`: h_t = (zeta (1 - z_t) + nu) c_t + z_t h."""

    vectors = {
        "gate_bias": (1, 1.0),
        "raw_zeta": (0, 1.0),
        "raw_nu": (0, -4.0),
    }
    recurrent_activation = staticmethod(keras.activations.sigmoid)

    zeta = property(lambda self: self.each(ops.sigmoid(self.raw_zeta)))
    open = property(lambda self: self.zeta + ops.sigmoid(self.raw_nu))
    difference = property(lambda self: self.gate_bias - self.bias)

    def call(self, x, states, training=False):
        (h,) = keras.tree.flatten(states)
        z = x @ self.kernel + h @ self.recurrent_kernel
        gate, c = ops.sigmoid(z + self.gate_bias), ops.tanh(z + self.bias)
        h = self.open * c + gate * (h - self.zeta * c)
        return h, [h]


def fast_grnn(writer, cell):
    writer.project()
    writer.add_product("h")
    writer.set_bias("gate", "difference")
    writer.call("add", "recurrent", "gate")
    writer.activate("gate", "recurrent_activation")
    writer.activate("recurrent")
    writer.set_bias("part", "zeta")
    writer.call("multiply", "recurrent", "part")
    writer.call("subtract", "part", "h")
    writer.call("multiply", "gate", "h")
    writer.set_bias("part", "open")
    writer.call("multiply", "part", "recurrent")
    writer.call("add", "recurrent", "h")


@keras.saving.register_keras_serializable(package="studies")
class ComfiFastGRNNCell(FastGRNNCell):
    """gamma h_t + (1 - gamma) lambda, of the h_t of a FastGRNN."""

    vectors = FastGRNNCell.vectors | {
        "raw_gamma": (0, 0.999),
        "center": (0, 0.0),
    }
    gamma = property(lambda self: self.each(ops.clip(self.raw_gamma, 0, 1)))
    pull = property(lambda self: (1 - self.gamma) * self.center)

    def call(self, x, states, training=False):
        h, _ = super().call(x, states)
        h = self.gamma * h + self.pull
        return h, [h]


def comfi_fast_grnn(writer, cell):
    fast_grnn(writer, cell)
    writer.set_bias("part", "gamma")
    writer.call("multiply", "part", "h")
    writer.set_bias("part", "pull")
    writer.call("add", "part", "h")


@keras.saving.register_keras_serializable(package="studies")
class EGRUCell(keras.layers.Layer):
    """h_t = z_t h + (1 - z_t) c_t, with z_t = (1 + softsign(z)) / 2."""

    activation = staticmethod(keras.activations.softsign)

    def __init__(self, units, **kwargs):
        super().__init__(**kwargs)
        self.units = self.state_size = self.output_size = units

    def build(self, input_shape):
        size = 2 * self.units
        self.kernel = self.add_weight((input_shape[-1], size), name="kernel")
        self.recurrent_kernel = self.add_weight(
            (self.units, size),
            initializer=keras.initializers.RandomNormal(stddev=0.1),
            name="recurrent_kernel",
        )
        self.bias = self.add_weight((size,), initializer="zeros", name="bias")

    half = property(lambda self: ops.full((self.units,), 0.5))

    def call(self, x, states):
        (h,) = keras.tree.flatten(states)
        z = x @ self.kernel + h @ self.recurrent_kernel + self.bias
        gate, c = ops.split(ops.softsign(z), 2, axis=-1)
        gate = 0.5 + 0.5 * gate
        h = gate * h + (1 - gate) * c
        return h, [h]

    def get_config(self):
        return super().get_config() | {"units": self.units}


def e_gru(writer, cell):
    writer.project()
    writer.add_product("h")
    writer.activate("gate")
    writer.activate("candidate")
    writer.set_bias("half", "half")
    writer.call("multiply", "half", "gate")
    writer.call("add", "half", "gate")
    writer.call("interpolate", "gate", "candidate", "h")


describe(FastGRNNCell(2), CellDescription(fast_grnn, scratch=("gate", "part")))
describe(
    ComfiFastGRNNCell(2),
    CellDescription(comfi_fast_grnn, scratch=("gate", "part")),
)
describe(
    EGRUCell(2),
    CellDescription(e_gru, gates=("gate", "candidate"), scratch=("half",)),
)
