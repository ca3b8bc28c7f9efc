"""Independent computations that the tests compare with."""

import dataclasses

import keras
import numpy as np

ACTIVATIONS = {
    "relu": lambda z: np.maximum(z, 0),
    "tanh": np.tanh,
    "sigmoid": lambda z: 1 / (1 + np.exp(-z)),
    "linear": lambda z: z,
    "leaky_relu": lambda z: np.where(z > 0, z, 0.2 * z),
    "elu": lambda z: np.where(z > 0, z, np.expm1(np.minimum(z, 0))),
}

# Where a step counts, of shape (time, batch).
MASKS = {
    "none": lambda t, b: None,
    "leading": lambda t, b: np.repeat(np.arange(t)[:, None] >= 2, b, 1),
    "trailing": lambda t, b: np.repeat(np.arange(t)[:, None] < t - 2, b, 1),
    "rows": lambda t, b: np.repeat(np.arange(b)[None] != 1, t, 0),
    "alternating": lambda t, b: np.indices((t, b)).sum(0) % 2 < 1,
}


def to_numpy(tensor):
    return keras.ops.convert_to_numpy(tensor)


def orthogonal(rng, units):
    return np.linalg.qr(rng.normal(size=(units, units))).Q


def built(layer, features=2):
    layer.build((None, None, features))
    return layer


def weights64(layer):
    return [np.asarray(weight, "float64") for weight in layer.get_weights()]


def assert_same(actual, expected, rtol=1e-5, atol=1e-5):
    """Two tensors, or two lists of tensors, are the same."""
    if isinstance(actual, list | tuple):
        for value, reference in zip(actual, expected, strict=True):
            assert_same(value, reference, rtol, atol)
    else:
        np.testing.assert_allclose(
            to_numpy(actual), to_numpy(expected), rtol=rtol, atol=atol
        )


def rin_step(activation, stored=1.0):
    """h_t of the weights, x_t and h: of a RIN, or of a SimpleRNN if 0 is."""

    def step(weights, x, h):
        kernel, recurrent, bias = weights
        z = x @ kernel + h @ recurrent + stored * h + bias
        return ACTIVATIONS[activation](z)

    return step


def residual_step(activation):
    """h_t of the weights, x_t and h, of a ResidualRNN."""

    def step(weights, x, h):
        kernel, recurrent, output, bias = weights
        z = x @ kernel + h @ recurrent + bias
        return h + ACTIVATIONS[activation](z) @ output

    return step


def numpy_states(step, weights, x, h, mask=None):
    """The states (batch, time, units), step by step in float64."""
    states = []
    for t in range(x.shape[1]):
        new = step(weights, x[:, t], h)
        h = new if mask is None else np.where(mask[:, t, None], new, h)
        states.append(h)
    return np.stack(states, axis=1)


def numpy_rin(x, weights, activation, h=None, mask=None):
    """The states (batch, time, units) of a RIN."""
    x, *weights = (np.asarray(array, "float64") for array in (x, *weights))
    h = np.zeros((len(x), len(weights[1]))) if h is None else h
    return numpy_states(rin_step(activation), weights, x, h, mask)


def simple_rnn(matrix, activation="tanh", bias=0.0):
    """A SimpleRNN of one feature with this recurrent kernel."""
    layer = built(keras.layers.SimpleRNN(len(matrix), activation), features=1)
    layer.cell.recurrent_kernel.assign(matrix)
    layer.cell.bias.assign(np.full(len(matrix), bias))
    return layer


class Map(keras.layers.Layer):
    """A cell without weights: a function of a state and an input."""

    def __init__(self, function, units, features=1):
        super().__init__()
        self.function, self.state_size = function, units
        self.build((None, features))

    def call(self, inputs, states):
        new = self.function(states[0], inputs)
        return new, [new]


class MapFromFive(Map):
    """A map whose initial state is not zero."""

    def get_initial_state(self, batch_size=None):
        return [keras.ops.full((batch_size, self.state_size), 5.0)]


def plane_map(function):
    """The cell of a function of two numbers, which the input moves."""

    def step(state, inputs):
        x, y = keras.ops.split(state + inputs, 2, axis=-1)
        return keras.ops.concatenate(function(x, y), axis=-1)

    return Map(step, 2)


NOT_FOR_SIMPLE_RNN = {"name", "recurrent_initializer", "fused", "recompute"}


def simple_rnn_of(rin, **kwargs):
    """The SimpleRNN whose recurrent kernel is the U + I of a built RIN."""
    config = {
        key: value
        for key, value in rin.get_config().items()
        if key not in NOT_FOR_SIMPLE_RNN
    }
    simple_rnn = keras.layers.SimpleRNN(**{**config, **kwargs})
    batch = rin.states and rin.states[0].shape[0]
    simple_rnn.build((batch, None, rin.cell.kernel.shape[0]))
    kernel, offset, *bias = rin.cell.get_weights()
    simple_rnn.cell.set_weights([kernel, offset + np.eye(len(offset)), *bias])
    return simple_rnn


def outputs_of_steps(step, x):
    """The outputs (batch, time, ...) of a `streaming_step` along x."""
    state = {
        name: keras.ops.zeros((len(x), *tensor.shape[1:]), tensor.dtype)
        for name, tensor in step.input.items()
    }
    outputs = []
    for t in range(x.shape[1]):
        state = step({**state, "x": keras.ops.convert_to_tensor(x[:, t])})
        outputs.append(to_numpy(state.pop("y")))
    return np.stack(outputs, axis=1)


class Around(keras.layers.Layer):
    """A layer of a user's own around another."""

    def __init__(self, inside):
        super().__init__()
        self.inside = inside

    def build(self, shape):
        self.inside.build(shape)

    def call(self, x):
        return self.inside(x)


class Averaging(keras.layers.Layer):
    """A layer with a metric of its own."""

    def __init__(self):
        super().__init__()
        self.average = keras.metrics.Mean()

    def call(self, x):
        self.average.update_state(x)
        return x


@dataclasses.dataclass
class Power:
    """An activation with an order and without a hash."""

    exponent: int

    def __call__(self, z):
        return keras.ops.tanh(z) ** self.exponent


def warning_of(caught):
    """The text of the one warning that is the package's."""
    (text,) = (str(w.message) for w in caught if w.category is UserWarning)
    return text


def drawn_lines(figure):
    """The data of each line of the first axes, by label."""
    return {
        line.get_label(): line.get_xydata().T
        for line in figure.axes[0].get_lines()
    }
