"""The diagnostics of matrices of any kind and scale, against many digits.

The reference reads the very float64 matrix, so that a Jordan block which an
orthogonal basis has rounded is the matrix that it has become.
"""

import warnings

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st
from references import orthogonal
from scipy.linalg import LinAlgWarning

from keras_rin.diagnostics import fisher_memory_curve
from keras_rin.diagnostics import henrici_departure
from keras_rin.diagnostics import spectral_radius
from keras_rin.diagnostics import total_memory
from keras_rin.diagnostics import transient_amplification

pytestmark = pytest.mark.one_backend

TAME = ["gaussian", "normal", "chain", "chain and identity", "feedback chain"]
WILD = ["jordan block", "nilpotent", "nearly defective", "graded"]
mpmath.mp.dps = 120
FEW = settings(max_examples=12, deadline=None, derandomize=True)


def matrix_of(kind, units, seed):
    rng = np.random.default_rng(seed)
    noise, turn = rng.normal(size=(units, units)), orthogonal(rng, units)
    gain, value = rng.uniform(0.1, 2, 2)
    chain = gain * np.eye(units, k=1)
    jordan = value * np.eye(units) + chain
    order = rng.permutation(units)
    return {
        "gaussian": noise,
        "normal": turn,
        "chain": chain,
        "chain and identity": jordan[np.ix_(order, order)],
        "feedback chain": chain + 0.1 * np.eye(units, k=-1),
        "jordan block": turn.T @ jordan @ turn,
        "nilpotent": turn.T @ np.triu(noise, 1) @ turn,
        "nearly defective": jordan + 10 ** rng.uniform(-16, -3) * noise,
        "graded": noise * 10.0 ** rng.integers(-9, 9, size=(units, units)),
    }[kind]


@st.composite
def matrices(draw, kinds, scales=(-200, 200)):
    kind, units = draw(st.sampled_from(kinds)), draw(st.integers(1, 6))
    matrix = matrix_of(kind, units, draw(st.integers(0, 10**6)))
    return matrix * 10.0 ** draw(st.integers(*scales))


def exactly(matrix):
    return mpmath.matrix(matrix.tolist())


def result_and_warned(function, *args, **kwargs):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = function(*args, **kwargs)
    assert all(warning.category is LinAlgWarning for warning in caught)
    return result, bool(caught)


def check_radius_and_departure(matrix):
    eigenvalues, _ = mpmath.eig(exactly(matrix))
    radius = max(map(abs, eigenvalues))
    norm = mpmath.fsum(mpmath.mpf(x) ** 2 for x in matrix.ravel().tolist())
    rest = norm - mpmath.fsum(abs(x) ** 2 for x in eigenvalues)
    departure = mpmath.sqrt(max(rest, 0))
    result, warned = result_and_warned(spectral_radius, matrix)
    assert warned or abs(result - radius) <= 1e-4 * radius
    result, warned_too = result_and_warned(henrici_departure, matrix)
    tolerance = 1e-4 * departure + 1e-11 * np.abs(matrix).max()
    assert warned_too or abs(result - departure) <= tolerance
    return warned or warned_too


def check_amplification(matrix, vector):
    norms, warned = result_and_warned(
        transient_amplification, matrix, input_vector=vector, steps=8
    )
    state, exact = mpmath.matrix([vector.tolist()]), exactly(matrix)
    for norm in norms:
        expected = mpmath.norm(state)
        if expected > np.finfo("float64").max:
            expected = np.inf
        tolerance = 1e-4 * expected + 1e-320
        assert warned or norm == expected or abs(norm - expected) <= tolerance
        state = state * exact
    return warned


@FEW
@given(matrix=matrices(TAME), other=matrices(TAME[1:-1]))
def test_those_of_chains_and_ordinary_matrices_are_right(matrix, other):
    assert not check_radius_and_departure(matrix)
    assert not check_amplification(other, np.ones(len(other)))


@FEW
@given(
    matrix=matrices(TAME + WILD),
    size=st.integers(-200, 200),
    seed=st.integers(0, 10**6),
)
def test_those_of_any_matrix_are_right_or_warned_of(matrix, size, seed):
    check_radius_and_departure(matrix)
    vector = np.random.default_rng(seed).normal(size=len(matrix))
    check_amplification(matrix, vector * 10.0**size)


