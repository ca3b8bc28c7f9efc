"""Jacobians of cells whose units see each other through sums alone.

Of one sum for each gate, of what a unit sends, a function of its old output h:

z_g = f(h) U_g, d s'_i / d h_j = sum_g (d s'_i / d z_gi) U_g[j, i] f'(h_j)

`_cell_descriptions` has the steps. SimpleRNN, RIN, GRU and LSTM have this form
and send h, a RateRNN has it and sends its rate.
"""

from collections.abc import Callable

import keras
import numpy as np
from keras import ops

from keras_rin._cell_descriptions import description_of
from keras_rin.diagnostics import _autodiff
from keras_rin.diagnostics._recurrent_matrices import has_matrices
from keras_rin.diagnostics._recurrent_matrices import recurrent_matrices

# The closed form needs activations that act on each number by itself.
ELEMENTWISE = {"hard_sigmoid", "linear", "relu", "sigmoid", "tanh"}
# The sum over gates of so many Jacobians stays in the processor's cache.
ROWS = 8
CALLS: dict[str, Callable] = {
    "copy": lambda source, to: source,
    "add": lambda terms, to: to + terms,
    "subtract": lambda terms, to: to - terms,
    "multiply": lambda factors, to: factors * to,
    "interpolate": lambda gate, new, to: gate * to + (1 - gate) * new,
}


class _NoClosedForm(Exception):
    pass


class _UnitStep:
    """The step of each unit by itself, from its sums of x and of h."""

    def __init__(self, cell, row, x, z, states):
        self._cell, self._row = cell, row
        self._x = dict(zip(row.gates, ops.unstack(x), strict=True))
        self._z = dict(zip(row.gates, ops.unstack(z), strict=True))
        self._values = dict(zip(row.states, states, strict=True))
        self._h, self.sent = states[0], None
        self._values |= dict.fromkeys(row.scratch, ops.zeros_like(self._h))
        self._of_h = {row.states[0]}  # names of functions of h alone
        row.step(self, cell)
        self.states = [self._values[name] for name in row.states]

    def project(self, apart=None):
        self._values |= self._x
        if apart:  # the bias is a part of z
            self._values[apart[1]] = ops.zeros_like(self._h)

    def add_product(
        self, source, weight="recurrent_kernel", gates=None, to=None
    ):
        if source not in self._of_h or weight != "recurrent_kernel":
            raise _NoClosedForm
        if self.sent is not None and self.sent is not self._values[source]:
            raise _NoClosedForm
        self.sent = self._values[source]
        for gate in gates or self._row.gates:
            target = to or gate
            self._values[target] = self._values[target] + self._z[gate]

    def set_bias(self, to, attribute):
        bias = getattr(self._cell, attribute, None)
        bias = ops.cast(0.0 if bias is None else bias, self._h.dtype)
        self._values[to] = ops.zeros_like(self._h) + bias

    def activate(self, to, attribute="activation"):
        activation = getattr(self._cell, attribute)
        elementwise = [getattr(keras.activations, name) for name in ELEMENTWISE]
        exact = map(_autodiff.exact_activation, elementwise)
        if activation not in [*elementwise, *exact]:
            raise _NoClosedForm
        self._values[to] = activation(self._values[to])

    def call(self, function, *names):
        values = [self._values[name] for name in names]
        self._values[names[-1]] = CALLS[function](*values)
        self._of_h.discard(names[-1])
        if function == "copy" and names[0] in self._of_h:
            self._of_h.add(names[-1])


def gated_cell(cell, dtype):
    """The `GatedCell` of a cell, `None` if it has no closed form."""
    row = description_of(cell)
    if row is None:
        return None
    zeros = ops.zeros((len(row.gates) + len(row.states), 1))
    try:
        sums, states = ops.split(zeros, [len(row.gates)])
        _UnitStep(cell, row, sums, sums, ops.unstack(states))
    except _NoClosedForm:
        return None
    return GatedCell(cell, row, dtype)


class GatedCell:
    """A cell by its units, in the dtype that it computes in."""

    def __init__(self, cell, row, dtype):
        self._cell, self._row, self._dtype = cell, row, dtype
        matrices = recurrent_matrices(cell) if has_matrices(cell) else {}
        self._matrices = [m.T.astype(dtype) for m in matrices.values()]
        self.units = keras.tree.flatten(cell.state_size)[0]
        self.gates, self.states = len(row.gates), len(row.states)
        h = ops.zeros((1, 1))
        self._sends_state = self._sent(h) is h

    def _sent(self, h):
        """What the units send, f(h)."""
        sums = ops.stack([ops.zeros_like(h)] * self.gates)
        states = [h] + [ops.zeros_like(h)] * (self.states - 1)
        sent = _UnitStep(self._cell, self._row, sums, sums, states).sent
        return h if sent is None else sent

    def slopes(self, states, inputs):
        """d s'_ki / d p_i, `(rows, p, k, units)`.

        p are the sums of the gates, and after these the states. Last comes
        f'(h), unless f(h) = h.
        """
        h = states[:, : self.units]
        x, z = self._gate_sums(h, inputs)
        old = ops.stack(ops.split(states, self.states, axis=1))

        def new_states(p):
            z, old = p[: self.gates], p[self.gates :]
            old = ops.unstack(old)
            return ops.stack(_UnitStep(self._cell, self._row, x, z, old).states)

        p = ops.concatenate([z, old])
        slopes = []
        for row in np.eye(self.gates + self.states)[:, :, None, None]:
            direction = ops.ones_like(p) * ops.convert_to_tensor(row, p.dtype)
            slopes.append(_autodiff.directional(new_states, p, direction)[1])
        if not self._sends_state:
            ones = ops.ones_like(h)
            _, slope = _autodiff.directional(self._sent, h, ones)
            slopes.append(ops.stack([slope] * self.states))
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
                if not self._sends_state:
                    jacobians[part, k, :, 0] *= slopes[part, -1, k, None]
            for old in range(self.states):
                direct = slopes[:, self.gates + old, k]
                jacobians[:, k, units, old, units] += direct
        size = self.states * self.units
        return jacobians.reshape(rows, size, size)

    def _gate_sums(self, h, inputs):
        kernel = ops.cast(self._cell.kernel, self._dtype)
        x = ops.matmul(inputs, kernel)
        z = ops.zeros_like(x)
        if self._matrices:
            recurrent = ops.cast(self._cell.recurrent_kernel, self._dtype)
            z = ops.matmul(self._sent(h), recurrent)
        if "recurrent_kernel" in self._row.offsets:
            z = z + ops.tile(h, (1, self.gates))
        bias = getattr(self._cell, "bias", None)
        if bias is not None:
            # That of a GRU has a row for x and one for z.
            bias = ops.cast(bias, self._dtype)
            x = x + (bias[0] if bias.ndim == 2 else bias)
            z = z + bias[1] if bias.ndim == 2 else z
        return (
            ops.stack(ops.split(sums, self.gates, axis=1)) for sums in (x, z)
        )
