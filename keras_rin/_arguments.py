"""Validation of arguments."""

import math
import numbers
import operator
import sys
import warnings

import numpy as np


def warn(message, category=UserWarning):
    """Warns at the line of the user that called Keras or this package."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back and _package(frame) in ("keras", "keras_rin"):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


def _package(frame):
    return frame.f_globals.get("__name__", "").partition(".")[0]


def integer(name, value, at_least=1, at_most=math.inf):
    try:
        number = operator.index(value)
    except TypeError:
        number = at_least - 1
    if not at_least <= number <= at_most or isinstance(value, bool):
        most = f" and at most {at_most}" if at_most < math.inf else ""
        raise ValueError(
            f"`{name}` must be an integer of at least {at_least}{most}. "
            f"Received: {name}={value!r}"
        )
    return number


def finite_number(name, value, at_least=-math.inf, at_most=math.inf):
    is_number = isinstance(value, numbers.Real) and not isinstance(value, bool)
    in_range = is_number and at_least <= value <= at_most
    if not (in_range and math.isfinite(value)):
        raise ValueError(
            f"`{name}` must be a finite number in [{at_least}, {at_most}]. "
            f"Received: {name}={value!r}"
        )
    return float(value)


def auto_or_boolean(name, value):
    if not (value == "auto" or isinstance(value, bool)):
        raise ValueError(
            f'`{name}` must be "auto", True or False. '
            f"Received: {name}={value!r}"
        )
    return value


def generator(name, value, seed=None) -> np.random.Generator:
    """Returns `value`, or a new generator with `seed` if it is `None`."""
    if value is None and seed is not None:
        return np.random.default_rng(seed)
    if not isinstance(value, np.random.Generator):
        raise TypeError(
            f"`{name}` must be a numpy.random.Generator, such as "
            f"numpy.random.default_rng(0). Received: {name}={value!r}"
        )
    return value


def check_shape(name, received, expected):
    """Raises an error if one size of a tensor is not the expected one."""
    # While a model is being traced, a size can be None or a tensor.
    if len(received) != len(expected) or any(
        isinstance(size, int) and isinstance(number, int) and size != number
        for size, number in zip(received, expected, strict=True)
    ):
        raise ValueError(
            f"`{name}` must have the shape {expected}. "
            f"Received: {name} of shape {tuple(received)}"
        )


def real_array(name, value) -> np.ndarray:
    """The numbers in float64, NaN and inf among them."""
    try:
        array = np.asarray(value)
        if array.dtype.kind in "cSUmM" or np.ma.is_masked(value):
            raise TypeError(f"numbers are not of {array.dtype}, or masked")
        return array.astype("float64")
    except (TypeError, ValueError, OverflowError, RuntimeError) as error:
        raise ValueError(
            f"`{name}` must contain finite real numbers. "
            f"Received: {name} of {getattr(value, 'dtype', type(value))} "
            f"({error})"
        ) from error


def finite_array(name, value) -> np.ndarray:
    array = real_array(name, value)
    if not np.isfinite(array).all():
        raise ValueError(
            f"`{name}` must contain finite real numbers. "
            f"Received: {name} of {np.isfinite(array).sum()} finite numbers "
            f"among {array.size}"
        )
    return array


def square_matrix(name, value) -> np.ndarray:
    matrix = real_array(name, value)
    if matrix.ndim != 2 or len(set(matrix.shape)) > 1 or not matrix.size:
        raise ValueError(
            f"`{name}` must be a square matrix. "
            f"Received: {name} of shape {matrix.shape}"
        )
    return finite_array(name, matrix)


def vector(name, value, size) -> np.ndarray:
    """Returns a vector of `size` entries; e_1 if `value` is `None`."""
    array = np.eye(1, size)[0] if value is None else real_array(name, value)
    check_shape(name, array.shape, (size,))
    return finite_array(name, array)
