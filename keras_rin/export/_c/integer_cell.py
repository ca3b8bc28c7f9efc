"""The step of a described cell in integers, written from its row.

Gates, scratch and states that change are sums of 32 bits, in units of 16 bits
of their range, or finer by up to 8 bits. Ranges are those of the same row in
NumPy along the calibration.
"""

import copy

import keras
import numpy as np

from keras_rin._cell_descriptions import biases_of
from keras_rin._cell_descriptions import columns_of
from keras_rin.cells._numpy_step import NumpyStep
from keras_rin.diagnostics import state_trajectories
from keras_rin.export._c import layers
from keras_rin.export._c.integer_sums import GATES
from keras_rin.export._c.integer_sums import Q15
from keras_rin.export._c.integer_sums import Signal
from keras_rin.export._c.integer_sums import Sums
from keras_rin.export._c.integer_sums import activation_name
from keras_rin.export._c.integer_sums import check_bound
from keras_rin.export._c.integer_sums import exponent_for

FINEST = 8  # bits of a sum below the unit of 16 bits


def _activation(operation, attribute):
    activation = layers.activation_of(operation.cell, attribute, operation.name)
    return activation_name(activation, operation)


class IntegerStep(NumpyStep):
    """A writer of C that also computes the values along the calibration.

    A code of 1 stands for 2**codes[state] in a state and for
    2**exponents[name] in sums, which a state has while it changes. `dry` is
    the step in NumPy.
    """

    def __init__(self, program, operation, signal, states, codes, dry, bits):
        x, states = signal.values.reshape(-1, signal.size), map(np.copy, states)
        super().__init__(operation.cell, operation.row, x, [*states])
        self.program, self.operation, self.signal = program, operation, signal
        self.codes, self.bits, self.ranges = codes, bits, dry.largest
        self.activated = {
            name
            for name, attribute in dry.used
            if _activation(operation, attribute) in GATES
        }
        self.exponents: dict[str, int] = {}
        self.bounds: dict[str, float] = {}
        self.places = dict(self._starts)
        self.fields, end = {}, self._z.shape[1]
        for name, exponent in codes.items():
            size, field = self._count(name), f"{operation.name}_{name}"
            self.fields[name] = program.state_of(
                field, size, exponent, exponent == Q15
            )
            self.places[name] = end
            end += size
        program.sums(self._z.shape[1])

    def _weight(self, attribute):
        has_weight = getattr(self._cell, attribute, None) is not None
        return layers.weight_of(self._cell, attribute) if has_weight else None

    def _count(self, name):
        return self._part(name).shape[1]

    def _place(self, name):
        first = self.places[name]
        z = self.program.sums(first + self._count(name))
        return f"{z} + {first}" if first else z

    def _write(self, function, to, *arguments):
        place, count = self._place(to), self._count(to)
        self.program.call(function, *arguments, place, count)

    def _set_bound(self, name, bound):
        check_bound(self.operation, bound)
        self.bounds[name] = bound

    def _unit(self, name, largest=None):
        """The exponent of 16 bits of what it holds, or of a largest value."""
        if name in self.codes:
            return self.codes[name]
        if self.exponents.get(name) == Q15 and name in self.activated:
            return Q15
        if largest is None:
            largest = np.abs(self._part(name)).max()
        return exponent_for(self.operation, largest or 1.0)

    def _begin(self, name):
        """Sums of new values."""
        self.exponents.pop(name, None)
        unit = self._unit(name, self.ranges.get(name, 0.0)) - self.bits
        self.exponents[name] = Q15 if name in self.activated else unit
        self.bounds[name] = 0.0

    def _load(self, *names):
        """Sums of states that have none."""
        for name in names:
            if name in self.codes and name not in self.exponents:
                self.exponents[name] = self.codes[name] - self.bits
                self.bounds[name] = 0.0
                self._use_state("scale_state", name, name)

    def _use_state(self, function, state, to, sign=1):
        shift = self.codes[state] - self.exponents[to]
        self._write(function, to, self.fields[state], sign * 2**shift)
        self._set_bound(to, self.bounds[to] + 2.0 ** (15 + shift))

    def _rescale(self, name, exponent):
        if shift := _shift(self.exponents[name], exponent):
            self._write("copy_sums", name, self._place(name), shift)
            self.exponents[name] = exponent
            self._set_bound(name, self.bounds[name] * 2.0**shift)

    def _drop(self, name, exponent, to):
        """Writes sums as codes of 16 bits."""
        finest = max(self.exponents[name], exponent - FINEST)
        self._rescale(name, min(finest, exponent))
        bits = exponent - self.exponents[name]
        target = self._place(name), to, self._count(name)
        if not bits:
            return self.program.call("saturate", *target)
        phase = f"{self.program.phase(FINEST)} >> {FINEST - bits}"
        self.program.call("drop_fraction", target[0], phase, bits, *target[1:])

    def store(self, name, source=None):
        """The state of its sums or others."""
        if source or name in self.exponents:
            self._drop(source or name, self.codes[name], self.fields[name])
            self.exponents.pop(name, None)

    def _as_signal(self, name):
        if name in self.codes:
            self.store(name)
            place, exponent = self.fields[name], self.codes[name]
        else:
            exponent = max(self._unit(name), self.exponents[name])
            count = self._count(name)
            place = self.program.buffer(count, self.signal.place)
            self._drop(name, exponent, place)
        return Signal(place, self._part(name), exponent)

    def _add_to(self, names, function, *arguments):
        """Calls a function of `Sums` of the names."""
        rows = [[self.exponents[n]] * self._count(n) for n in names]
        exponents, place = np.concatenate(rows), self._place(names[0])
        sums = Sums(self.program, self.operation, place, exponents)
        sums.bound = max(self.bounds[name] for name in names)
        function(sums, *arguments)
        self.bounds |= dict.fromkeys(names, sums.bound)

    def _set(self, to, role, values):
        self._begin(to)
        values = np.broadcast_to(0.0 if values is None else values, self._size)
        self._add_to([to], Sums.set, role, values)

    # The operations of `CellDescription`.

    def project(self, apart=None):
        super().project(apart)
        bias, of_apart = biases_of(self._weight("bias"), self._row, apart)
        self.operation.kernel = self._weight("kernel").T
        self.operation.bias = bias
        for gate in self._row.gates:
            self._begin(gate)
        self._add_to(self._row.gates, Sums.project, self.signal)
        if apart:
            self._set(apart[1], "recurrent_bias", of_apart)

    def set_bias(self, to, attribute):
        super().set_bias(to, attribute)
        self._set(to, attribute, self._weight(attribute))

    def add_product(
        self, source, weight="recurrent_kernel", gates=None, to=None
    ):
        signal = self._as_signal(source)
        super().add_product(source, weight, gates, to)
        names = [to] if to else gates or self._row.gates
        self._load(*names)
        role = "_".join([weight, *(gates or ())])
        matrix = columns_of(self._weight(weight), self._row, gates).T
        self._add_to(names, Sums.add_product, role, matrix, signal)
        if weight in self._row.offsets:
            for gate in self._row.gates:
                self._add(source, gate)

    def activate(self, to, attribute="activation"):
        super().activate(to, attribute)
        self._load(to)
        name = _activation(self.operation, attribute)
        if name in GATES:
            self._rescale(to, Q15)
            self.bounds[to] = 2.0**15
        if name != "linear":
            self._write(name, to)

    def call(self, function, *names):
        source, to = names[0], names[-1]
        if function == "multiply":
            return self._multiply(*names)
        super().call(function, *names)
        if function == "interpolate":
            self._load(*names)
            self._interpolate(*names)
        elif function != "copy":
            self._load(to)
            self._add(source, to, function)
        elif to not in self.codes or to in self.activated:
            self._begin(to)
            self._add(source, to, function)
        else:
            self._load(source)
            self.store(to, source)

    def _add(self, source, to, function="add"):
        is_state = source not in self.exponents
        if is_state and self.codes[source] >= self.exponents[to]:
            sign = -1 if function == "subtract" else 1
            name = "scale_state" if function == "copy" else "add_state"
            return self._use_state(name, source, to, sign)
        self._load(source)
        shift = _shift(self.exponents[source], self.exponents[to])
        self._write(f"{function}_sums", to, self._place(source), shift)
        bound = self.bounds[source] * 2.0**shift
        self._set_bound(to, self.bounds[to] + bound)

    def _multiply(self, source, to):
        self._load(source, to)
        exponents = self.exponents[source], self.exponents[to]
        factor = max(exponents[0], self._unit(source))
        value = max(exponents[1], self._unit(to) - 8)
        product = factor + value + 8
        super().call("multiply", source, to)
        self.exponents.pop(to)  # before its unit is that of the product
        after = max(product + 1, self._unit(to) - self.bits)
        pairs = (exponents[0], factor), (exponents[1], value), (product, after)
        shifts = [_shift(*pair) for pair in pairs]
        self._write("multiply_sums", to, self._place(source), *shifts)
        self.exponents[to] = after
        self.bounds[to] = 2.0 ** (30 + product - after)

    def _interpolate(self, gate, candidate, to):
        gate_shift = _shift(self.exponents[gate], Q15)
        check_bound(self.operation, self.bounds[gate] * 2.0**gate_shift)
        shift = _shift(self.exponents[candidate], self.exponents[to])
        sizes = self.bounds[candidate] * 2.0**shift, self.bounds[to]
        check_bound(self.operation, sum(sizes))
        of_gate = self._place(gate), gate_shift
        of_candidate = self._place(candidate), shift
        self._write("interpolate_sums", to, *of_gate, *of_candidate)
        self.bounds[to] = max(sizes)


