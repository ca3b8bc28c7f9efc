import sys

import matplotlib.figure
import numpy as np
import pytest

from keras_rin import plots
from keras_rin.diagnostics.hidden_chain import HiddenChain

FOUND = HiddenChain(
    difference=np.array([-1, 0, 1]),
    mean_weight={"cell": np.array([0.1, 0.2, 0.9])},
    standard_error={"cell": np.array([np.nan, 0.05, np.nan])},
    order=np.array([1, 0]),
    activity=np.ones((3, 2)),
)
PICTURES = {
    "memory_curves": ({"chain": [1, 0.5], "identity": [0.2, 0.1]},),
    "eigenvalues": (0.5 * np.eye(3, k=1),),
    "hidden_chain": (FOUND,),
    "gradient_horizon": ({"RIN": [0.1, 0.5, 1.0]},),
    "learning_curves": ({"RIN": [[3, 2, 1], [5, 2, 0]]},),
}


@pytest.fixture(params=PICTURES)
def picture(request):
    return getattr(plots, request.param), PICTURES[request.param]


def lines(figure):
    return {
        line.get_label(): line.get_xydata().T
        for line in figure.axes[0].get_lines()
    }


def test_the_axes_are_named_and_the_figure_can_be_saved(picture, tmp_path):
    function, arguments = picture
    figure = function(*arguments)
    assert figure.axes[0].get_xlabel() and figure.axes[0].get_ylabel()
    figure.savefig(tmp_path / "picture.png")
    assert (tmp_path / "picture.png").stat().st_size > 5000


def test_it_draws_where_it_is_told_to(picture):
    function, arguments = picture
    figure = matplotlib.figure.Figure()
    left, right = figure.subplots(1, 2)
    assert function(*arguments, ax=right) is figure
    assert right.get_xlabel() and not left.get_xlabel()


def test_lines_differ_without_colour():
    curves = {str(k): [k, k] for k in range(5)}
    drawn = plots.memory_curves(curves).axes[0].get_lines()
    dashes = {str(line._dash_pattern) for line in drawn}
    assert len(dashes) == 5


def test_memory_curves_begin_at_lag_zero():
    drawn = lines(plots.memory_curves({"chain": [1, 0.5, 0.25]}))
    np.testing.assert_array_equal(drawn["chain"], [[0, 1, 2], [1, 0.5, 0.25]])


def test_the_gradient_is_drawn_backwards_and_without_zeros():
    drawn = lines(plots.gradient_horizon({"RIN": [0, 0.5, 1]}))
    np.testing.assert_array_equal(drawn["RIN"], [[0, 1, 2], [1, 0.5, np.nan]])


def test_a_cross_marks_where_the_gradient_becomes_zero():
    figure = plots.gradient_horizon({"chain": [0, 0.5, 1], "RIN": [1, 1, 1]})
    crosses = [
        line.get_xydata().tolist()
        for line in figure.axes[0].get_lines()
        if line.get_marker() == "x"
    ]
    assert crosses == [[[1, 0.5]]]


def test_learning_curves_show_median_and_range():
    runs = [[3, 2], [5, 2], [4, np.nan]]
    figure = plots.learning_curves({"RIN": runs}, baseline=2.5)
    np.testing.assert_array_equal(lines(figure)["RIN"], [[1, 2], [4, 2]])
    (band,) = figure.axes[0].collections
    y = band.get_paths()[0].vertices[:, 1]
    assert (y.min(), y.max()) == (2, 5)


def test_the_hidden_chain_has_a_band_of_its_standard_error():
    figure = plots.hidden_chain(FOUND)
    np.testing.assert_array_equal(lines(figure)["cell"][1], [0.1, 0.2, 0.9])
    vertices = figure.axes[0].collections[0].get_paths()[0].vertices
    at_zero = vertices[vertices[:, 0] == 0, 1]
    np.testing.assert_allclose(sorted(at_zero), [0.15, 0.25])


def test_several_networks_have_the_standard_error_between_them():
    other = FOUND._replace(mean_weight={"cell": np.array([0.3, 0.2, 0.5])})
    figure = plots.hidden_chain([FOUND, other], reach=1)
    np.testing.assert_allclose(lines(figure)["cell"][1], [0.2, 0.2, 0.7])
    vertices = figure.axes[0].collections[0].get_paths()[0].vertices
    at_one = vertices[vertices[:, 0] == 1, 1]
    error = np.std([0.9, 0.5], ddof=1) / np.sqrt(2)
    np.testing.assert_allclose(
        [at_one.min(), at_one.max()], [0.7 - error, 0.7 + error]
    )


def contour(figure):
    (paths,) = figure.axes[0].collections[0].get_paths()
    return paths.vertices


def test_around_a_normal_matrix_pseudospectra_are_discs():
    figure = plots.eigenvalues([[0.0]], levels=[-0.5], points=81)
    radius = np.linalg.norm(contour(figure), axis=1)
    np.testing.assert_allclose(radius, 10**-0.5, rtol=0.01)


def test_a_large_entry_off_the_diagonal_widens_them():
    """The distance of z I - [[0, b], [0, 0]] from singular, by its norm."""
    b, level = 4.0, -0.5
    figure = plots.eigenvalues([[0, b], [0, 0]], levels=[level], points=81)
    z = np.linalg.norm(contour(figure), axis=1)
    # sigma_min^2 + sigma_max^2 = 2 z^2 + b^2, sigma_min sigma_max = z^2
    total = 2 * z**2 + b**2
    smallest = np.sqrt((total - np.sqrt(total**2 - 4 * z**4)) / 2)
    np.testing.assert_allclose(smallest, 10**level, rtol=0.03)


def test_eigenvalues_stand_where_they_are():
    drawn = plots.eigenvalues(np.diag([0.5, -2.0]), levels=())
    *_, points = drawn.axes[0].get_lines()
    np.testing.assert_allclose(sorted(points.get_xdata()), [-2, 0.5])


@pytest.mark.parametrize(
    "draw", [plots.memory_curves, plots.gradient_horizon, plots.learning_curves]
)
@pytest.mark.parametrize("curves", [{}, [1, 2], None])
def test_curves_must_have_names(draw, curves):
    with pytest.raises(ValueError, match="must be a non-empty dict of arrays"):
        draw(curves)


def test_matrices_must_be_square():
    with pytest.raises(ValueError, match="must be a square matrix"):
        plots.eigenvalues(np.ones((2, 3)))


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r"keras-rin\[plots\]"):
        plots.learning_curves({"RIN": [[1.0, 0.5]]}, "loss")
