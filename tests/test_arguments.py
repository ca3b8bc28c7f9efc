import numpy as np
import pytest

from keras_rin import _arguments

pytestmark = pytest.mark.one_backend


@pytest.mark.parametrize("value", [1, np.int32(1), np.uint8(1)])
def test_whole_numbers_become_integers(value):
    number = _arguments.integer("n", value)
    assert number == 1 and type(number) is int


@pytest.mark.parametrize("value", [0, -3, 1.0, "1", None, True, [1]])
def test_an_integer_is_one_or_it_is_named(value):
    with pytest.raises(ValueError, match="`n` must be an integer.*n="):
        _arguments.integer("n", value)


@pytest.mark.parametrize("value", [-1, 1.0, "1", None, False])
def test_an_integer_that_may_be_0_is_one_all_the_same(value):
    with pytest.raises(ValueError, match="`n` must be .* at least 0"):
        _arguments.integer("n", value, at_least=0)


@pytest.mark.parametrize("value", [0, 0.5, np.float32(1), np.int64(1)])
def test_numbers_within_the_bounds_become_floats(value):
    number = _arguments.finite_number("x", value, 0, 1)
    assert number == value and type(number) is float


@pytest.mark.parametrize(
    "value",
    [-0.1, 1.1, float("nan"), float("inf"), "1", None, True, [1.0], 10**400],
)
def test_a_number_outside_the_bounds_is_named(value):
    with pytest.raises(ValueError, match=r"`x` must .* \[0, 1\]. Received: x="):
        _arguments.finite_number("x", value, 0, 1)


def test_a_generator_is_handed_back():
    rng = np.random.default_rng(0)
    assert _arguments.generator("rng", rng) is rng


def test_a_square_matrix_becomes_float64():
    matrix = _arguments.square_matrix("w", [[1, 2], [3, 4]])
    assert matrix.dtype == "float64" and matrix.shape == (2, 2)


@pytest.mark.parametrize(
    "value", [3, [1, 2], [[1, 2]], [], [[np.inf]], [[1j]], np.ones((1, 1, 1))]
)
def test_a_square_matrix_is_one_or_it_is_named(value):
    with pytest.raises(ValueError, match="`w` must .*Received: w of"):
        _arguments.square_matrix("w", value)


@pytest.mark.parametrize(
    "value",
    [
        [[1, 2], [3]],
        [["1", "2"], ["3", "4"]],
        [[None, 1], [1, 1]],
        [[10**400, 1], [1, 1]],
        np.array([["2026-01-01"]], "datetime64[D]"),
        np.ma.masked_equal([[1.0]], 1.0),
        np.array([[np.longdouble("1e308") * 100]]),
        {"a": 1},
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_holds_no_real_numbers_is_named(value):
    with pytest.raises(ValueError, match="`w` must .*Received: w of"):
        _arguments.square_matrix("w", value)


@pytest.mark.parametrize("dtype", ["float16", "int8", "uint8", "bool", object])
def test_any_kind_of_real_numbers_becomes_float64(dtype):
    matrix = _arguments.square_matrix("w", np.eye(3).astype(dtype))
    assert matrix.dtype == "float64"
    np.testing.assert_array_equal(matrix, np.eye(3))


def test_without_a_vector_it_is_the_first_unit():
    np.testing.assert_array_equal(_arguments.vector("v", None, 3), [1, 0, 0])
    np.testing.assert_array_equal(_arguments.vector("v", [1, 2], 2), [1, 2])


@pytest.mark.parametrize("value", [1, [1], [[1, 2]], [1, np.nan], [1j, 2]])
def test_a_vector_fits_or_it_is_named(value):
    with pytest.raises(ValueError, match="`v` must .*Received: v of"):
        _arguments.vector("v", value, 2)
