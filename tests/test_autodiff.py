import numpy as np
import pytest
from keras import ops
from references import to_numpy

from keras_rin.diagnostics import _autodiff

CUBE = np.array([[1.0, 2.0], [3.0, -1.0]])


def test_derivatives_of_a_cube_are_known():
    point = ops.convert_to_tensor(CUBE, "float32")
    value, (slopes, unused) = _autodiff.value_and_gradients(
        lambda points: ops.sum(points[0] ** 3), [point, point + 1]
    )
    assert float(value) == np.sum(CUBE**3)
    np.testing.assert_array_equal(to_numpy(unused), np.zeros((2, 2)))
    np.testing.assert_allclose(to_numpy(slopes), 3 * CUBE**2, rtol=1e-6)
    direction = ops.convert_to_tensor(CUBE + 1, "float32")
    value, along = _autodiff.directional(lambda p: p**3, point, direction)
    np.testing.assert_allclose(to_numpy(value), CUBE**3, rtol=1e-6)
    expected = 3 * CUBE**2 * (CUBE + 1)
    np.testing.assert_allclose(to_numpy(along), expected, rtol=1e-6)


def test_jacobians_are_row_by_row():
    """f_i = sum_j p_j o_i^2 + p_i^3, for each row."""
    scales = np.array([[1.0, 0.5], [2.0, 0.0]])
    jacobians = _autodiff.jacobians(
        lambda p, o: ops.sum(p, axis=1, keepdims=True) * o**2 + p**3,
        ops.convert_to_tensor(CUBE, "float32"),
        ops.convert_to_tensor(scales, "float32"),
    )
    expected = (scales**2)[:, :, None] * np.ones((1, 1, 2))
    expected += 3 * (CUBE**2)[:, :, None] * np.eye(2)
    np.testing.assert_allclose(to_numpy(jacobians), expected, rtol=1e-6)


def test_a_function_that_is_constant_has_the_derivative_0():
    point = ops.convert_to_tensor(CUBE, "float32")
    _, along = _autodiff.directional(lambda p: ops.ones((2, 2)), point, point)
    np.testing.assert_array_equal(to_numpy(along), np.zeros((2, 2)))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_what_is_compiled_takes_any_number_of_rows(dtype):
    with _autodiff.float64_allowed():
        function = _autodiff.compiled(
            lambda a, b: [a + b, ops.sum(a, axis=1)],
            [(None, 2), (None, 2)],
            dtype,
        )
        for rows in (1, 3):
            total, sums = function(np.ones((rows, 2)), np.full((rows, 2), 1e-9))
            assert total.dtype == sums.dtype == dtype
            np.testing.assert_array_equal(sums, np.full(rows, 2))
            exact = 1 + np.full((rows, 2), 1e-9, dtype)
            np.testing.assert_array_equal(total, exact)


def test_matrices_are_multiplied_in_float64_if_it_is_asked_for():
    third = ops.convert_to_tensor(np.full((1, 1), 1 / 3), "float64")
    with _autodiff.float64_allowed():
        exact = to_numpy(ops.matmul(third, third))
    np.testing.assert_allclose(exact, 1 / 9, rtol=1e-15)
    with _autodiff.float64_allowed("float32"):
        mixed = ops.matmul(ops.cast(third, "float32"), third)
    np.testing.assert_allclose(to_numpy(mixed), 1 / 9, rtol=1e-6)
