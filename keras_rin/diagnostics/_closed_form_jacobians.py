"""Jacobians of SimpleRNN, RIN, GRU and LSTM in closed form.

A unit sees the other units through linear sums alone, one for each gate:

z_g = h U_g, d s'_i / d h_j = sum_g (d s'_i / d z_gi) U_g[j, i]

Another cell is added to `UNIT_STEPS` with the step of one unit: a function of
x and z, which have one number for each gate, and of the states.
"""

import keras
import numpy as np
from keras import ops

from keras_rin.diagnostics import _autodiff
from keras_rin.diagnostics import _cells

# The closed form needs activations that act on each number by itself.
ELEMENTWISE = {"hard_sigmoid", "linear", "relu", "sigmoid", "tanh"}
# The sum over gates of so many Jacobians stays in the processor's cache.
ROWS = 8


def simple_rnn(cell, x, z, h):
    return [cell.activation(x[0] + z[0])]


def lstm(cell, x, z, h, c):
    i, f, new, o = ops.unstack(x + z)
    c = cell.recurrent_activation(f) * c
    c += cell.recurrent_activation(i) * cell.activation(new)
    return [cell.recurrent_activation(o) * cell.activation(c), c]


def gru(cell, x, z, h):
    update = cell.recurrent_activation(x[0] + z[0])
    reset = cell.recurrent_activation(x[1] + z[1])
    new = cell.activation(x[2] + reset * z[2])
    return [update * h + (1 - update) * new]


UNIT_STEPS = {
    keras.layers.SimpleRNNCell: simple_rnn,
    keras.layers.LSTMCell: lstm,
    keras.layers.GRUCell: gru,
}


def unit_step(cell):
    """The step of one unit by itself, `None` if it is not known."""
    step = UNIT_STEPS.get(type(cell))
    if keras.saving.get_registered_name(type(cell)) == "keras_rin>RINCell":
        step = simple_rnn
    if step is None or (step is gru and not cell.reset_after):
        return None
    elementwise = [getattr(keras.activations, name) for name in ELEMENTWISE]
    recurrent = getattr(cell, "recurrent_activation", cell.activation)
    return step if {cell.activation, recurrent} <= set(elementwise) else None


class GatedCell:
    """A cell by its units, in the dtype that it computes in."""

    def __init__(self, cell, unit, dtype):
        self._cell, self._unit, self._dtype = cell, unit, dtype
        kernel = _cells.float64(cell.recurrent_kernel)
        self.units, self.gates = len(kernel), kernel.shape[1] // len(kernel)
        # RIN stores the offset from the identity.
        self._offset = hasattr(cell, "effective_recurrent_kernel")
        kernel += self._offset * np.eye(*kernel.shape)
        self._matrices = np.split(kernel.T.astype(dtype), self.gates)
        self.states = len(keras.tree.flatten(cell.state_size))

    def slopes(self, states, inputs):
        """d s'_ki / d p_i, `(rows, p, k, units)`.

        p are the sums of the gates, and after these the states.
        """
        h = states[:, : self.units]
        x, z = self._gate_sums(h, inputs)
        old = ops.stack(ops.split(states, self.states, axis=1))

        def new_states(p):
            z, old = p[: self.gates], p[self.gates :]
            new = self._unit(self._cell, x, z, *ops.unstack(old))
            return ops.stack(new)

        p = ops.concatenate([z, old])
        slopes = []
        for row in np.eye(self.gates + self.states)[:, :, None, None]:
            direction = ops.ones_like(p) * ops.convert_to_tensor(row, p.dtype)
            slopes.append(_autodiff.directional(new_states, p, direction)[1])
        return ops.transpose(ops.stack(slopes), (2, 0, 1, 3))

    def jacobians(self, slopes):
        rows, units = len(slopes), np.arange(self.units)
        shape = (rows, self.states, self.units, self.states, self.units)
        jacobians = np.zeros(shape, self._dtype)
        for k in range(self.states):
            for start in range(0, rows, ROWS):
                part = slice(start, start + ROWS)
                jacobians[part, k, :, 0] = sum(
                    slopes[part, g, k, :, None] * matrix
                    for g, matrix in enumerate(self._matrices)
                )
            for old in range(self.states):
                direct = slopes[:, self.gates + old, k]
                jacobians[:, k, units, old, units] += direct
        size = self.states * self.units
        return jacobians.reshape(rows, size, size)

    def _gate_sums(self, h, inputs):
        kernels = self._cell.kernel, self._cell.recurrent_kernel
        kernel, recurrent = (
            ops.cast(weight, self._dtype) for weight in kernels
        )
        x, z = ops.matmul(inputs, kernel), ops.matmul(h, recurrent)
        z = z + h if self._offset else z
        if self._cell.bias is not None:
            # That of a GRU has a row for x and one for z.
            bias = ops.cast(self._cell.bias, self._dtype)
            x = x + (bias[0] if bias.ndim == 2 else bias)
            z = z + bias[1] if bias.ndim == 2 else z
        return (
            ops.stack(ops.split(sums, self.gates, axis=1)) for sums in (x, z)
        )
