import numpy as np
import pytest
from references import orthogonal

from keras_rin.diagnostics import _spectrum

pytestmark = pytest.mark.one_backend


@pytest.mark.parametrize("units", [2, 50, 300])
@pytest.mark.parametrize("sign", [1, -1])
def test_a_chain_with_feedback_has_its_closed_form(units, sign):
    """LAPACK by itself finds 0.45 for the 0.398 of 300 units."""
    matrix = 0.99 * np.eye(units, k=1) + sign * 0.04 * np.eye(units, k=-1)
    radii = _spectrum.radii(matrix)
    expected = 2 * np.sqrt(0.99 * 0.04) * np.cos(np.pi / (units + 1))
    np.testing.assert_allclose(radii, expected, rtol=1e-12)


def test_units_in_any_order_make_the_same_blocks(rng):
    order = rng.permutation(40)
    chain = 0.9 * np.eye(40) + 3 * np.eye(40, k=1)
    chain = chain[np.ix_(order, order)]
    np.testing.assert_array_equal(_spectrum.eigenvalues(chain), 0.9 + 0j)
    # Two blocks of three, the second in one direction behind the first.
    matrix = np.zeros((6, 6))
    matrix[:3, :3], matrix[3:, 3:] = rng.normal(size=(2, 3, 3))
    matrix[0, 5] = 1e9
    order = rng.permutation(6)
    blocks = _spectrum.blocks(matrix[np.ix_(order, order)])
    assert {frozenset(order[units]) for units in blocks} == {
        frozenset({0, 1, 2}),
        frozenset({3, 4, 5}),
    }


def test_eigenvalues_are_those_of_numpy_where_these_are_good(rng):
    matrix = rng.normal(size=(30, 30))
    expected = np.sort_complex(np.linalg.eigvals(matrix))
    for eigenvalues in _spectrum.eigenvalues(matrix):
        actual = np.sort_complex(eigenvalues)
        np.testing.assert_allclose(actual, expected, rtol=1e-9)


@pytest.mark.parametrize("weights", [(1e200, 1e-200), (1e250, 1e-100, 1e-150)])
def test_weights_of_any_size_can_be_balanced(weights):
    cycle = np.roll(np.eye(len(weights)), 1, axis=1) * np.array(weights)
    np.testing.assert_allclose(np.abs(_spectrum.eigenvalues(cycle)), 1)


@pytest.mark.parametrize("size", [0, 1e-320, 1e-300, 1.5, 1e308])
def test_scaling_is_exact(size):
    array, exponent = _spectrum.scaled(np.array([[size, -size / 2]]))
    assert np.abs(array).max() in (0, np.frexp(size)[0])
    np.testing.assert_array_equal(
        np.ldexp(array, exponent), [[size, -size / 2]]
    )


def test_a_change_of_a_millionth_is_doubtful():
    assert _spectrum.doubtful(1.0, 1 + 2e-6)
    assert not _spectrum.doubtful(1.0, 1 + 5e-7)
    assert not _spectrum.doubtful(0.0, 1e-13, at_least=1e-12)


@pytest.mark.parametrize("units", [3, 30])
def test_a_well_conditioned_eigenvalue_is_neutral_within_the_tolerance(
    rng, units
):
    basis = rng.normal(size=(units, units))
    moduli = 1 + np.array([2e-6, -2e-6, 5e-7] + [-0.5] * (units - 3))
    matrix = basis @ np.diag(moduli) @ np.linalg.inv(basis)
    values, neutral = _spectrum.neutral(matrix, 1e-6, _spectrum.ROUNDING)
    np.testing.assert_allclose(
        np.sort(np.abs(values)), np.sort(moduli), rtol=1e-9
    )
    assert np.abs(values[neutral] - 1) == pytest.approx([5e-7], rel=1e-3)


def test_a_jordan_block_away_from_the_circle_is_not_neutral(rng):
    """Its eigenvalues are computed within 0.09 of 0.8, and one at 0.5."""
    block = 0.8 * np.eye(15) + np.eye(15, k=1)
    block[0, 0] = 0.5
    basis = orthogonal(rng, 15)
    _, neutral = _spectrum.neutral(
        basis.T @ block @ basis, 1e-6, 15 * _spectrum.ROUNDING
    )
    assert not neutral.any()


def test_a_matrix_of_zeros_has_no_neutral_eigenvalue():
    values, neutral = _spectrum.neutral(np.zeros((3, 3)), 1e-6, 1e-14)
    assert not values.any() and not neutral.any()
