"""A cell of a user's own, which Keras and the diagnostics do not know."""

import keras
import numpy as np
import pytest
from references import built
from references import weights64

from keras_rin import diagnostics

LEAK = 0.3


class LeakyCell(keras.layers.Layer):
    """h + leak (tanh(x W + h V + b) - h), and a state that counts the steps.

    V and b lie in a layer of the cell.
    """

    state_size, output_size = [4, 1], 4

    def build(self, input_shape):
        self.kernel = self.add_weight((input_shape[-1], 4))
        self.recurrent = keras.layers.Dense(4)
        self.recurrent.build((None, 4))
        self.activation = keras.activations.tanh

    @property
    def recurrent_kernel(self):
        return self.recurrent.kernel

    def call(self, inputs, states):
        h, count = states
        z = inputs @ self.kernel + self.recurrent(h)
        h = h + LEAK * (self.activation(z) - h)
        return h, [h, count + 1.0]


@pytest.fixture
def cell(rng):
    cell = built(LeakyCell())
    cell.set_weights([rng.normal(size=w.shape) for w in cell.get_weights()])
    return cell


def test_its_states_and_derivatives_are_those_of_numpy(cell, rng):
    kernel, recurrent, bias = weights64(cell)
    x, h = rng.normal(size=(3, 6, 2)), rng.normal(size=(3, 4))
    states, jacobians = [h], np.zeros((3, 6, 5, 5))
    for t in range(6):
        phi = np.tanh(x[:, t] @ kernel + states[-1] @ recurrent + bias)
        states.append((1 - LEAK) * states[-1] + LEAK * phi)
        slopes = LEAK * (1 - phi**2)[:, :, None] * recurrent.T
        jacobians[:, t, :4, :4] = (1 - LEAK) * np.eye(4) + slopes
        jacobians[:, t, 4, 4] = 1
    states = np.stack(states, axis=1)
    arguments = {"layer": cell, "x": x, "initial_states": [h, np.zeros((3, 1))]}
    actual = diagnostics.state_trajectories(**arguments, dtype="float64")
    np.testing.assert_allclose(actual[..., :4], states, atol=1e-14)
    np.testing.assert_array_equal(actual[:, :, 4], [range(7)] * 3)
    actual = diagnostics.state_jacobians(**arguments, dtype="float64")
    np.testing.assert_allclose(actual, jacobians, atol=1e-14)
    x = rng.normal(size=(2, 100, 2))
    few, every = (  # by directional derivatives, and by Jacobians
        diagnostics.lyapunov_spectrum(cell, x, exponents=count).exponents
        for count in (2, 5)
    )
    np.testing.assert_allclose(few, every[:2], rtol=1e-6)


@pytest.mark.one_backend
def test_its_matrices_are_those_that_it_names(cell):
    kernel, recurrent, bias = weights64(cell)
    (matrix,) = diagnostics.recurrent_matrices(cell).values()
    np.testing.assert_array_equal(matrix, recurrent)
    chain = diagnostics.hidden_chain(cell, steps=5, pulse=[1.0, 2.0])
    h = LEAK * np.tanh([1.0, 2.0] @ kernel + bias)
    np.testing.assert_allclose(chain.activity[0], h, rtol=1e-5)
