import numpy as np
import pytest
from references import orthogonal
from scipy.linalg import LinAlgWarning

from keras_rin.diagnostics import henrici_departure
from keras_rin.diagnostics import spectral_radius
from keras_rin.diagnostics import transient_amplification

pytestmark = pytest.mark.one_backend


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
