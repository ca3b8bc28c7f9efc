import sys

import matplotlib.figure
import numpy as np
import pytest
from references import drawn_lines

from keras_rin import plots
from keras_rin.diagnostics import FixedPoints
from keras_rin.diagnostics import HiddenChain
from keras_rin.diagnostics import LyapunovSpectrum

pytestmark = pytest.mark.one_backend

CHAIN = HiddenChain(
    difference=np.array([-1, 0, 1]),
    mean_weight={"cell": np.array([0.1, 0.2, 0.9])},
    standard_error={"cell": np.array([np.nan, 0.05, np.nan])},
    order=np.array([1, 0]),
    activity=np.ones((3, 2)),
)
SPECTRUM = LyapunovSpectrum(
    exponents=np.array([0.0, -1.0, -np.inf]),
    standard_error=np.array([0.1, 0.2, np.nan]),
    convergence=np.zeros((5, 3)),
)
POINTS = FixedPoints(
    states=np.diag([3.0, 2.0, 1.0]),
    speeds=np.zeros(3),
    jacobians=np.zeros((3, 3, 3)),
    eigenvalues=np.zeros((3, 3), complex),
    contracting=np.array([3, 2, 1]),
    neutral=np.array([0, 1, 0]),
    expanding=np.array([0, 0, 2]),
    dimension=np.array([0, 1, 0]),
    members=[
        np.array([[3.0, 0, 0]]),
        np.array([[0, 2.0, 0], [0, 3.0, 0]]),
        np.array([[0, 0, 1.0]]),
    ],
    searches=np.array([1, 2, 1]),
    unconverged_states=np.zeros((0, 3)),
    unconverged_speeds=np.zeros(0),
)
PLOTS = {
    plots.plot_memory_curves: {"chain": [1, 0.5], "identity": [0.2, 0.1]},
    plots.plot_eigenvalues: 0.5 * np.eye(3, k=1),
    plots.plot_hidden_chain: CHAIN,
    plots.plot_fixed_points: POINTS,
    plots.plot_jacobian_spectra: {"RIN": np.array([[0.5, 0.5j]])},
    plots.plot_lyapunov_spectra: {"RIN": SPECTRUM},
    plots.plot_gradient_norms: {"RIN": [0.1, 0.5, 1.0]},
    plots.plot_learning_curves: {"RIN": [[3, 2, 1], [5, 2, 0]]},
}


@pytest.mark.parametrize("plot", PLOTS)
def test_it_draws_with_labels_where_it_is_told_to(plot, tmp_path):
    figure = matplotlib.figure.Figure(layout="constrained")
    left, right = figure.subplots(1, 2)
    assert plot(PLOTS[plot], ax=right) is figure
    assert right.get_xlabel() and right.get_ylabel() and not left.get_xlabel()
    figure.savefig(tmp_path / "picture.png")
    assert (tmp_path / "picture.png").stat().st_size > 5000


OF_NAMES = [plot for plot, data in PLOTS.items() if isinstance(data, dict)]
OTHER_GATES = CHAIN._replace(mean_weight={"input": np.zeros(3)})
REFUSED = [
    *((plot, [data], "`") for plot in OF_NAMES for data in ({}, [1, 2], None)),
    (plots.plot_memory_curves, [{"a": np.eye(3)}], r"`curves\['a'\]` .* shape"),
    (plots.plot_memory_curves, [{"a": [1], "b": 1.0}], r"`curves\['b'\]`"),
    (plots.plot_gradient_norms, [{"a": [[1.0]]}], r"`norms\['a'\]` .* shape"),
    (plots.plot_learning_curves, [{"a": np.ones((2, 2, 2))}], "shape"),
    (
        plots.plot_learning_curves,
        [{"a": [[1], 2]}],
        r"`curves\['a'\]` .* shape",
    ),
    (plots.plot_learning_curves, [{"a": "abc"}], r"`curves\['a'\]` .* numbers"),
    (plots.plot_jacobian_spectra, [{"a": "b"}], r"`eigenvalues\['a'\]`"),
    (plots.plot_lyapunov_spectra, [{"a": [0.1]}], ".LyapunovSpectrum`"),
    (plots.plot_lyapunov_spectra, [SPECTRUM], "`spectra` must be a non-empty"),
    (plots.plot_hidden_chain, [np.eye(3)], ".HiddenChain`"),
    (plots.plot_hidden_chain, [[]], "same gates"),
    (plots.plot_hidden_chain, [[CHAIN, OTHER_GATES]], "same gates"),
    (plots.plot_fixed_points, [POINTS.states], ".FixedPoints`"),
    (plots.plot_fixed_points, [POINTS, np.ones((5, 3))], "batch.*time"),
    (plots.plot_fixed_points, [POINTS, np.ones((1, 5, 2))], "batch.*time.* 3"),
    (plots.plot_fixed_points, [POINTS, np.full((1, 5, 3), np.nan)], "finite"),
    (plots.plot_fixed_points, [POINTS._replace(members=[])], "has no point"),
    (plots.plot_eigenvalues, [np.ones((2, 3))], "must be a square matrix"),
]


