"""Codes of 16 bits, and sums of 32 of which a bound is computed."""

import dataclasses
import math

import numpy as np

from keras_rin.export._step.stepwise import refuse as _refuse

LARGEST_CODE = 127
# So many products of a code and 16 bits are below 2^30.
WIDEST = 2**15 // LARGEST_CODE
Q15 = -15  # the exponent of gates and of tanh, whose values are within 1
LARGEST_SUM = 2**30
GATES = ("tanh", "sigmoid", "softsign")


def refuse(layer, reasons):
    """Raises the first reason that holds, with the class of a cell."""
    cell = f"of {type(layer.cell).__name__} " if hasattr(layer, "row") else ""
    _refuse(layer, reasons, f"{cell}has no form in integers")


def activation_name(activation, operation):
    """That of an activation of an operation, or of a layer of its own."""
    (name, *parameters), *others = activation.calls or (("linear",),)
    has_parameters = bool(parameters or others)
    layer = activation if hasattr(activation, "name") else operation
    is_unknown = name not in ("linear", "relu", *GATES)
    refuse(
        layer,
        {
            "its activation has a limit, a slope or a threshold, which is not "
            "supported": has_parameters,
            f"its activation {name!r} is not supported": is_unknown,
        },
    )
    return name


@dataclasses.dataclass
class Signal:
    """Codes at a place in C, and what they stand for in the calibration.

    A code of 1 stands for 2**exponent in `numbers` (sequences, steps, size),
    of which the next layer reads `factor * numbers + offset`.
    """

    place: str
    numbers: np.ndarray
    exponent: int = 0
    factor: float | np.ndarray = 1.0
    offset: float | np.ndarray = 0.0

    @property
    def values(self):
        return self.factor * self.numbers + self.offset

    @property
    def size(self):
        return self.numbers.shape[-1]


class Sums:
    """Sums z in C, where 1 stands for 2**exponent, and how large they become.

    The exponent is that of all rows, or an array of each. The bound holds for
    any codes of 16 bits, not only for the calibration.
    """

    def __init__(self, program, operation, z, exponent, limit=LARGEST_SUM):
        self.program, self.operation, self.z = program, operation, z
        self.exponent, self.limit, self.bound = exponent, limit, 2.0**15

    def project(self, signal):
        """z = x W + b, without an error of W at the mean of x."""
        kernel = self.operation.kernel * signal.factor
        offset = np.broadcast_to(signal.offset, signal.size)
        bias = self.operation.kernel @ offset
        if self.operation.bias is not None:
            bias += self.operation.bias
        error = np.zeros_like(kernel)
        for columns in parts_of(kernel):
            codes, exponents = self._rounded(kernel, columns, signal)
            exponents = exponents + self.exponent - signal.exponent
            scale = np.ldexp(1.0, exponents)[:, None]
            error[:, columns] = kernel[:, columns] - scale * codes
        bias += error @ signal.numbers.mean(axis=(0, 1))
        self.set("bias", bias, column=np.abs(kernel).max(axis=0).argmax())
        self.add_product("kernel", kernel, signal)

    def set(self, role, values, column=None):
        codes = np.round(np.ldexp(values, -self.exponent))
        self._check(np.abs(codes).max(), column)
        constant = self.program.integers(32, self._name(role), codes)
        self.program.call("set", constant, self.z, len(codes))

    def add_product(self, role, matrix, signal):
        for columns in parts_of(matrix):
            codes, exponents = self._rounded(matrix, columns, signal)
            sizes = np.ldexp(np.abs(codes) * 2.0**15, exponents[:, None])
            largest = sizes.max(axis=0).argmax() + columns.start
            self._check(sizes.sum(axis=1).max() + 1, largest)
            name, (rows, count) = self._name(role), codes.shape
            first = f" + {columns.start}" if columns.start else ""
            self.program.call(
                "add_product",
                self.program.integers(8, name, codes),
                self.program.integers(8, f"{name}_shifts", -exponents - 1),
                f"{signal.place}{first}",
                count,
                self.z,
                rows,
            )

    def _rounded(self, matrix, columns, signal):
        exponent = signal.exponent - np.reshape(self.exponent, (-1, 1))
        return rounded_rows(np.ldexp(matrix[:, columns], exponent))

    def _name(self, role):
        return f"{self.operation.name}_{role}"

    def _check(self, bound, column=None):
        self.bound += bound
        source = ""
        if column is not None:
            source = f", most of it from column {column}, counted from 0"
        check_bound(self.operation, self.bound, self.limit, source)


def check_bound(operation, bound, limit=LARGEST_SUM, source=""):
    refuse(
        operation,
        {
            "its weights are so large, or the range of what it reads is so "
            f"small, that a sum may reach {bound:.3g} of the integers "
            f"below {limit:.3g}{source}": bound >= limit
        },
    )


def parts_of(matrix):
    """Columns whose products with 16 bits have a sum of 31 bits."""
    count = matrix.shape[1]
    return [
        slice(first, min(first + WIDEST, count))
        for first in range(0, count, WIDEST)
    ]


def rounded_rows(matrix):
    """Codes of 8 bits and exponents: a row is its codes times 2**exponent."""
    largest = np.abs(matrix).max(axis=1) / LARGEST_CODE
    exponents = np.ceil(np.log2(np.maximum(largest, 2.0**-31))).astype(int)
    codes = np.round(np.ldexp(matrix, -exponents[:, None])).astype(int)
    return codes, exponents


def exponent_for(operation, values):
    """That of 16 bits whose range is at least twice that of the values."""
    largest = np.abs(values).max()
    along = "along the calibration its values are"
    is_finite = np.isfinite(largest)
    refuse(operation, {f"{along} not finite": not is_finite})
    refuse(operation, {f"{along} always 0": largest == 0})
    return math.ceil(math.log2(2 * largest)) + Q15
