"""Checks of arguments: name the argument, what was expected, what came."""

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


def generator(name, value):
    if not isinstance(value, np.random.Generator):
        raise TypeError(
            f"`{name}` must be a numpy.random.Generator, such as "
            f"numpy.random.default_rng(0). Received: {name}={value!r}"
        )
    return value
