import numpy as np
import pytest
from references import drawn_lines

from keras_rin import plots
from keras_rin.diagnostics._hidden_chain import HiddenChain

pytestmark = pytest.mark.one_backend

FOUND = HiddenChain(
    difference=np.array([-1, 0, 1]),
    mean_weight={"cell": np.array([0.1, 0.2, 0.9])},
    standard_error={"cell": np.array([np.nan, 0.05, np.nan])},
    order=np.array([1, 0]),
    activity=np.ones((3, 2)),
)


def test_memory_curves_begin_at_lag_zero():
    drawn = drawn_lines(plots.plot_memory_curves({"chain": [1, 0.5, 0.25]}))
    np.testing.assert_array_equal(drawn["chain"], [[0, 1, 2], [1, 0.5, 0.25]])


def test_the_gradient_is_drawn_backwards_and_without_zeros():
    drawn = drawn_lines(plots.plot_gradient_norms({"RIN": [0, 0.5, 1]}))
    np.testing.assert_array_equal(drawn["RIN"], [[0, 1, 2], [1, 0.5, np.nan]])


def test_a_cross_marks_where_the_gradient_becomes_zero():
    figure = plots.plot_gradient_norms({"chain": [0, 0.5, 1], "RIN": [1, 1, 1]})
    crosses = [
        line.get_xydata().tolist()
        for line in figure.axes[0].get_lines()
        if line.get_marker() == "x"
    ]
    assert crosses == [[[1, 0.5]]]


def test_learning_curves_show_median_and_range():
    runs = [[3, 2], [5, 2], [4, np.nan]]
    figure = plots.plot_learning_curves({"RIN": runs}, baseline=2.5)
    np.testing.assert_array_equal(drawn_lines(figure)["RIN"], [[1, 2], [4, 2]])
    (band,) = figure.axes[0].collections
    y = band.get_paths()[0].vertices[:, 1]
    assert (y.min(), y.max()) == (2, 5)


def test_one_curve_is_drawn_as_it_is():
    drawn = drawn_lines(plots.plot_learning_curves({"RIN": [3.0, 2.0]}))
    np.testing.assert_array_equal(drawn["RIN"], [[1, 2], [3, 2]])


def test_a_run_that_ends_early_is_drawn_as_far_as_it_went():
    figure = plots.plot_learning_curves({"RIN": [[3], [5, 2, 1], []]})
    x, y = drawn_lines(figure)["RIN"]
    np.testing.assert_array_equal(x, [1, 2, 3])
    np.testing.assert_array_equal(y, [4, 2, 1])


@pytest.mark.parametrize("epochs", [1, 2, 20])
def test_ticks_are_whole_epochs(epochs):
    figure = plots.plot_learning_curves({"RIN": [np.ones(epochs)]})
    ticks = figure.axes[0].get_xticks()
    assert [tick % 1 for tick in ticks] == [0] * len(ticks)


def test_the_hidden_chain_has_a_band_of_its_standard_error():
    figure = plots.plot_hidden_chain(FOUND)
    np.testing.assert_array_equal(
        drawn_lines(figure)["cell"][1], [0.1, 0.2, 0.9]
    )
    vertices = figure.axes[0].collections[0].get_paths()[0].vertices
    at_zero = vertices[vertices[:, 0] == 0, 1]
    np.testing.assert_allclose(sorted(at_zero), [0.15, 0.25])


def test_several_networks_have_the_standard_error_between_them():
    other = FOUND._replace(mean_weight={"cell": np.array([0.3, 0.2, 0.5])})
    figure = plots.plot_hidden_chain([FOUND, other], reach=1)
    np.testing.assert_allclose(drawn_lines(figure)["cell"][1], [0.2, 0.2, 0.7])
    vertices = figure.axes[0].collections[0].get_paths()[0].vertices
    at_one = vertices[vertices[:, 0] == 1, 1]
    error = np.std([0.9, 0.5], ddof=1) / np.sqrt(2)
    np.testing.assert_allclose(
        [at_one.min(), at_one.max()], [0.7 - error, 0.7 + error]
    )


def test_the_hidden_chain_is_drawn_as_far_as_it_reaches():
    for reach in (1, 20):
        drawn = drawn_lines(plots.plot_hidden_chain(FOUND, reach=reach))
        np.testing.assert_array_equal(drawn["cell"][0], [-1, 0, 1])
    with pytest.raises(ValueError, match="`reach` must be"):
        plots.plot_hidden_chain(FOUND, reach=0)
