import sys

import matplotlib.figure
import numpy as np
import pytest
from test_curves import FOUND
from test_spectra import SPECTRUM
from test_states import POINTS

from keras_rin import plots

pytestmark = pytest.mark.one_backend

PICTURES = {
    "memory_curves": ({"chain": [1, 0.5], "identity": [0.2, 0.1]},),
    "eigenvalues": (0.5 * np.eye(3, k=1),),
    "hidden_chain": (FOUND,),
    "fixed_points": (POINTS,),
    "jacobian_spectra": ({"RIN": np.array([[0.5, 0.5j]])},),
    "lyapunov_spectra": ({"RIN": SPECTRUM},),
    "gradient_norms": ({"RIN": [0.1, 0.5, 1.0]},),
    "learning_curves": ({"RIN": [[3, 2, 1], [5, 2, 0]]},),
}


@pytest.fixture(params=PICTURES)
def picture(request):
    return getattr(plots, f"plot_{request.param}"), PICTURES[request.param]


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
    drawn = plots.plot_memory_curves(curves).axes[0].get_lines()
    dashes = {str(line._dash_pattern) for line in drawn}
    assert len(dashes) == 5


def test_no_two_of_many_lines_look_the_same():
    curves = {str(k): [k, k] for k in range(30)}
    drawn = plots.plot_memory_curves(curves).axes[0].get_lines()
    looks = {(line.get_color(), str(line._dash_pattern)) for line in drawn}
    assert len(looks) == 30


@pytest.mark.parametrize(
    "draw",
    [
        plots.plot_memory_curves,
        plots.plot_gradient_norms,
        plots.plot_jacobian_spectra,
        plots.plot_learning_curves,
        plots.plot_lyapunov_spectra,
    ],
)
@pytest.mark.parametrize("curves", [{}, [1, 2], None])
def test_curves_must_have_names(draw, curves):
    with pytest.raises(ValueError, match="must be a non-empty dict of arrays"):
        draw(curves)


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r"keras-rin\[plots\]"):
        plots.plot_learning_curves({"RIN": [[1.0, 0.5]]}, ylabel="loss")
