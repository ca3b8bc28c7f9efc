"""Long tables of cases: a few of them say the law, the rest are exhaustive."""

import itertools

import keras
import pytest
from packaging.version import parse


def needs_keras(oldest, reason):
    """A mark: older versions of Keras cannot do what is tested."""
    return pytest.mark.skipif(keras_before(oldest), reason=reason)


def keras_before(oldest):
    return parse(keras.__version__) < parse(oldest)


def diagonal(*axes):
    """As many cases as the longest axis has values, each value in one."""
    axes = [list(axis) for axis in axes]
    return [
        tuple(axis[n % len(axis)] for axis in axes)
        for n in range(max(map(len, axes)))
    ]


def table(*axes):
    """Cases in which any two values of two axes meet.

    Those off the diagonal are marked as exhaustive.
    """
    cases = diagonal(*axes)
    first, met = len(cases), set().union(*map(_pairs, cases))
    left = {case: _pairs(case) for case in itertools.product(*axes)}
    while set().union(*left.values()) - met:
        case = max(left, key=lambda case: len(left[case] - met))
        cases.append(case)
        met |= left[case]
    return first_of(cases, first)


def _pairs(case):
    return set(itertools.combinations(enumerate(case), 2))


def first_of(cases, first=1, mark=pytest.mark.exhaustive):
    """A list of cases, those after the first ones marked."""
    return [
        pytest.param(*case, marks=mark if n >= first else ())
        for n, case in enumerate(cases)
    ]


def one_backend_after(values, first=1):
    """Cases of a value each, those after the first ones for one backend."""
    cases = [(value,) for value in values]
    return first_of(cases, first, pytest.mark.one_backend)
