"""Validation of arguments."""

import math
import numbers
import operator

import numpy as np


def integer(name, value, at_least=1):
    try:
        number = operator.index(value)
    except TypeError:
        number = at_least - 1
    if number < at_least or isinstance(value, bool):
        raise ValueError(
            f"`{name}` must be an integer of at least {at_least}. "
            f"Received: {name}={value!r}"
        )
    return number


def finite_number(name, value, at_least=-math.inf, at_most=math.inf):
    is_number = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if not (
        is_number and math.isfinite(value) and at_least <= value <= at_most
    ):
        raise ValueError(
            f"`{name}` must be a finite number in [{at_least}, {at_most}]. "
            f"Received: {name}={value!r}"
        )
    return float(value)


def generator(name, value, seed=None):
    """Returns `value`, or a new generator with `seed` if it is `None`."""
    if value is None and seed is not None:
        return np.random.default_rng(seed)
    if not isinstance(value, np.random.Generator):
        raise TypeError(
            f"`{name}` must be a numpy.random.Generator, such as "
            f"numpy.random.default_rng(0). Received: {name}={value!r}"
        )
    return value


def features(layer, shape):
    """Returns the number of features, the last axis of an input shape."""
    if shape[-1] is None:
        raise ValueError(
            f"{layer} needs a defined number of features, the last axis of "
            f"its input. Received: shape={tuple(shape)}"
        )
    return shape[-1]


def square_matrix(name, value):
    matrix = np.asarray(value)
    units = len(matrix) if matrix.ndim else 0
    if not units or matrix.shape != (units, units):
        raise ValueError(
            f"`{name}` must be a square matrix. "
            f"Received: {name} of shape {matrix.shape}"
        )
    return _finite(name, matrix)


def vector(name, value, size):
    """Returns a vector of `size` entries; e_1 if `value` is `None`."""
    array = np.eye(1, size)[0] if value is None else np.asarray(value)
    if array.shape != (size,):
        raise ValueError(
            f"`{name}` must have the shape ({size},). "
            f"Received: {name} of shape {array.shape}"
        )
    return _finite(name, array)


def _finite(name, array):
    if np.iscomplexobj(array) or not np.isfinite(array).all():
        raise ValueError(
            f"`{name}` must contain finite real numbers. "
            f"Received: {name} of {array.dtype}, "
            f"{np.isfinite(array).sum()} of {array.size} finite"
        )
    return array.astype("float64")