@pytest.mark.parametrize("plot, arguments, message", REFUSED)
def test_other_shapes_are_refused_before_anything_is_drawn(
    plot, arguments, message
):
    ax = matplotlib.figure.Figure().subplots()
    with pytest.raises(ValueError, match=f"{message}.*Received"):
        plot(*arguments, ax=ax)
    assert not ax.get_lines() and not ax.get_xlabel()


@pytest.mark.parametrize(
    "plot, options",
    [
        (plots.plot_hidden_chain, {"reach": 0}),
        (plots.plot_eigenvalues, {"points": 1}),
        (plots.plot_eigenvalues, {"points": 2.5}),
        (plots.plot_eigenvalues, {"levels": np.zeros((1, 2))}),
    ],
)
def test_options_are_checked(plot, options):
    (name,) = options
    with pytest.raises(ValueError, match=f"`{name}` must"):
        plot(PLOTS[plot], **options)


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r"keras-rin\[plots\]"):
        plots.plot_learning_curves({"RIN": [[1.0, 0.5]]}, ylabel="loss")


def looks(figure):
    """The color and the dashes of each line, by label."""
    return {
        line.get_label(): (line.get_color(), str(line._dash_pattern))
        for line in figure.axes[0].get_lines()
    }


def test_lines_differ_and_the_first_ones_without_color():
    curves = {str(k): [k, k] for k in range(30)}
    drawn = list(looks(plots.plot_memory_curves(curves)).values())
    assert len(set(drawn)) == 30
    assert len({dashes for _, dashes in drawn[:5]}) == 5


def test_a_layer_has_one_style_in_whatever_order():
    runs = {"LSTM": [1, 2], "mine": [2, 1], "RIN": [3, 2], "RIN, chain": [2, 2]}
    first, second = (
        looks(plots.plot_learning_curves(curves))
        for curves in (runs, dict(reversed(runs.items())))
    )
    known = first.keys() - {"mine"}
    assert {k: first[k] for k in known} == {k: second[k] for k in known}
    assert len(set(first.values())) == len(set(second.values())) == 4


@pytest.mark.parametrize(
    "plot, data, expected",
    [
        ("memory_curves", [1, 0.5, 0.25], [[0, 1, 2], [1, 0.5, 0.25]]),
        # Backwards and, on a logarithmic axis, without zeros.
        ("gradient_norms", [0, 0.5, 1], [[0, 1, 2], [1, 0.5, np.nan]]),
        ("learning_curves", [3.0, 2.0], [[1, 2], [3, 2]]),
        ("learning_curves", [[3, 2], [5, 2], [4, np.nan]], [[1, 2], [4, 2]]),
        # A run that ends early counts as far as it went.
        ("learning_curves", [[3], [5, 2, 1], []], [[1, 2, 3], [4, 2, 1]]),
        ("jacobian_spectra", [[0.5, 0.25 + 1j]], [[0.5, 0.25], [0, 1]]),
        ("lyapunov_spectra", SPECTRUM, [[1, 2, 3], [0, -1, np.nan]]),
    ],
)
def test_a_line_shows_the_data(plot, data, expected):
    figure = getattr(plots, f"plot_{plot}")({"RIN": data})
    np.testing.assert_array_equal(drawn_lines(figure)["RIN"], expected)


def test_a_cross_marks_where_the_gradient_becomes_zero():
    figure = plots.plot_gradient_norms({"chain": [0, 0.5, 1], "RIN": [1, 1, 1]})
    crosses = [
        line.get_xydata().tolist()
        for line in figure.axes[0].get_lines()
        if line.get_marker() == "x"
    ]
    assert crosses == [[[1, 0.5]]]


SECOND = CHAIN._replace(mean_weight={"cell": np.array([0.3, 0.2, 0.5])})
ERROR = np.std([0.9, 0.5], ddof=1) / np.sqrt(2)


@pytest.mark.parametrize(
    "plot, data, x, expected",
    [
        ("learning_curves", {"RIN": [[3, 2], [5, 2], [4, np.nan]]}, 1, [3, 5]),
        ("learning_curves", {"RIN": [[3, 2], [5, 2], [4, np.nan]]}, 2, [2, 2]),
        ("lyapunov_spectra", {"RIN": SPECTRUM}, 2, [-1.2, -0.8]),
        ("hidden_chain", CHAIN, 0, [0.15, 0.25]),
        ("hidden_chain", [CHAIN, SECOND], 1, [0.7 - ERROR, 0.7 + ERROR]),
    ],
)
def test_the_band_is_the_range_or_one_standard_error(plot, data, x, expected):
    figure = getattr(plots, f"plot_{plot}")(data)
    vertices = figure.axes[0].collections[0].get_paths()[0].vertices
    y = vertices[vertices[:, 0] == x, 1]
    np.testing.assert_allclose([y.min(), y.max()], expected)


