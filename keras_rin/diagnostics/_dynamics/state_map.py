"""A recurrent cell as a map of one state vector, s_t = F(s_{t-1}, x_t).

s holds all that the cell hands on: h, and for an LSTM h and c side by side.
"""

import contextlib

import keras
import numpy as np
from keras import ops

from keras_rin._layer_walk.layers import layers_within
from keras_rin._layer_walk.undisturbed import undisturbed
from keras_rin._recurrence.backends import scan
from keras_rin.diagnostics._dynamics import autodiff

# The size of a temporary array; a call has a few of them.
VALUES = 2**22


def sizes(cell):
    return keras.tree.flatten(cell.state_size)


def flat_step(cell):
    """F, of tensors `(rows, state)` and `(rows, features)`."""
    ends = np.cumsum(sizes(cell)).tolist()

    def step(states, inputs):
        bounds = zip([0, *ends], ends, strict=False)
        parts = [states[:, start:end] for start, end in bounds]
        _, new = cell(inputs, parts, training=False)
        return ops.concatenate(keras.tree.flatten(new), axis=-1)

    return step


def flat_initial_state(cell, rows):
    """The initial state of `keras.layers.RNN`: zeros, or that of the cell."""
    get_initial_state = getattr(cell, "get_initial_state", None)
    if get_initial_state is None:
        return ops.zeros((rows, sum(sizes(cell))), cell.compute_dtype)
    parts = keras.tree.flatten(get_initial_state(batch_size=rows))
    return ops.concatenate(parts, axis=-1)


@contextlib.contextmanager
def state_map(cell, dtype):
    """The `StateMap` of a cell, which computes in `dtype` for a while.

    Weights are cast as they are read, and everything is afterwards as before.
    """
    previous = [
        (layer, name, getattr(layer, name))
        for layer in layers_within(cell)
        for name in ("dtype_policy", "activation", "recurrent_activation")
        if hasattr(layer, name)
    ]
    with undisturbed(cell), autodiff.float64_allowed(dtype):
        try:
            for layer, name, value in previous:
                setattr(layer, name, _in_dtype(value, dtype))
            yield StateMap(cell, dtype)
        finally:
            for layer, name, value in previous:
                setattr(layer, name, value)


def _in_dtype(value, dtype):
    if isinstance(value, keras.DTypePolicy):
        return _ComputeDtypePolicy(dtype, value.variable_dtype)
    return autodiff.exact_activation(value)


class _ComputeDtypePolicy(keras.DTypePolicy):
    def __init__(self, compute_dtype, variable_dtype):
        super().__init__(variable_dtype)
        self._computes_in = compute_dtype

    @property
    def compute_dtype(self):
        return self._computes_in


