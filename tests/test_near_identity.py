import keras
import numpy as np
import pytest
import scipy.linalg
import scipy.stats
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st
from references import assert_same

from keras_rin import layers
from keras_rin.constructions import linear_residual_network
from keras_rin.constructions import near_identity_factors
from keras_rin.initializers import Offset

pytestmark = pytest.mark.one_backend


def product(factors):
    result = np.eye(factors.shape[1])
    for factor in factors:
        result = (np.eye(len(result)) + factor) @ result
    return result


def largest_norm(factors):
    return max(np.linalg.norm(factor, 2) for factor in factors)


def gamma(matrix):
    return np.abs(np.log(np.linalg.svd(matrix, compute_uv=False))).max()


def random_matrix(seed, d, spread):
    rng = np.random.default_rng(seed)
    left = scipy.stats.special_ortho_group.rvs(d, random_state=rng)
    right = scipy.stats.special_ortho_group.rvs(d, random_state=rng)
    return left * np.exp(rng.uniform(-spread, spread, d)) @ right


ANY_MATRIX = st.builds(
    random_matrix,
    seed=st.integers(0, 10**6),
    d=st.integers(2, 9),
    spread=st.sampled_from([0, 1e-9, 0.1, 1, 5]),
)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(matrix=ANY_MATRIX, depth=st.integers(1, 100))
def test_the_product_is_the_matrix_and_the_norms_keep_the_bound(matrix, depth):
    factors = near_identity_factors(matrix, depth)
    assert factors.shape == (depth, *matrix.shape)
    assert factors.dtype == "float64"
    scale = np.linalg.norm(matrix, 2)
    assert_same(product(factors), matrix, rtol=0, atol=1e-11 * scale)
    if depth >= 3 * gamma(matrix):
        bound = (4 * np.pi + 3 * gamma(matrix)) / depth
        assert largest_norm(factors) <= bound


@pytest.mark.parametrize(
    "angles",
    [
        (np.pi, np.pi),
        (np.pi, 0),
        (np.pi - 1e-7, np.pi),
        (np.pi - 1e-9, np.pi - 2e-9),
        (np.pi - 1e-14, 1e-14),
        (1.0, -1.0 - 1e-9),
        (0, 0),
    ],
    ids=str,
)
def test_turns_by_half_and_nearly_half_are_factored(angles):
    basis = scipy.stats.special_ortho_group.rvs(4, random_state=1)
    turns = [scipy.linalg.expm([[0, -a], [a, 0]]) for a in angles]
    matrix = basis @ scipy.linalg.block_diag(*turns) @ basis.T
    factors = near_identity_factors(matrix, 64)
    assert_same(product(factors), matrix, rtol=0, atol=1e-12)
    turn = np.abs(angles).max()
    # The exact norm of T(t) - I, which every factorisation has at least.
    assert largest_norm(factors) <= 2 * np.sin(turn / 128) + 1e-12


@pytest.mark.parametrize("depth", [1, 2, 1000])
def test_a_positive_matrix_has_equal_roots_alone(rng, depth):
    half = rng.normal(size=(5, 5))
    for matrix in (half @ half.T + 0.1 * np.eye(5), 7 * np.eye(1)):
        factors = near_identity_factors(matrix, depth)
        root = scipy.linalg.fractional_matrix_power(matrix, 1 / depth)
        expected = np.stack([root - np.eye(len(matrix))] * depth)
        assert_same(factors, expected, rtol=0, atol=1e-10)


def test_many_factors_are_as_near_as_pi_plus_gamma():
    matrix = -random_matrix(0, 16, 2.0)
    depth = 4096
    near = largest_norm(near_identity_factors(matrix, depth)) * depth
    assert near <= 1.01 * (np.pi + gamma(matrix))


@pytest.mark.parametrize("depth", [1, 33])
def test_the_network_multiplies_by_the_matrix(rng, depth):
    matrix = random_matrix(5, 4, 1)
    model = linear_residual_network(matrix, depth)
    x = rng.normal(size=(10, 4)).astype("float32")
    assert len(model.layers) == depth
    assert_same(model.predict(x, verbose=0), x @ matrix.T, atol=1e-4)


