"""A described step in NumPy: the reference of what C is written from."""

from collections.abc import Callable

import keras
import numpy as np
from keras import ops

from keras_rin._cell_descriptions import biases_of
from keras_rin._cell_descriptions import columns_of

UPDATES: dict[str, Callable] = {
    "copy": lambda to, source: source,
    "add": lambda to, terms: to + terms,
    "subtract": lambda to, terms: to - terms,
    "multiply": lambda to, factors: to * factors,
    "interpolate": lambda to, gate, other: gate * to + (1 - gate) * other,
}


class NumpyStep:
    """A writer that computes the new states of inputs and of states.

    Gates and scratch lie side by side, as in C. `largest` is how large what an
    operation reads or writes becomes, `used` the names and attributes of
    activations.
    """

    def __init__(self, cell, row, x, states):
        self._cell, self._row, self._x = cell, row, x
        size = getattr(cell, row.gate_size, states[0].shape[1])
        names = [*row.gates, *row.scratch]
        self._z = np.full((len(x), size * len(names)), np.nan)
        self._starts = {name: n * size for n, name in enumerate(names)}
        self._size = size
        self._states = dict(zip(row.states, states, strict=True))
        self.largest: dict[str, float] = {}
        self.used: set[tuple[str, str]] = set()

    def states(self):
        return list(self._states.values())

    # The operations of `CellDescription`.

    def project(self, apart=None):
        bias, of_apart = biases_of(self._weight("bias"), self._row, apart)
        z = self._x @ self._weight("kernel") + (0 if bias is None else bias)
        self._part(self._row.gates[0], z.shape[1])[:] = z
        if apart:
            self._part(apart[1])[:] = 0 if of_apart is None else of_apart

    def add_product(
        self, source, weight="recurrent_kernel", gates=None, to=None
    ):
        self._note(source)
        h = self._part(source).copy()
        product = h @ columns_of(self._weight(weight), self._row, gates)
        to = to or (gates or self._row.gates)[0]
        self._part(to, product.shape[1])[:] += product
        if weight in self._row.offsets:
            for gate in self._row.gates:
                self._part(gate)[:] += h

    def set_bias(self, to, attribute):
        bias = self._weight(attribute)
        self._part(to)[:] = 0 if bias is None else bias

    def activate(self, to, attribute="activation"):
        activation = keras.activations.get(getattr(self._cell, attribute))
        z = ops.convert_to_tensor(self._part(to).astype("float32"))
        self._part(to)[:] = ops.convert_to_numpy(activation(z))
        self.used.add((to, attribute))
        self._note(to)

    def call(self, function, *names):
        *sources, to = map(self._part, names)
        to[:] = UPDATES[function](to, *sources)
        self._note(*names)

    def _note(self, *names):
        for name in names:
            largest = np.abs(self._part(name)).max()
            self.largest[name] = max(largest, self.largest.get(name, 0.0))

    def _part(self, name, size=None):
        if name in self._states:
            return self._states[name]
        start = self._starts[name]
        return self._z[:, start : start + (size or self._size)]

    def _weight(self, attribute):
        weight = getattr(self._cell, attribute, None)
        if weight is None:
            return None
        return ops.convert_to_numpy(weight).astype("float64")