class StateMap:
    """F and its derivative, of arrays of any number of rows."""

    def __init__(self, cell, dtype):
        self.name, self.dtype, self.size = cell.name, dtype, sum(sizes(cell))
        self.cell, self._step = cell, flat_step(cell)
        self._compiled = {}

    def next(self, states, inputs):
        """F(s, x), `(rows, state)`."""
        return self._run(self._next, 1, states, inputs)[0]

    def directional(self, states, inputs, directions):
        """J d of k directions d, the columns of an array `(rows, state, k)`."""
        arrays = states, inputs, directions
        return self._run(self._directional, directions.shape[2], *arrays)[0]

    def jacobians(self, states, inputs):
        """J_ij = d F_i / d s_j, `(rows, state, state)`."""
        return self._run(self._jacobians, self.size, states, inputs)[0]

    def trajectory(self, initial_states, x, unmasked):
        """The states s_0 to s_T along x, `(batch, T + 1, state)`.

        Time steps that are not used leave the state as it is.
        """
        trajectory = self.unchecked_trajectory(initial_states, x, unmasked)
        finite = np.isfinite(trajectory).all(axis=(0, 2))
        if not finite.all():
            raise ValueError(
                f"The states of {self.name} along `x` must stay finite in "
                f"{self.dtype}. Received: states that are not from step "
                f"{finite.argmin()} on"
            )
        return trajectory

    def unchecked_trajectory(self, initial_states, x, unmasked):
        arrays = initial_states, x, unmasked[..., None]
        (states,) = self._run(self._trajectory, x.shape[1], *arrays)
        initial_states = initial_states[:, None].astype(self.dtype)
        return np.concatenate([initial_states, states], axis=1)

    def gradient_norms(self, initial_states, x, unmasked, v):
        """|d(v . s_T) / d s_t| over all v `(batch, directions, state)`.

        Of shape `(batch, T + 1)`. Nothing else is stored for all time steps.
        """
        states = self.unchecked_trajectory(initial_states, x, unmasked)
        arrays = states[:, :-1], x, unmasked[..., None], v
        return self._run(self._gradient_norms, x.shape[1], *arrays)[0]

    def _next(self, states, inputs):
        return [self._step(states, inputs)]

    def _trajectory(self, states, x, unmasked):
        def masked_step(states, inputs):
            x_t, unmasked_t = inputs
            states = ops.where(unmasked_t > 0, self._step(states, x_t), states)
            return states, states

        sequence = ops.swapaxes(x, 0, 1), ops.swapaxes(unmasked, 0, 1)
        _, states = ops.scan(masked_step, states, sequence)
        return [ops.swapaxes(states, 0, 1)]

    def _gradient_norms(self, states, x, unmasked, v):
        count, time = v.shape[1], x.shape[1]
        sequences = [ops.swapaxes(part, 0, 1) for part in (states, x, unmasked)]

        def step_back(g, t):
            previous, x_t, unmasked_t = (
                ops.repeat(part[t], count, axis=0) for part in sequences
            )
            _, (d_previous,) = autodiff.value_and_gradients(
                lambda points: ops.sum(self._step(points[0], x_t) * g),
                [previous],
            )
            g = ops.where(unmasked_t > 0, d_previous, g)
            return g, norm(g)

        def norm(g):
            return _norm(ops.reshape(g, (-1, count * self.size)))

        g = ops.reshape(v, (-1, self.size))
        last = norm(g)
        _, norms = scan(step_back, g, time, reverse=True)
        norms = ops.concatenate([norms, last[None]])
        return [ops.swapaxes(norms, 0, 1)]

    def _jacobians(self, states, inputs):
        return [autodiff.jacobians(self._step, states, inputs)]

    def _directional(self, states, inputs, directions):
        count = directions.shape[2]
        inputs = ops.repeat(inputs, count, axis=0)
        _, derivatives = autodiff.directional(
            lambda s: self._step(s, inputs),
            ops.repeat(states, count, axis=0),
            ops.reshape(ops.swapaxes(directions, 1, 2), (-1, self.size)),
        )
        derivatives = ops.reshape(derivatives, (-1, count, self.size))
        return [ops.swapaxes(derivatives, 1, 2)]

    def _run(self, method, count, *arrays):
        """Runs a method in chunks, and returns its outputs as arrays.

        The chunks are of few sizes, powers of 2: each is compiled on JAX.
        """
        shapes = [(None, *array.shape[1:]) for array in arrays]
        key = method.__name__, *shapes
        if key not in self._compiled:
            self._compiled[key] = autodiff.compiled(method, shapes, self.dtype)
        total, chunk = len(arrays[0]), max(1, VALUES // (count * self.size))
        results = []
        for start in range(0, total, chunk):
            rows = min(chunk, total - start)
            padded = np.arange(min(chunk, 1 << (rows - 1).bit_length()))
            indices = start + np.minimum(padded, rows - 1)
            outputs = self._compiled[key](*(array[indices] for array in arrays))
            if not start:
                shapes = [(total, *output.shape[1:]) for output in outputs]
                results = [np.empty(shape, self.dtype) for shape in shapes]
            for result, output in zip(results, outputs, strict=True):
                result[start : start + rows] = output[:rows]
        return results


def _norm(rows):
    """The norm of each row, whose squares may be out of range."""
    scale = ops.max(ops.abs(rows), axis=1)
    is_normal = ops.logical_and(scale > 0, ops.isfinite(scale))
    scale = ops.where(is_normal, scale, ops.ones_like(scale))
    return scale * ops.sqrt(ops.sum((rows / scale[:, None]) ** 2, axis=1))