@pytest.mark.parametrize("epochs", [1, 2, 20])
def test_ticks_are_whole_epochs(epochs):
    figure = plots.plot_learning_curves({"RIN": [np.ones(epochs)]})
    ticks = figure.axes[0].get_xticks()
    assert [tick % 1 for tick in ticks] == [0] * len(ticks)


def test_the_hidden_chain_is_drawn_as_far_as_it_reaches():
    wide = CHAIN._replace(
        difference=np.arange(-2, 3),
        mean_weight={"cell": np.array([0, 0.1, 0.2, 0.9, 1])},
        standard_error={"cell": np.zeros(5)},
        order=np.arange(3),
    )
    for networks, reach in (([CHAIN, wide], 20), (wide, 1)):
        figure = plots.plot_hidden_chain(networks, reach=reach)
        expected = [[-1, 0, 1], [0.1, 0.2, 0.9]]
        np.testing.assert_allclose(drawn_lines(figure)["cell"], expected)


def contour(figure):
    return figure.axes[0].collections[0].get_paths()[-1].vertices


@pytest.mark.parametrize("b", [0.0, 4.0])
def test_pseudospectra_are_discs_which_non_normality_widens(b):
    """The distance of z I - [[0, b], [0, 0]] from singular, by its norm."""
    level = -0.5
    figure = plots.plot_eigenvalues([[0, b], [0, 0]], levels=[level], points=81)
    z = np.linalg.norm(contour(figure), axis=1)
    # sigma_max - sigma_min = b, sigma_max sigma_min = z^2
    smallest = (np.sqrt(b**2 + 4 * z**2) - b) / 2
    np.testing.assert_allclose(smallest, 10**level, rtol=0.03)


@pytest.mark.parametrize("gain", [1.5, 3.0])
def test_the_contours_of_a_long_chain_are_in_the_frame(gain):
    """Of N units, they are circles of about its gain: inside it is singular."""
    levels = np.array([-3.0, -1.0])
    figure = plots.plot_eigenvalues(gain * np.eye(30, k=1), levels=levels)
    radius = np.linalg.norm(contour(figure), axis=1)
    np.testing.assert_allclose(radius, gain, rtol=0.1)
    assert np.ptp(np.arctan2(*contour(figure).T)) > 6  # all around


def test_eigenvalues_stand_where_they_are_and_levels_have_labels():
    matrix = np.diag([0.5, -2.0])
    *_, points = plots.plot_eigenvalues(matrix, levels=()).axes[0].get_lines()
    np.testing.assert_allclose(sorted(points.get_xdata()), [-2, 0.5])
    figure = plots.plot_eigenvalues(matrix, levels=(-1.5, -0.5))
    labels = {text.get_text() for text in figure.axes[0].texts}
    assert labels and labels <= {"$10^{-1.5}$", "$10^{-0.5}$"}


def distances(points):
    return np.linalg.norm(points[:, None] - points[None], axis=2)


def test_fixed_points_are_projected_on_the_plane_of_the_trajectories(rng):
    """Rotated, points in a plane keep their distances, by kind."""
    rotation = np.linalg.qr(rng.normal(size=(3, 3))).Q
    flat = rng.normal(size=(4, 6, 3)) * [3, 1, 0] + [0, 0, 5]
    members = [
        (states * [1, 1, 0] + [0, 0, 5]) @ rotation for states in POINTS.members
    ]
    points = POINTS._replace(members=members)
    figure = plots.plot_fixed_points(points, flat @ rotation)
    kinds = ["stable (1)", "saddle, 2 unstable (1)"]
    kinds.append("continuum of dimension 1 (1)")
    drawn = np.concatenate([drawn_lines(figure)[kind].T for kind in kinds])
    expected = np.concatenate([members[0], members[2], members[1]])
    np.testing.assert_allclose(distances(drawn), distances(expected))
    lines = figure.axes[0].get_lines()[:4]
    drawn = np.concatenate([line.get_xydata() for line in lines])
    np.testing.assert_allclose(distances(drawn), distances(flat.reshape(-1, 3)))


def test_states_of_one_number_are_drawn_on_a_line():
    points = POINTS._replace(
        contracting=np.array([1, 1]),
        neutral=np.array([0, 0]),
        expanding=np.array([0, 0]),
        dimension=np.array([0, 0]),
        members=[np.array([[-1.0]]), np.array([[1.0]])],
    )
    drawn = drawn_lines(plots.plot_fixed_points(points))["stable (2)"]
    np.testing.assert_allclose(drawn, [[-1, 1], [0, 0]])


def test_kinds_of_points_have_a_label_each():
    points = POINTS._replace(
        contracting=np.array([2, 1, 0, 0, 0]),
        neutral=np.array([0, 1, 2, 1, 0]),
        expanding=np.array([0, 0, 0, 1, 2]),
        dimension=np.array([0, 0, 1, 0, 0]),
        members=list(np.arange(10.0).reshape(5, 1, 2)),
    )
    assert list(drawn_lines(plots.plot_fixed_points(points))) == [
        "neutral in 1 (1)",
        "stable (1)",
        "saddle, 1 unstable (1)",
        "source, 2 unstable (1)",
        "continuum of dimension 1 (1)",
    ]
