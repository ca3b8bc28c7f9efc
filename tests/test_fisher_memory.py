import numpy as np
import pytest
import scipy.linalg
from references import orthogonal

from keras_rin.diagnostics import fisher_memory_curve
from keras_rin.diagnostics import optimal_input_vector
from keras_rin.diagnostics import spatial_memory_matrix
from keras_rin.diagnostics import total_memory

pytestmark = pytest.mark.one_backend


def chain(units, gain, identity_gain=0, feedback=0):
    return (
        gain * np.eye(units, k=1)
        + identity_gain * np.eye(units)
        + feedback * np.eye(units, k=-1)
    )


def chain_curve(units, gain):
    """The closed form, in powers that do not overflow."""
    lag = np.arange(units)
    if gain == 1:
        return 1 / (lag + 1)
    return (1 - gain**-2) / (1 - float(gain) ** (-2 * lag - 2))


def gaussian(rng, units, radius=0.9):
    matrix = rng.normal(size=(units, units))
    return radius * matrix / np.abs(np.linalg.eigvals(matrix)).max()


NORMAL = {
    "diagonal": lambda rng, units: np.diag(rng.uniform(-0.99, 0.99, units)),
    "scaled orthogonal": lambda rng, units: 0.99 * orthogonal(rng, units),
    "scaled identity": lambda rng, units: 0.96 * np.eye(units),
    "zero": lambda rng, units: np.zeros((units, units)),
}
STABLE = {
    **NORMAL,
    "gaussian": gaussian,
    "chain": lambda rng, units: chain(units, 1.05),
    "feedback chain": lambda rng, units: chain(units, 0.99, feedback=0.04),
    "chain and identity": lambda rng, units: chain(units, 1.02, 0.1),
}


@pytest.mark.parametrize("kind", STABLE)
def test_the_totals_over_an_orthonormal_basis_sum_to_the_units(kind, rng):
    matrix, basis = STABLE[kind](rng, 40), orthogonal(rng, 40)
    totals = [total_memory(matrix, input_vector=vector) for vector in basis]
    assert sum(totals) == pytest.approx(40, rel=1e-9)
    assert max(totals) <= 40
    if kind in NORMAL:
        assert totals == pytest.approx(np.ones(40), rel=1e-9)


@pytest.mark.parametrize("gain", [0.5, 1, 1.02, 2])
def test_a_chain_has_its_closed_form_however_it_amplifies(gain):
    matrix, expected = chain(100, gain), chain_curve(100, gain)
    curve = fisher_memory_curve(matrix, lags=150)
    np.testing.assert_allclose(curve[:100], expected, rtol=1e-9)
    assert (curve[100:] == 0).all()
    assert total_memory(matrix) == pytest.approx(expected.sum(), rel=1e-9)


# Computed with mpmath at 80 digits: C summed over doubled powers, its Cholesky
# factor, and the curve summed until nothing was left.
@pytest.mark.parametrize(
    "matrix, total",
    [
        (chain(25, 1, 0.2), 5.6189040683315104),
        (chain(25, 1.05, 0.2), 6.6873685082120943),
        (chain(25, 0.99, 0, 0.04), 3.6936053051672094),
    ],
)
def test_totals_agree_with_80_digits(matrix, total):
    assert total_memory(matrix) == pytest.approx(total, rel=1e-12)


@pytest.mark.parametrize("noise", [1, 0.3])
def test_it_agrees_with_the_lyapunov_equation_of_scipy(noise, rng):
    matrix, vector = gaussian(rng, 30), rng.normal(size=30)
    solve = scipy.linalg.solve_discrete_lyapunov
    covariance = solve(matrix.T, noise * np.eye(30))
    memory = solve(matrix, np.linalg.inv(covariance))
    traces = [vector @ np.linalg.matrix_power(matrix, k) for k in range(30)]
    np.testing.assert_allclose(
        fisher_memory_curve(matrix, input_vector=vector, noise=noise),
        [trace @ np.linalg.solve(covariance, trace) for trace in traces],
        rtol=1e-9,
    )
    spatial = spatial_memory_matrix(matrix, noise=noise)
    np.testing.assert_allclose(spatial, memory, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("power", [-150, 150])
def test_inputs_and_noise_may_be_far_from_1_together(power):
    size, matrix = 10.0**power, chain(6, 1.02, 0.1)
    vector, noise = size * np.ones(6), size**2
    for memory in (fisher_memory_curve, total_memory):
        np.testing.assert_allclose(
            memory(matrix, input_vector=1e10 * vector, noise=noise),
            memory(matrix, input_vector=1e10 * np.ones(6)),
        )


@pytest.mark.parametrize("kind", ["gaussian", "feedback chain"])
def test_no_input_is_remembered_better_than_the_optimal_one(kind, rng):
    matrix = STABLE[kind](rng, 20)
    optimal = optimal_input_vector(matrix)
    assert np.linalg.norm(optimal) == pytest.approx(1)
    assert optimal[np.abs(optimal).argmax()] > 0
    best = total_memory(matrix, input_vector=optimal)
    directions = rng.normal(size=(50, 20))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    for vector in (*directions, *(optimal + 1e-3 * directions)):
        vector /= np.linalg.norm(vector)
        assert total_memory(matrix, input_vector=vector) <= best


@pytest.mark.parametrize("gain, digits", [(1.1, 12), (1.2, 11), (1.3, 7)])
def test_amplification_up_to_1e11_is_borne_in_any_basis(gain, digits, rng):
    basis = orthogonal(rng, 100)
    turned = basis.T @ chain(100, gain) @ basis
    total = total_memory(turned, input_vector=basis[0])
    expected = chain_curve(100, gain).sum()
    assert total == pytest.approx(expected, rel=10.0**-digits)


@pytest.mark.parametrize(
    "matrix, horizon",
    [
        (chain(200, 1, 0.2), None),
        (chain(200, 1, 0.2), 200),
        (1e9 * np.eye(2), 1_000),
    ],
)
def test_what_double_precision_cannot_hold_is_refused(matrix, horizon):
    with pytest.raises(ValueError, match="amplifies too much .* trace"):
        total_memory(matrix, horizon=horizon)
    with pytest.raises(ValueError, match="amplifies too much .* trace"):
        fisher_memory_curve(matrix, horizon=horizon)


# Its eigenvalues are 0.9, which double precision does not determine.
TURN = orthogonal(np.random.default_rng(0), 50)
JORDAN = TURN.T @ (0.9 * np.eye(50) + np.eye(50, k=1)) @ TURN


@pytest.mark.parametrize(
    "matrix, message",
    [
        (np.eye(2), "radius below 1.*`horizon`.*radius of 1$"),
        ((1 - 1e-7) * np.eye(2), "radius below 1.* of 0.9999999$"),
        (np.diag([0.1, -1.5]), "radius below 1.* of 1.5$"),
        (JORDAN, r"after a change by rounding.* of 1\.3"),
    ],
)
def test_memory_without_end_is_refused(matrix, message):
    for function in (fisher_memory_curve, total_memory, optimal_input_vector):
        with pytest.raises(ValueError, match=message):
            function(matrix)


def test_lags_are_those_asked_for_or_the_horizon_or_the_units():
    matrix = chain(5, 0.9)
    assert len(fisher_memory_curve(matrix)) == 5
    assert len(fisher_memory_curve(matrix, horizon=9)) == 9
    assert len(fisher_memory_curve(matrix, horizon=9, lags=3)) == 3
    with pytest.raises(ValueError, match="`lags`.*most 4.*lags=5"):
        fisher_memory_curve(matrix, horizon=4, lags=5)
