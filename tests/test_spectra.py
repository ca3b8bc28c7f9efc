import numpy as np
import pytest
from references import drawn_lines

from keras_rin import plots
from keras_rin.diagnostics._lyapunov import LyapunovSpectrum

pytestmark = pytest.mark.one_backend

SPECTRUM = LyapunovSpectrum(
    exponents=np.array([0.0, -1.0, -np.inf]),
    standard_error=np.array([0.1, 0.2, np.nan]),
    convergence=np.zeros((5, 3)),
)


def contour(figure):
    (paths,) = figure.axes[0].collections[0].get_paths()
    return paths.vertices


def test_around_a_normal_matrix_pseudospectra_are_discs():
    figure = plots.plot_eigenvalues([[0.0]], levels=[-0.5], points=81)
    radius = np.linalg.norm(contour(figure), axis=1)
    np.testing.assert_allclose(radius, 10**-0.5, rtol=0.01)


def test_a_large_entry_off_the_diagonal_widens_them():
    """The distance of z I - [[0, b], [0, 0]] from singular, by its norm."""
    b, level = 4.0, -0.5
    figure = plots.plot_eigenvalues([[0, b], [0, 0]], levels=[level], points=81)
    z = np.linalg.norm(contour(figure), axis=1)
    # sigma_min^2 + sigma_max^2 = 2 z^2 + b^2, sigma_min sigma_max = z^2
    total = 2 * z**2 + b**2
    smallest = np.sqrt((total - np.sqrt(total**2 - 4 * z**4)) / 2)
    np.testing.assert_allclose(smallest, 10**level, rtol=0.03)


@pytest.mark.parametrize("gain", [1.5, 3.0])
def test_the_contours_of_a_long_chain_are_in_the_frame(gain):
    """Of N units, they are circles of about its gain: inside it is singular."""
    levels = np.array([-3.0, -1.0])
    figure = plots.plot_eigenvalues(gain * np.eye(30, k=1), levels=levels)
    outer = figure.axes[0].collections[0].get_paths()[-1].vertices
    radius = np.linalg.norm(outer, axis=1)
    np.testing.assert_allclose(radius, gain, rtol=0.1)
    assert np.ptp(np.arctan2(*outer.T)) > 6  # all around


@pytest.mark.parametrize("points", [1, 2.5])
def test_a_grid_has_two_points_and_more(points):
    with pytest.raises(ValueError, match="`points` must be an integer of at"):
        plots.plot_eigenvalues(np.eye(2), points=points)


def test_eigenvalues_stand_where_they_are():
    drawn = plots.plot_eigenvalues(np.diag([0.5, -2.0]), levels=())
    *_, points = drawn.axes[0].get_lines()
    np.testing.assert_allclose(sorted(points.get_xdata()), [-2, 0.5])


def test_matrices_must_be_square():
    with pytest.raises(ValueError, match="must be a square matrix"):
        plots.plot_eigenvalues(np.ones((2, 3)))


def test_jacobian_spectra_stand_where_they_are():
    drawn = drawn_lines(
        plots.plot_jacobian_spectra({"RIN": [[0.5, 0.25 + 1j]]})
    )
    np.testing.assert_array_equal(drawn["RIN"], [[0.5, 0.25], [0, 1]])


def test_lyapunov_spectra_have_a_band_and_no_infinity():
    figure = plots.plot_lyapunov_spectra({"RIN": SPECTRUM})
    np.testing.assert_array_equal(
        drawn_lines(figure)["RIN"], [[1, 2, 3], [0, -1, np.nan]]
    )
    vertices = figure.axes[0].collections[0].get_paths()[0].vertices
    at_two = vertices[vertices[:, 0] == 2, 1]
    np.testing.assert_allclose([at_two.min(), at_two.max()], [-1.2, -0.8])


def test_levels_that_are_no_integers_have_labels_of_their_own():
    figure = plots.plot_eigenvalues(np.eye(2), levels=(-1.5, -0.5))
    labels = {text.get_text() for text in figure.axes[0].texts}
    assert labels
    assert labels <= {"$10^{-1.5}$", "$10^{-0.5}$"}