def _shift(exponent, to):
    """By how many bits codes become those of another exponent."""
    return int(np.clip(exponent - to, -32, 30))


def described_cell(program, operation, signal, is_last):
    """Writes a step with as many bits below the units as the sums can have."""
    cell, row, size = operation.cell, operation.row, signal.size
    values = state_trajectories(cell, signal.values, dtype="float64")
    ends = np.cumsum(keras.tree.flatten(cell.state_size))

    def computed(x, states):
        states = np.split(states.reshape(-1, ends[-1]), ends[:-1], axis=1)
        step = NumpyStep(
            cell, row, x.reshape(-1, size), [*map(np.copy, states)]
        )
        row.step(step, cell)
        return states, step

    before, dry = computed(signal.values, values[:, :-1])
    # A state that inputs of any size leave within 1 needs no larger range.
    signs = np.random.default_rng(0).choice([-1.0, 1.0], (64, size + ends[-1]))
    _, bounded = computed(1e6 * signs[:, :size], signs[:, size:])
    codes = {}
    for name, *parts in zip(
        row.states, dry.states(), bounded.states(), strict=True
    ):
        codes[name] = exponent_for(operation, parts[0])
        if max(np.abs(part).max() for part in parts) <= 1:
            codes[name] = Q15
    unwritten = copy.deepcopy(vars(program))
    for bits in range(FINEST, -1, -1):
        try:
            step = IntegerStep(
                program, operation, signal, before, codes, dry, bits
            )
            row.step(step, cell)
            for name in row.states:
                step.store(name)
            break
        except ValueError:
            if not bits:
                raise
            vars(program).update(copy.deepcopy(unwritten))
    h, numbers = row.states[0], values[:, 1:, : ends[0]]
    if is_last:
        program.call("copy", step.fields[h], "y", ends[0])
    return Signal(step.fields[h], numbers, codes[h])
