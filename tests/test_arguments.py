"""What the arguments of many functions have in common, told by a few."""

import numpy as np
import pytest

from keras_rin.diagnostics import fisher_memory_curve
from keras_rin.diagnostics import henrici_departure
from keras_rin.initializers import PartialIdentity
from keras_rin.layers import RINCell

pytestmark = pytest.mark.one_backend


def curve(input_vector):
    return fisher_memory_curve(np.eye(2) / 2, input_vector=input_vector)


@pytest.mark.parametrize("dtype", ["float16", "int8", "bool", object])
def test_numbers_of_any_type_are_taken(dtype):
    assert henrici_departure(np.eye(3).astype(dtype)) == 0
    assert PartialIdentity(np.float32(0.5)).fraction == 0.5
    assert RINCell(np.int32(1)).units == 1


def test_without_a_vector_it_is_the_first_unit():
    np.testing.assert_array_equal(curve(None), curve([1, 0]))


REFUSED = {
    ("units", RINCell): [0, -3, 1.0, "1", None, True, [1]],
    ("fraction", PartialIdentity): [
        *[-0.1, 1.1, float("nan"), float("inf"), "1", None, True, [1.0]]
    ],
    ("recurrent_matrix", henrici_departure): [
        *[3, [1, 2], [[1, 2]], [], [[np.inf]], [[1j]], np.ones((1, 1, 1))],
        [[1, 2], [3]],
        [["1", "2"], ["3", "4"]],
        [[None, 1], [1, 1]],
        [[10**400, 1], [1, 1]],
        np.array([["2026-01-01"]], "datetime64[D]"),
        np.ma.masked_equal([[1.0]], 1.0),
        {"a": 1},
    ],
    ("input_vector", curve): [1, [1], [[1, 2]], [1, np.nan], [1j, 2]],
}


@pytest.mark.parametrize("name, function", REFUSED)
def test_other_values_are_refused_by_name(name, function):
    for value in REFUSED[name, function]:
        message = f"`{name}` must .*Received: {name}[ =]"
        with pytest.raises(ValueError, match=message):
            function(value)