def exact_curve(matrix, vector, horizon, lags):
    covariance, exact = mpmath.zeros(len(matrix)), exactly(matrix)
    for _ in range(horizon):
        covariance = mpmath.eye(len(matrix)) + exact.T * covariance * exact
    trace, curve = mpmath.matrix(vector.tolist()), []
    for _ in range(lags):
        solved = mpmath.lu_solve(covariance, trace)
        curve.append(float((trace.T * solved)[0]))
        trace = exact.T * trace
    return curve


@FEW
@given(
    matrix=matrices(TAME + WILD, scales=(-3, 3)),
    horizon=st.integers(1, 10),
    seed=st.integers(0, 10**6),
)
def test_memory_of_a_finite_run_is_right_or_refused(matrix, horizon, seed):
    vector = np.random.default_rng(seed).normal(size=len(matrix))
    try:
        memory = fisher_memory_curve(
            matrix, input_vector=vector, horizon=horizon
        )
    except ValueError as error:
        assert "amplifies too much" in str(error)
        assert np.linalg.norm(matrix, 2) ** horizon > 1e5
        return
    curve = exact_curve(matrix, vector, horizon, horizon)
    np.testing.assert_allclose(memory, curve, atol=1e-5 * max(curve), rtol=1e-5)
    total = total_memory(matrix, input_vector=vector, horizon=horizon)
    np.testing.assert_allclose(total, sum(curve), rtol=1e-4)


@pytest.mark.parametrize("units", [2, 50, 300])
@pytest.mark.parametrize("sign", [1, -1])
def test_the_radius_of_a_chain_with_feedback_has_a_closed_form(units, sign):
    """LAPACK by itself finds 0.45 for the 0.398 of 300 units."""
    matrix = 0.99 * np.eye(units, k=1) + sign * 0.04 * np.eye(units, k=-1)
    radius = 2 * np.sqrt(0.99 * 0.04) * np.cos(np.pi / (units + 1))
    assert spectral_radius(matrix) == pytest.approx(radius, rel=1e-12)


def test_a_response_beyond_float64_on_the_way_still_ends():
    sizes = transient_amplification(1e150 * np.eye(5, k=1))
    np.testing.assert_allclose(sizes, [1, 1e150, 1e300, np.inf, np.inf, 0])
    sizes = transient_amplification(
        np.diag([1e200, 1e-200]), input_vector=[1e-300, 1e-300], steps=3
    )
    np.testing.assert_allclose(
        sizes, [2**0.5 * 1e-300, 1e-100, 1e100, 1e300], rtol=1e-12
    )


def jordan_in_another_basis(rng, value, units=50):
    basis = orthogonal(rng, units)
    return basis.T @ (value * np.eye(units) + np.eye(units, k=1)) @ basis


@pytest.mark.parametrize("value", [0.9, 0, -2])
@pytest.mark.parametrize("function", [spectral_radius, henrici_departure])
def test_what_double_precision_does_not_determine_is_warned_of(
    function, value, rng
):
    matrix = jordan_in_another_basis(rng, value)
    message = "does not determine the .* of"
    with pytest.warns(LinAlgWarning, match=message) as caught:
        function(matrix)
    assert caught[0].filename == __file__


def test_the_rest_of_a_response_that_rounding_left_is_warned_of(rng):
    matrix = 2 * jordan_in_another_basis(rng, 0)
    vector = rng.normal(size=50)
    with pytest.warns(LinAlgWarning, match="amplification from step [45]"):
        transient_amplification(matrix, input_vector=vector, steps=60)
    # Up to there the answer is right, and nothing is said.
    transient_amplification(matrix, input_vector=vector, steps=30)


@pytest.mark.parametrize("noise", [0, 1e-8, 1e-3])
@pytest.mark.parametrize("identity", [0, 0.5, 1])
def test_chains_as_drawn_and_as_trained_are_not_warned_of(
    identity, noise, rng
):  # warnings are errors
    matrix = np.eye(100, k=1) + identity * np.eye(100)
    matrix += noise * rng.normal(size=(100, 100))
    radius, departure = spectral_radius(matrix), henrici_departure(matrix)
    transient_amplification(matrix)
    if not noise:
        assert radius == identity
        assert departure == pytest.approx(99**0.5, rel=1e-12)