def excess_and_gradient(factors, matrix, sigma):
    """The loss over that of the noise, and its derivative, in closed form."""
    identity = np.eye(len(matrix))
    error = product(factors) - matrix
    gradient = []
    for i in range(len(factors)):
        before = product(factors[:i]) if i else identity
        after = product(factors[i + 1 :]) if i + 1 < len(factors) else identity
        gradient.append(2 * after.T @ error @ sigma @ before.T)
    return np.trace(error @ sigma @ error.T), np.array(gradient)


def lower_bound(factors, sigma, excess):
    """Of the squared gradient norm, as on the page about depth."""
    depth, tau = len(factors), largest_norm(factors)
    slope = max(1 - tau, 0) ** (2 * (depth - 1))
    return 4 * depth * slope * np.linalg.eigvalsh(sigma)[0] * excess


@pytest.mark.parametrize("offset, scale, variance", [(-0.5, 0, 1), (0, 2, 10)])
def test_the_bound_is_tight_where_the_printed_one_fails(
    offset, scale, variance
):
    """Equation 2.3 of the paper has another exponent, and sigma^2."""
    identity = np.eye(6)
    factors, matrix = np.stack([offset * identity] * 5), scale * identity
    sigma = variance * identity
    excess, gradient = excess_and_gradient(factors, matrix, sigma)
    steepness = np.sum(gradient**2)
    assert_same(lower_bound(factors, sigma, excess), steepness)
    printed = 4 * 5 * (1 - abs(offset)) ** 4 * variance**2 * excess
    assert printed > 9 * steepness


@settings(max_examples=100, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 10**6),
    depth=st.integers(1, 6),
    d=st.integers(1, 5),
    tau=st.floats(0.01, 1.5),
)
def test_the_gradient_is_never_below_the_bound(seed, depth, d, tau):
    rng = np.random.default_rng(seed)
    factors = rng.normal(size=(depth, d, d))
    factors *= tau / np.linalg.norm(factors, 2, (1, 2))[:, None, None]
    matrix, half = rng.normal(size=(2, d, d))
    sigma = half @ half.T
    excess, gradient = excess_and_gradient(factors, matrix, sigma)
    bound = lower_bound(factors, sigma, excess)
    assert -1e-9 <= bound <= np.sum(gradient**2) * (1 + 1e-9) + 1e-9


@pytest.mark.parametrize(
    "matrix, message",
    [
        (np.ones((2, 2)), "invertible.*condition number"),
        (np.zeros((2, 2)), "invertible.*condition number"),
        (np.ones((2, 3)), r"square matrix.*shape \(2, 3\)"),
        (np.diag([1.0, -1]), "positive determin.*more dimens"),
        ([[np.nan]], "finite"),
    ],
)
def test_other_matrices_are_refused(matrix, message):
    with pytest.raises(ValueError, match=message):
        near_identity_factors(matrix, 10)


@pytest.mark.parametrize("last", ["identity", "zeros"])
def test_a_negative_eigenvalue_needs_a_zero_last_layer(rng, last):
    """The identity stays where it is 0 in that direction; zero does not."""
    basis = np.linalg.qr(rng.normal(size=(3, 3))).Q
    target = (basis * [-1, 0.5, 1]) @ basis.T
    model = keras.Sequential([keras.Input((3,))])
    for initial in (*["identity"] * 7, last):
        model.add(layers.LinearResidual(Offset(initial)))
    # A mean of nine squares: half their sum would have 0.3 / 8.
    model.compile(keras.optimizers.SGD(4.5 * 0.3 / 8), "mse")
    x, y = np.eye(3), target.T
    for _ in range(150):
        model.train_on_batch(x, y)
    errors = basis.T @ (model.predict(x, verbose=0).T - target) @ basis
    stays = last == "identity"
    assert_same(errors, np.diag([1.0 * stays, 0, 0]), atol=0.01 * stays + 1e-4)
