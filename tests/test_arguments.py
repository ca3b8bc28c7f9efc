import numpy as np
import pytest

from keras_rin import _arguments

pytestmark = pytest.mark.one_backend


@pytest.mark.parametrize(
    "check, value, expected",
    [
        *[(_arguments.integer, one, 1) for one in (1, np.int32(1))],
        *[
            (_arguments.finite_number, half, 0.5)
            for half in (0.5, np.float32(0.5))
        ],
        *[
            (_arguments.square_matrix, np.eye(3).astype(dtype), np.eye(3))
            for dtype in ("float16", "int8", "bool", object)
        ],
    ],
)
def test_valid_values_get_one_type(check, value, expected):
    result = check("x", value)
    np.testing.assert_array_equal(result, expected)
    assert type(result) is type(expected)
    assert getattr(result, "dtype", "float64") == "float64"


def test_without_a_vector_it_is_the_first_unit():
    np.testing.assert_array_equal(_arguments.vector("v", None, 3), [1, 0, 0])
    np.testing.assert_array_equal(_arguments.vector("v", [1, 2], 2), [1, 2])


def fraction(name, value):
    return _arguments.finite_number(name, value, 0, 1)


def pair(name, value):
    return _arguments.vector(name, value, 2)


REFUSED = {
    _arguments.integer: [0, -3, 1.0, "1", None, True, [1]],
    fraction: [-0.1, 1.1, float("nan"), float("inf"), "1", None, True, [1.0]],
    _arguments.square_matrix: [
        *[3, [1, 2], [[1, 2]], [], [[np.inf]], [[1j]], np.ones((1, 1, 1))],
        [[1, 2], [3]],
        [["1", "2"], ["3", "4"]],
        [[None, 1], [1, 1]],
        [[10**400, 1], [1, 1]],
        np.array([["2026-01-01"]], "datetime64[D]"),
        np.ma.masked_equal([[1.0]], 1.0),
        {"a": 1},
    ],
    pair: [1, [1], [[1, 2]], [1, np.nan], [1j, 2]],
}


@pytest.mark.parametrize("check", REFUSED)
def test_other_values_are_refused_by_name(check):
    for value in REFUSED[check]:
        with pytest.raises(ValueError, match="`x` must .*Received: x[ =]"):
            check("x", value)


def test_a_generator_is_one_or_has_a_seed():
    rng = np.random.default_rng(0)
    assert _arguments.generator("rng", rng) is rng
    assert _arguments.generator("rng", None, seed=0).random() == rng.random()
    with pytest.raises(TypeError, match="`rng` must be a numpy.random.Gen"):
        _arguments.generator("rng", 0)
